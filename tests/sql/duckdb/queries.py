"""Queries as somebody writes them for DuckDB: those that are translated, those that are refused."""

from __future__ import annotations

TABLES = {
    "t": (
        (
            "id INTEGER", "a INTEGER", "b BIGINT", "x DOUBLE", "m DECIMAL(10, 2)", "s VARCHAR",
            "d DATE", "ts TIMESTAMP", "l INTEGER[]", "st STRUCT(p INTEGER, q VARCHAR)",
            "f BOOLEAN",
        ),
        "(1, 7, 7, 2.5, 2.50, 'abc', '2020-01-31', '2020-01-31 10:20:30', [1, 2, 3], "
        "{'p': 1, 'q': 'one'}, true), "
        "(2, -7, 3, 3.5, -2.50, 'a_c', '2021-01-03', '2020-02-29 23:59:59.5', [5, NULL], "
        "{'p': NULL, 'q': 'two'}, false), "
        "(3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), "
        "(4, 0, -1, 0.5, 10.25, '', '1999-12-31', '1969-12-31 12:00:00.001', [], "
        "{'p': 4, 'q': NULL}, true)",
    ),
    "u": (("id INTEGER", "w VARCHAR"), "(1, 'one'), (1, 'uno'), (9, 'nine')"),
}  # fmt: skip

QUERIES = (
    "SELECT id, a < b, d <= ts, s > 'a', m BETWEEN x AND b FROM t WHERE a > b OR d BETWEEN d AND d",
    "SELECT id FROM t WHERE b > (SELECT avg(a) FROM t) AND a >= (SELECT u.id FROM u WHERE id = 9) "
    "- 20",
    "SELECT t.id, w FROM t JOIN u ON t.id <= u.id AND t.s < u.w",
    "SELECT f, max(a) > min(b) AS k FROM t GROUP BY f HAVING max(d) >= min(d)",
    "SELECT a < b AS k, count(*) AS n FROM t GROUP BY a < b",
    "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.id > t.id AND u.w > t.s)",
    "SELECT id, list_filter(l, e -> e > id) FROM t",
    "SELECT id, row_number() OVER (ORDER BY id) < a AS k FROM t QUALIFY sum(a) OVER () > id",
    "SELECT id, st.p < a FROM t",
    "SELECT id, log(id), log2(id), log(10, id), ln(id) FROM t",
    "SELECT dayofweek(d), weekday(d), isodow(d), week(d), dayofyear(d), isoyear(d) FROM t",
    "SELECT 1.5::INT, 2.5::INT, -2.5::INT, x::INT, m::INT, 2.5::DOUBLE::INT FROM t",
    "SELECT l[-1], l[1], l[1:2], l[2:], l[:1], l[9] FROM t",
    "SELECT strftime(ts, '%Y-%m-%dT%H'), strftime(ts, '%G-W%V'), strftime(d, '%d.%m.%y') FROM t",
    "SELECT strftime(ts, '%-H:%-M:%-S %I:%M %p'), strftime(d, '%u %w %-d/%-m'), "
    "strftime(ts, '%H:%M:%S.%f') FROM t",
    "SELECT strptime('31/01/2020', '%d/%m/%Y') AS a, "
    "strptime('2020-01-31T10:20:30', '%Y-%m-%dT%H:%M:%S') AS b",
    "SELECT arg_max(s, a), arg_min(s, a), max_by(s, b), min_by(id, x) FROM t",
    "SELECT list(a ORDER BY id), array_agg(s ORDER BY id DESC), list(DISTINCT a ORDER BY a) FROM t",
    "SELECT f, list(id ORDER BY id) AS ids FROM t GROUP BY f",
    "SELECT * EXCLUDE (l, st) FROM t",
    "SELECT * EXCLUDE st FROM t",
    "SELECT t.* EXCLUDE (l, st), w FROM t JOIN u ON t.id = u.id",
    "SELECT unnest([1, 2, 3]) AS x",
    "SELECT id, unnest(l) AS item FROM t",
    "SELECT * FROM unnest([1, 2, 3])",
    "SELECT * FROM unnest(['a', NULL]) AS k(n)",
    "SELECT id, n FROM t, unnest(t.l) AS k(n)",
    "SELECT id, n FROM t CROSS JOIN unnest(t.l) AS k(n)",
    "SELECT 1_000 AS n, 1_000_000 * 2 AS m",
    "SELECT date_diff('day', DATE '2020-01-01', d), date_diff('month', d, ts), "
    "datediff('year', d, DATE '2024-03-01'), date_diff('hour', d, ts), "
    "date_diff('minute', ts, TIMESTAMP '2020-03-01 00:00:00') FROM t",
    "SELECT date_trunc('month', d), date_trunc('week', d)::DATE, date_trunc('hour', ts), "
    "date_trunc('quarter', ts), date_trunc('year', ts)::DATE FROM t",
    "SELECT regexp_matches(s, '^a.c$'), regexp_extract(s, '([a-z])_', 1), "
    "regexp_replace(s, '[^a-z]', '-', 'g'), s ~ 'ab', s ~ 'a.c', s !~ 'ab' FROM t",
    "SELECT epoch_ms(ts), epoch(ts), epoch_ms(1577836800123), epoch_ms(-1), epoch_ms(d) FROM t",
    "SELECT make_timestamp_ms(b) AS e, make_timestamp(b) AS g FROM t",
    "SELECT list_transform(l, x -> x + 1), list_transform(l, lambda x: x * 2), "
    "list_filter(l, x -> x > 1), [y + 1 FOR y IN l IF y > 1], [y * 2 for y in l] FROM t",
    "SELECT id, f FROM t QUALIFY row_number() OVER (PARTITION BY f ORDER BY id DESC) = 1",
    "SELECT f, sum(a), count(*) FROM t GROUP BY ALL",
    "SELECT f, sum(a) AS total FROM t GROUP BY ALL ORDER BY ALL",
    "FROM t SELECT id, a",
    "FROM u",
    "FROM t SELECT max(a) WHERE f",
    "SELECT {'k': a, 'j': s} AS st2, st.p, st['q'], struct_pack(z := id).z FROM t",
    "SELECT a // 2, b // -2, a ** 2, a ^ 2, a / 2, b / 0, a % 4, b % 0, m / 3, x / 2 FROM t",
    "SELECT s || 'x', s || '-' || id, concat(s, a, 'z'), concat_ws('-', s, a) FROM t",
    "SELECT s LIKE 'a_c', s ILIKE 'A%', s NOT LIKE '%c', s LIKE 'a#_c' ESCAPE '#' FROM t",
    "SELECT d + 1, d - 1, d + INTERVAL 1 DAY, d - INTERVAL '1 month', ts + INTERVAL '90' MINUTE, "
    "d + INTERVAL 2 WEEKS, date_add(d, INTERVAL 1 YEAR) FROM t",
    "SELECT d + INTERVAL (a) DAY AS i, ts + INTERVAL (a) HOUR AS j, d + to_months(a) AS k FROM t",
    "SELECT * FROM range(3)",
    "SELECT i FROM range(1, 10, 4) r(i)",
    "SELECT * FROM generate_series(1, 3)",
    "SELECT generate_series FROM generate_series(3, 1)",
    "SELECT range(3), generate_series(1, 3), range(2, 5), range(5, 2, -2), range(a) FROM t",
    "SELECT unnest(range(2, 4)) AS i",
    "SELECT generate_series(DATE '2020-01-30', DATE '2020-02-02', INTERVAL 1 DAY) AS days",
    "SELECT * FROM range(DATE '2020-01-01', DATE '2020-04-01', INTERVAL 1 MONTH) AS g(m)",
    "SELECT t.id, r.i FROM t, range(3) r(i)",
    "SELECT try_cast('12' AS INTEGER) AS a, try_cast('x' AS INTEGER) AS b, "
    "TRY_CAST(s AS DATE) AS c FROM t",
    "SELECT a::VARCHAR, d::VARCHAR, a::DOUBLE, '2020-01-01'::DATE, m::DECIMAL(12, 1), "
    "'2020-01-02 03:04:05'::TIMESTAMP, '2020-01-02 03:04:05+00'::TIMESTAMPTZ FROM t",
    "SELECT count(*), count(a), count(DISTINCT f), sum(a) FILTER (WHERE f), bool_or(f) FROM t",
    "SELECT any_value(w) AS w, count(*) AS n FROM u WHERE id = 9",
    "SELECT a + 1, a - 1, a * 2, a > 1, a = 7, a <> 7, a > 1 AND f, (a + 1) * 2 FROM t",
    "SELECT upper(s), length(s), len(l), a::BIGINT, CAST(a AS VARCHAR), max(a) OVER () FROM t",
    "SELECT CASE WHEN a > 1 THEN 'big' ELSE 'small' END AS size, coalesce(a, 0), -a FROM t",
    "SELECT a IS NOT DISTINCT FROM 7, a IS NULL, a IN (1, 7), a BETWEEN 1 AND 7, NOT f FROM t",
    "SELECT * FROM (SELECT id, count(*), max(m) FROM t GROUP BY id)",
    'SELECT "count_star()" AS n FROM (SELECT count(*) FROM t)',
    "WITH c AS (SELECT id + 1, upper(s) FROM t) SELECT * FROM c",
    "SELECT DISTINCT ON (id) id, w FROM u ORDER BY id, w",
    "SELECT f, string_agg(s, '+' ORDER BY id) AS p FROM t GROUP BY f",
    "SELECT sum(a) OVER w AS running FROM t WINDOW w AS (ORDER BY id)",
    "SELECT id FROM t WHERE EXISTS (FROM u WHERE u.id = t.id)",
    "SELECT t.id, w FROM t LEFT JOIN u USING (id)",
    "SELECT id, (SELECT count(*) FROM u WHERE u.id = t.id) AS n FROM t",
    "SELECT a twice, b + 1 more FROM t",
    "SELECT more: b + 1 FROM t",
    "SELECT id FROM t UNION ALL SELECT id FROM u ORDER BY id LIMIT 3",
    "VALUES (1, 'a'), (2, NULL)",
    "SELECT make_timestamp(2020, 1, 2, 3, 4, 5.5), make_date(2020, 1, 2), sha256(s), md5(s) FROM t",
    "SELECT median(a), stddev(a), avg(a), avg(m), sum(b) FROM t",
    "SELECT round(m, 1), round(x), floor(x), ceil(x), abs(a), sign(a), sqrt(4), pow(a, 2) FROM t",
    "SELECT 5 IN [1, 5], list_contains(l, 2), list_sort(l), list_sum(l), list_max(l) FROM t",
    "SELECT round(avg(a), 2), round(sum(a) / count(*), 3), round(avg(x) OVER (), 1) FROM t "
    "GROUP BY id, x",
    "SELECT round(x::DOUBLE / 3, 4), round(1.005::DOUBLE, 2) AS r, round('nan'::DOUBLE, 2) FROM t",
    "SELECT upper(s)[2:], upper(s)[-2:-1], (s || 'é😀')[-9:2], (s::VARCHAR)[0:1] FROM t",
    "SELECT l[-2:], l[:-2], l[-9:2], l[2:-1], l[9:], l[0:1], l[-9:-4] FROM t",
    "SELECT f::INT, sum(f::INT) AS n, sum(a > 1) AS more, sum(s = 'abc') FILTER (WHERE f) AS m, "
    "7 IN l FROM t GROUP BY ALL",
    "SELECT DATE '2020-01-01'::VARCHAR, TIMESTAMP '2020-01-01 10:00:00'::DATE",
    "WITH c AS MATERIALIZED (SELECT 1 AS x), d AS NOT MATERIALIZED (SELECT 2 AS y) FROM c, d",
    "SELECT id::UTINYINT AS a, 2.5::UTINYINT AS b, 2.5::DOUBLE::UTINYINT AS c, m::HUGEINT AS d, "
    "'70000'::UINTEGER AS e, 1e15::DOUBLE::UBIGINT AS g, sum(id::USMALLINT) OVER () AS h FROM t",
    "SELECT upper('550e8400-e29b-41d4-a716-446655440000')::UUID::VARCHAR AS u, count(DISTINCT "
    "'550E8400-E29B-41D4-A716-446655440000'::UUID) AS n, '550e8400-e29b-41d4-a716-446655440000'"
    "::UUID = '550E8400-E29B-41D4-A716-446655440000'::UUID AS same FROM t",
    "SELECT DISTINCT f, max(a) AS m, least(min(b), 2) AS l FROM t GROUP BY f ORDER BY m DESC, f",
    "SELECT id, s, NULL AS e, l, st FROM t UNION ALL SELECT b, w, d, l, st FROM t, u "
    "ORDER BY id, s, e",
    "FROM u UNION ALL FROM u UNION ALL SELECT id, NULL FROM t ORDER BY ALL",
    "SELECT id FROM t WHERE f UNION SELECT a FROM t EXCEPT (SELECT b FROM t ORDER BY m LIMIT 1) "
    "ORDER BY 1",
    "WITH c AS (FROM t SELECT s, m) SELECT m, s FROM c UNION SELECT b, w FROM t, u ORDER BY 2, 1",
    "SELECT s, l FROM t UNION ALL (WITH c AS (SELECT w, l FROM t, u) FROM c UNION FROM c) "
    "ORDER BY s",
    "SELECT u.id, (SELECT max(a) FROM (SELECT a FROM t UNION ALL SELECT b FROM t)) AS m FROM u",
    "SELECT max(a) AS m, s FROM t GROUP BY s UNION ALL SELECT id, w FROM u WHERE id > 1 "
    "ORDER BY ALL",
    "SELECT id AS k, upper(s) AS s FROM t UNION ALL SELECT id, w FROM u ORDER BY k, s LIMIT 5",
    "SELECT rank() OVER w AS r, lag(a) OVER w AS l, first_value(s) "
    "OVER (PARTITION BY f ORDER BY d, id) AS v FROM t WINDOW w AS (ORDER BY id)",
    "SELECT coalesce(a, b, 0), coalesce(s, 'none'), coalesce(a, '5'), coalesce(max(x), 0), "
    "CASE WHEN f THEN a ELSE 0 END, CASE s WHEN 'abc' THEN s ELSE NULL END FROM t GROUP BY ALL",
    "SELECT 'it''s', 'back\\slash', NULL, TRUE, DATE '2020-01-01', 2.50",
)

# Items of a SELECT from t that have no name.
ITEMS = (
    "count(*)", "sum(a)", "sum(a) + 1", "a + 1", "(a + 1) * 2", "a::INTEGER", "a::INT", "st.p + 1",
    "CAST(a AS DOUBLE)", "d::DATE", "-a", "a > 1 AND f", "s || 'x'", "upper(s)", "a // 2", "a % 2",
    "strftime(d, '%Y')", "a IS NULL", "NOT f", "a IN (1, 7)", "1", "'text'", "max(a)", "b ** 2",
    "date_trunc('month', d)", "a IS NOT DISTINCT FROM 7", "s->>'a'", "s -> '$.a'", "'a'::BLOB",
    "NULL::INTEGER[]", "reverse(s)", "random()", "to_timestamp(a)", "corr(a, b)",
)  # fmt: skip

# Each with words of the reason; § is where it is.
REFUSED = {
    "SELECT §id FROM t UNION ALL BY NAME SELECT * FROM u": "BY NAME",
    "SELECT *,\n  §hash(id) FROM t": "hash",
    "SELECT id, §strftime(ts, '%c') FROM t": "%c in strftime",
    "SELECT id, §list(a) FROM t": "list without ORDER BY",
    "SELECT §COLUMNS('a|b') FROM t": "COLUMNS",
    "SELECT §* REPLACE (a + 1 AS a) FROM t": "REPLACE",
    "SELECT §* LIKE 'a%' FROM t": "* LIKE",
    "SELECT §date_diff('decade', d, ts) FROM t": "date_diff in decade",
    "SELECT §first(a) FROM t": "first without ORDER BY",
    "SELECT id FROM t POSITIONAL JOIN §u": "POSITIONAL",
    "SELECT id FROM t TABLESAMPLE §5 ROWS": "a sample of rows",
    "SELECT id FROM t LIMIT §10%": "LIMIT of a share of the rows",
    "SELECT string_agg(§s) FROM t": "string_agg without ORDER BY",
    "SELECT §format('{:.2f}', x) FROM t": "{:.2f} in format",
    "SELECT §s->>'$.*' FROM t": "the JSON path",
    "SELECT §ts AT TIME ZONE 'CET' FROM t": "the time zone CET",
    "SELECT §'é'::BLOB FROM t": "as a BLOB",
    "SELECT §'POINT ZM (1 2 3 4)'::GEOMETRY FROM t": "the cast to GEOMETRY",
    "SELECT §snapshots() FROM t": "snapshots as a value",
    "PIVOT §t ON s USING sum(b) GROUP BY a": "PIVOT without the values",
    "SELECT t.a FROM t ASOF JOIN §u ON t.a >= u.id": "ASOF",
    "SELECT id, §twice(a) FROM t": "twice",
    "SELECT id, §a::BIT FROM t": "cast",
    "SELECT INTERVAL 1 DAY AS §i": "interval",
    "SELECT upper(§s)[2] FROM t": "item of a text",
    "SELECT §7.5 // a FROM t": "// of decimal",
    "SELECT §1e-10::VARCHAR FROM t": "text of double",
    "SELECT list_filter(l, (§x, i) -> i > 1) FROM t": "lambda with an index",
    "SELECT unnest(l), §unnest([1, 2]) FROM t": "unnest twice",
    "SELECT §unnest({'a': 1})": "unnest of this form",
    "SELECT max(§a, 2) FROM t": "max of this form",
    "SELECT any_value(§a ORDER BY b) FROM t": "any_value of this form",
    "SELECT §'1.7'::INT": "'1.7' as a whole number",
    "SELECT §l || [1] FROM t": "|| of lists",
    "SELECT §array(SELECT a FROM t)": "a subquery's rows",
    "SELECT sum(a) OVER (ORDER BY b GROUPS §1 PRECEDING) FROM t": "GROUPS",
    "SELECT row_number() OVER (ORDER BY b ROWS §1 PRECEDING) FROM t": "with a frame",
    "SELECT §170141183460469231731687303715884105727": "38 digits",
    "SELECT -id AS id FROM t ORDER BY abs(§id) LIMIT 1": "ORDER BY",
    "SELECT id FROM t LIMIT (SELECT max(§id) FROM t)": "LIMIT or OFFSET of a query",
    "SELECT §row_number() OVER () AS n FROM t": "row_number in a window without ORDER BY",
    "SELECT §rank() OVER (PARTITION BY f) AS n FROM t": "rank in a window without ORDER BY",
    "SELECT §lag(a) OVER w AS n FROM t WINDOW w AS (PARTITION BY f)": "without ORDER BY",
    "SELECT id, §unnest(l) + 1 AS n FROM t": "unnest inside of an expression",
    "SELECT coalesce(upper(§s), 0) FROM t": "coalesce of a text and what is not",
    "SELECT upper(s) AS n FROM t UNION ALL SELECT §1": "UNION of texts and other values",
    "SELECT id FROM t WHERE §s::UUID = 'x'": "a UUID in",
    "SELECT lower(§s::UUID) FROM t": "a UUID in",
    "SELECT (§a > 1)::UTINYINT FROM t": "the cast of a condition",
    "SELECT TRY_CAST(§s AS UUID) FROM t": "TRY_CAST to UUID",
    "SELECT * FROM §glob('*.csv')": "glob",
}

# What hangs on the type of a column is refused when Spark analyses it.
REFUSED_BY_TYPE = {
    "SELECT s[1:2] FROM t": "slice",
    "SELECT x::VARCHAR FROM t": "text of",
    "SELECT epoch_ms(b) FROM t": "epoch_ms of",
    "SELECT ts - DATE '2020-01-01' FROM t": "difference",
    "SELECT ts - d FROM t": "difference",
    "SELECT a->>'x' FROM t": "JSON of what is not a text",
    "SELECT s + INTERVAL 1 DAY FROM t": "sum with an interval of timestamp, string",
    "SELECT time_bucket(INTERVAL 1 DAY, d) FROM t": "time_bucket of date",
    "SELECT x // 2 FROM t": "// of float",
    "SELECT f::UTINYINT FROM t": "cast to UTINYINT of boolean",
    "SELECT max(st) FROM t": "max of struct",
    "SELECT arg_min(id, l) FROM t": "arg_min of struct, array",
    "SELECT greatest(st, st) FROM t": "greatest of struct",
    "SELECT id FROM t ORDER BY st LIMIT 1": "ORDER BY of struct",
    "SELECT row_number() OVER (ORDER BY l) FROM t": "ORDER BY of struct, array",
    "SELECT list(id ORDER BY st) FROM t": "ORDER BY of struct",
    "SELECT list_max([st]) FROM t": "list_max of",
    "SELECT id FROM t WHERE st < {'p': 1, 'q': 'x'}": "< of struct",
    "SELECT [1] >= l FROM t": ">= of struct, array",
    "SELECT id FROM t WHERE l BETWEEN [1] AND [5]": "BETWEEN of struct, array",
    "SELECT id FROM t WHERE st > (SELECT arg_max(st, id) FROM t)": "> of struct",
    "SELECT list_filter([l], e -> e < [2]) FROM t": "< of struct",
    "SELECT coalesce(s, a) FROM t": "coalesce of a text and what is not",
    "SELECT CASE WHEN f THEN s ELSE 0 END FROM t": "CASE of a text and what is not",
    "SELECT s FROM t UNION ALL SELECT a FROM t": "UNION of texts and other values",
    "SELECT a FROM t EXCEPT SELECT s FROM t": "EXCEPT of texts",
    "SELECT a, b FROM t INTERSECT SELECT a, s FROM t": "INTERSECT of texts",
    "SELECT d FROM t UNION SELECT s FROM t": "UNION of texts",
    "SELECT NULL AS k UNION ALL SELECT s FROM t UNION ALL (SELECT a FROM t LIMIT 1)": "UNION of",
    "SELECT id, w AS a FROM u UNION ALL SELECT * FROM (SELECT id, a FROM t)": "UNION of texts",
    "WITH c AS (SELECT id, s FROM t) SELECT * FROM c UNION ALL SELECT id, a FROM t": "UNION of",
    "SELECT count(*) FROM (SELECT s FROM t UNION SELECT a FROM t)": "UNION of texts",
    "SELECT id FROM t WHERE s IN (SELECT s FROM t UNION SELECT a FROM t)": "UNION of texts",
    "SELECT [s] AS l FROM t UNION ALL SELECT [a] FROM t": "UNION of texts",
    "SELECT {'p': s} AS l FROM t UNION ALL SELECT {'p': a} FROM t": "UNION of texts",
    "SELECT id FROM t UNION (WITH z AS (SELECT s FROM t) FROM z UNION FROM z)": "UNION of texts",
    "SELECT st, id FROM t ORDER BY 1": "ORDER BY of struct",
    "SELECT id, l FROM t ORDER BY ALL": "ORDER BY ALL or a position beside a list or struct",
    "SELECT * FROM t ORDER BY 1": "ORDER BY ALL or a position",
    "SELECT l AS k FROM t UNION ALL SELECT l FROM t ORDER BY 1": "ORDER BY of struct",
}
