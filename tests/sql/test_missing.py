"""A column that no table has is told without Spark; whatever may be something else is not."""

from __future__ import annotations

import pytest

from penstock.sql.missing import missing_columns, missing_functions
from penstock.sql.tables import analyse

KNOWN = {"t": ("id", "name", "d", "s", "xs", "ts"), "u": ("id", "amount")}
# The name that is wrong in each is nope.
WRONG = (
    "SELECT nope FROM t",
    "SELECT upper(nope) FROM t",
    "SELECT id FROM t WHERE d > '2020-01-01' AND nope = 1 LIMIT 3",
    "SELECT t.nope FROM t",
    "SELECT x.nope FROM t AS x JOIN u ON x.id = u.id",
    "SELECT id, nope FROM t JOIN u USING (id)",
    "SELECT id FROM t ORDER BY nope",
    "SELECT count(*) FROM t GROUP BY nope",
    "SELECT sum(nope) OVER (PARTITION BY name) FROM t",
    "WITH a AS (SELECT nope FROM t) SELECT * FROM a",
    "SELECT id FROM t UNION ALL SELECT nope FROM u",
)
NOT_CERTAIN = (
    "SELECT id FROM u WHERE EXISTS (WITH a AS (SELECT name FROM t WHERE amount > 1) FROM a)",
    "SELECT id, name n FROM t ORDER BY n",
    "SELECT s.field, s.a.b FROM t ORDER BY field",
    "SELECT explode(xs) FROM t ORDER BY col",
    "SELECT explode(xs) AS e FROM t WHERE id > 1 ORDER BY e",
    "SELECT posexplode(xs) AS (p, v) FROM t ORDER BY p",
    "SELECT count(*) c FROM t GROUP BY ALL HAVING c > 1 ORDER BY ALL",
    "SELECT id + 1 AS z, z + 1 FROM t",
    "SELECT id, row_number() OVER w FROM t WINDOW w AS (PARTITION BY name ORDER BY d)",
    "SELECT * EXCEPT (id) FROM t",
    "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.id = t.id AND name = 'x')",
    "SELECT (SELECT max(amount) FROM u WHERE u.id = t.id) FROM t",
    "WITH a AS (SELECT id FROM t) SELECT * FROM a WHERE id = 1",
    "SELECT t.id, u.amount FROM t JOIN u USING (id)",
    "SELECT interval 1 day + d, d + INTERVAL '1' MONTH, make_interval(years => 1) FROM t",
    "SELECT named_struct('a', 1).a, struct(id AS q).q, map('a', 1)['a'] FROM t",
    "SELECT t FROM t",
    "SELECT id, sum(id) FROM t GROUP BY id WITH ROLLUP",
    "SELECT id, grouping(id), grouping_id() FROM t GROUP BY GROUPING SETS ((id), ())",
    "SELECT upper(name) FROM t ORDER BY name",
    "SELECT id FROM t UNION ALL SELECT amount FROM u ORDER BY id",
    "SELECT name FROM t SORT BY id",
    "SELECT :x, :y FROM t WHERE id = :z",
    "SELECT id FROM t WHERE name RLIKE 'a' AND NOT id <=> 3",
    "SELECT get_json_object(name, '$.a'), name:a.b FROM t",
    "SELECT id FROM t TABLESAMPLE (10 PERCENT)",
    "SELECT * FROM t LATERAL VIEW explode(xs) v AS w WHERE w > 1",
    "SELECT id, w FROM t, LATERAL (SELECT id + 1 AS w)",
    "SELECT * FROM t PIVOT (sum(id) FOR name IN ('a', 'b'))",
    "SELECT rowid, _metadata FROM t",
    "SELECT /*+ BROADCAST(u) */ t.id FROM t JOIN u ON t.id = u.id",
    "SELECT id FROM t LIMIT ALL",
    "SELECT id AS `a b`, `a b` FROM t ORDER BY `a b`",
    "SELECT json_tuple(name, 'a', 'b') AS (aa, bb) FROM t",
    "SELECT inline(xs) FROM t",
    "SELECT id FROM t QUALIFY row_number() OVER (PARTITION BY name ORDER BY id) = 1",
    "SELECT stack(2, 1, 2) FROM t WHERE date_trunc('MONTH', ts) > d AND trunc(d, 'MM') = d",
    "SELECT months_between(d, ts), add_months(d, 1), last_day(d), ts AT TIME ZONE 'UTC' FROM t",
    "SELECT cast(name AS STRUCT<a: INT, b: STRING>).a FROM t",
    "SELECT from_json(name, 'a INT').a, from_csv(name, 'a INT').a FROM t",
    "SELECT id FROM t ORDER BY id NULLS LAST, name DESC",
    "SELECT s.* FROM t",
    "SELECT t.* FROM t",
    "SELECT T.ID, Name FROM T",
    "SELECT DISTINCT id FROM t",
    "SELECT id IS DISTINCT FROM 1, name COLLATE UTF8_LCASE FROM t",
    "SELECT id FROM t VERSION AS OF 3",
    "SELECT id FROM t AT (VERSION => 3)",
    "SELECT ts:field FROM t",
    "SELECT tumble.start FROM t",
    "SELECT id FROM t WHERE (id, name) IN (SELECT id, amount FROM u)",
    "SELECT transform(xs, (x, i) -> named_struct('k', x, 'i', i)) FROM t",
    "FROM t SELECT id",
    "SELECT TRANSFORM(id) USING 'cat' AS (a) FROM t",
    "SELECT id FROM t DISTRIBUTE BY id",
    "SELECT id FROM t WHERE id = x'00' OR name = r'\\d'",
    "SELECT convert_timezone('UTC', ts), localtime, utc_timestamp() FROM t",
    "SELECT id, system.session.v FROM t",
)


@pytest.mark.parametrize("text", WRONG)
def test_names_what_no_table_has(text: str) -> None:
    (missing,) = missing_columns(analyse(text).tree, KNOWN)
    assert (missing.name, missing.start) == ("nope", text.index("nope"))


@pytest.mark.parametrize("text", NOT_CERTAIN)
def test_leaves_to_spark_what_is_not_certain(text: str) -> None:
    assert not list(missing_columns(analyse(text).tree, KNOWN))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("SELECT uper(a), count(*), `Regexp_Extrac`(a) FROM t", ["uper", "Regexp_Extrac"]),
        ("SELECT * FROM table_chnges('t', 1, 2) WHERE date_frmat(d, 'y') > 0", None),
        ("SELECT main.uper(a), twice(a), my_upper(a), xpath_string(a, b) FROM t", []),
        ("SELECT transform(l, x -> x + 1), st_geomfromwkb(b), to_varchar(a) FROM range(3)", []),
        ("SELECT uppers(a) FROM t", []),  # a macro
    ],
)
def test_missing_functions(text: str, named: list[str] | None) -> None:
    missing = [missing.name for missing in missing_functions(analyse(text).tree, {"uppers"})]
    assert missing == (["table_chnges", "date_frmat"] if named is None else named)
