"""Views of DuckDB: those that are read, those that are refused, and queries over some."""

from __future__ import annotations

SETUP = (
    "CREATE TABLE t (id INTEGER, a INTEGER, b BIGINT, x DOUBLE, m DECIMAL(10, 2), s VARCHAR, "
    "d DATE, ts TIMESTAMP, l INTEGER[], st STRUCT(p INTEGER, q VARCHAR), f BOOLEAN)",
    "INSERT INTO t VALUES "
    "(1, 7, 7, 2.5, 2.50, 'abc', '2020-01-31', '2020-01-31 10:20:30', [1, 2, 3], "
    "{'p': 1, 'q': 'one'}, true), "
    "(2, -7, 3, 3.5, -2.50, 'a_c', '2020-02-29', '2020-02-29 23:59:59.5', [5, NULL], "
    "{'p': NULL, 'q': 'two'}, false), "
    "(3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), "
    "(4, 0, -1, -0.5, 10.25, '', '1999-12-31', '1999-12-31 00:00:00', [], "
    "{'p': 4, 'q': NULL}, true)",
    "CREATE TABLE u (id INTEGER, w VARCHAR)",
    "INSERT INTO u VALUES (1, 'one'), (1, 'uno'), (9, 'nine')",
    "CREATE TABLE k (w VARCHAR, id INTEGER)",
    "INSERT INTO k VALUES ('k', 1), ('kk', 4)",
    "CREATE SCHEMA s",
    "CREATE TABLE s.t (z INTEGER)",
    "INSERT INTO s.t VALUES (100)",
    "CREATE VIEW plain AS SELECT id, a FROM t",
    "CREATE VIEW over AS SELECT id * 10 AS ten FROM plain WHERE a IS NOT NULL",
    "CREATE VIEW renamed(first, second) AS SELECT id, a, b FROM lk.main.t",
    "CREATE VIEW s.own AS SELECT * FROM t",
    "CREATE VIEW s.other AS SELECT max(ten) AS top FROM over",
    "INSERT INTO t (id, a) VALUES (5, 1)",
    "CREATE VIEW pinned AS SELECT count(*) AS n FROM t AT (VERSION => 3)",
    "CREATE VIEW loop_a AS SELECT 1 AS x",
    "CREATE VIEW loop_b AS SELECT * FROM loop_a",
    "CREATE OR REPLACE VIEW loop_a AS SELECT * FROM loop_b",
    "CREATE MACRO twice(x) AS x * 2",
    "CREATE VIEW macros AS SELECT id, twice(a + 1) AS t2 FROM t",
)

VIEWS = (
    "SELECT id, a / 2 AS h, a / b AS q, b / 0 AS inf FROM t",
    "SELECT id, a // 2, b // -2, a % 4, a // 0, b % 0 FROM t",
    "SELECT m / 3 AS v, a + b, a - b, a * b, -a FROM t",
    "SELECT avg(m), avg(a), sum(b), sum(m), count(*), count(s), min(s), max(d) FROM t",
    "SELECT s || 'x', concat(s, a, 'z'), upper(s), lower(s), length(s) FROM t",
    "SELECT substring(s, 2, 2), substr(s, 2), left(s, 2), right(s, 1), trim(s) FROM t",
    "SELECT replace(s, 'a', 'b'), strpos(s, 'c'), contains(s, 'b'), starts_with(s, 'a') FROM t",
    "SELECT l[1], l[2], l[9], l[-1], array_length(l), list_contains(l, 2) FROM t",
    "SELECT [a, 2] AS pair, {'k': a, 'j': s} AS st2, st.p, st['q'] FROM t",
    "SELECT list_transform(l, lambda y: y * 2) AS d, list_filter(l, lambda y: y > 1) AS f FROM t",
    "SELECT [y + 1 FOR y IN l IF y > 1] AS c FROM t",
    "SELECT d + 1, d - 1, d + INTERVAL 1 DAY AS i, ts - INTERVAL '2' HOUR AS j FROM t",
    "SELECT year(d), month(d), extract(day FROM ts), hour(ts), quarter(d), week(d) FROM t",
    "SELECT dayofweek(d), isodow(d), last_day(d), date_trunc('month', ts) FROM t",
    "SELECT date_trunc('year', d), date_trunc('day', ts), datediff('day', d, ts) FROM t",
    "SELECT a::BIGINT, x::INTEGER, m::INTEGER, a::VARCHAR, a::DOUBLE, a::BOOLEAN FROM t",
    "SELECT m::VARCHAR, d::VARCHAR, ts::DATE, '2020-01-01'::DATE, '12'::INTEGER FROM t",
    "SELECT * EXCLUDE (l, st) FROM t",
    "SELECT CASE WHEN a > 1 THEN 'big' ELSE s END, coalesce(s, 'none'), nullif(a, 7) FROM t",
    "SELECT if(a > 1, 2, 3), ifnull(a, 0), greatest(a, 2), least(a, 2) FROM t",
    "SELECT a BETWEEN 1 AND 7, a IN (1, 7), s LIKE 'a_c', s ILIKE 'A%', NOT f FROM t",
    "SELECT a IS DISTINCT FROM 7, s SIMILAR TO 'a.c', regexp_matches(s, 'b') FROM t",
    "SELECT regexp_extract(s, '(a)(b)'), regexp_extract(s, '(a)(b)', 2), s ~ 'a' FROM t",
    "SELECT id, row_number() OVER (ORDER BY a DESC, id), lag(a) OVER (ORDER BY id) FROM t",
    "SELECT id, sum(a) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS w FROM t",
    "SELECT id, first_value(a) OVER (ORDER BY a), rank() OVER (ORDER BY f) FROM t",
    "SELECT round(x), round(m, 1), floor(x), ceil(m), abs(a), sign(x), x ^ 2, pow(a, 2) FROM t",
    "SELECT isnan(x), isinf(x), x = 'nan'::DOUBLE FROM t",
    "SELECT a & 3, a | 8, xor(a, 1) FROM t",
    "SELECT s, count(*) AS n FROM t GROUP BY ALL HAVING count(*) > 0 ORDER BY ALL",
    "SELECT a % 2 AS r, count(*) FILTER (WHERE a > 1) AS n FROM t GROUP BY r",
    "SELECT a / 2, count(*) FROM t GROUP BY a / 2",
    "SELECT * FROM plain QUALIFY row_number() OVER (ORDER BY a) = 1",
    "SELECT id, a FROM t ORDER BY a DESC LIMIT 2",
    "SELECT id, a FROM t ORDER BY a LIMIT 2",
    "SELECT bool_and(f), bool_or(f), count(DISTINCT a) FROM t",
    "SELECT id, unnest(l) AS e FROM t",
    "SELECT t.id, k.n FROM t, unnest(t.l) AS k(n)",
    'SELECT a AS "weird `name", s AS "Ünï {x}" FROM t',
    "SELECT 1, 2.5, 'it''s', NULL, TRUE, DATE '2020-01-01', 10000000000, 'back\\slash'",
    "SELECT id IN (SELECT id FROM u) AS i, (SELECT max(w) FROM u) AS m FROM t",
    "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.id = t.id)",
    "SELECT * FROM t JOIN u USING (id)",
    "SELECT * FROM plain LEFT JOIN k USING (id)",
    "SELECT * FROM k JOIN u USING (id)",
    "SELECT plain.*, u.w FROM plain FULL JOIN u ON plain.id = u.id",
    "SELECT * FROM plain SEMI JOIN u USING (id)",
    "SELECT * FROM plain ANTI JOIN u ON plain.id = u.id",
    "WITH c AS (SELECT a FROM t) SELECT a FROM c UNION ALL SELECT b FROM t EXCEPT SELECT 7",
    "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3) FROM r",
    "SELECT * FROM (VALUES (1, 'a'), (2, NULL)) v(k, n)",
    "SELECT f, a % 2 AS r, count(*) FROM t GROUP BY ROLLUP (f, r)",
    "SELECT a AS aa, aa + 1 AS bb FROM t",
    'SELECT id, id, id AS "ID", id AS id_1 FROM t',
    "SELECT max(a), s FROM t GROUP BY s ORDER BY 1 NULLS FIRST LIMIT 1 OFFSET 1",
    "SELECT main.t.a, lk.main.t.b FROM lk.main.t",
    "SELECT split_part(s, '_', 1), repeat(s, 2), lpad(s, 5, '*'), concat_ws('-', s, a) FROM t",
)

# Each with words of the reason.
REFUSED = {
    "SELECT * FROM t TABLESAMPLE 10%": "TABLESAMPLE",
    "SELECT * REPLACE (a + 1 AS a) FROM t": "REPLACE",
    "SELECT list(a) FROM t": "array_agg",
    "SELECT hash(a) FROM t": "hash",
    "SELECT * FROM range(3)": "generate_series",
    "SELECT l[1:2] FROM t": "SLICE",
    "SELECT DISTINCT ON (s) s, a FROM t": "DISTINCT ON",
    "SELECT * FROM t POSITIONAL JOIN u": "POSITIONAL",
    "SELECT a FROM t UNION BY NAME SELECT b FROM t": "BY NAME",
    "SELECT COLUMNS('a|b') FROM t": "COLUMNS",
    "SELECT regexp_replace(s, 'a', 'b') FROM t": "regexp_replace",
    "SELECT TRY_CAST(s AS INTEGER) FROM t": "TRY_CAST",
    "SELECT d - DATE '2020-01-01' FROM t": "interval",
    "SELECT ts - ts FROM t": "interval",
    "SELECT x // 2 FROM t": "div",
    "SELECT * FROM t NATURAL JOIN u": "NATURAL",
    "PIVOT t ON s IN ('abc') USING sum(a)": "PIVOT",
    "SELECT first(a) FROM t": "first",
}

# These show when the rows are read: only then does Spark see the type.
LATE = {
    "SELECT x::VARCHAR FROM t": "text of",
    "SELECT round(x, 1) FROM t": "round of",
}

QUERIES = (
    "SELECT * FROM over",
    "SELECT first, second, b FROM renamed",
    "SELECT * FROM s.own",
    "SELECT top FROM s.other",
    "SELECT n FROM pinned",
    "SELECT count(*) FROM plain AT (VERSION => 12)",
    "SELECT p.id, o.ten FROM PLAIN p JOIN over o ON o.ten = p.id * 10",
    "WITH plain AS (SELECT 1 AS z) SELECT z FROM plain",
    "SELECT id, t2 FROM macros",
    "SELECT (SELECT max(ten) FROM over) AS m, plain.id FROM plain",
)
