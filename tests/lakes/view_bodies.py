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
    "CREATE TABLE e (id INTEGER, w VARCHAR, g VARCHAR, m VARCHAR)",
    "INSERT INTO e VALUES (1, ' 12 ', '2020-01-31', 'a' || chr(10) || 'b'), "
    "(2, '-7', '2020-02-30', 'b' || chr(10)), (3, '+5', 'abc', ' [b'), (4, '1.5', '', 'a.b'), "
    "(5, '-2.5', NULL, 'axb'), (6, '', '2020-13-01', ''), (7, NULL, '2020-1', NULL), "
    "(8, '300', 'x', chr(13) || 'ab'), (9, '99999999999', 'y', chr(11) || 'b'), "
    "(10, '12abc', 'z', 'a' || chr(13) || 'b')",
)

VIEWS = (
    "SELECT * FROM range(3)",
    "SELECT * FROM (VALUES (1, 'a'))",
    "SELECT s ~ 'ab', s ~ 'ab.*', s !~ 'a' FROM t",
    "SELECT id, a / 2 AS h, a / b AS q, b / 0 AS inf FROM t",
    "SELECT id, a // 2, b // -2, a % 4, a // 0, b % 0 FROM t",
    "SELECT m / 3 AS v, a + b, a - b, a * b, -a FROM t",
    "SELECT avg(m), avg(a), sum(b), sum(m), count(*), count(s), min(s), max(d) FROM t",
    "SELECT s || 'x', concat(s, a, 'z'), upper(s), lower(s), length(s) FROM t",
    "SELECT substring(s, 2, 2), substr(s, 2), left(s, 2), right(s, 1), trim(s) FROM t",
    "SELECT replace(s, 'a', 'b'), strpos(s, 'c'), contains(s, 'b'), starts_with(s, 'a') FROM t",
    "SELECT l[1], l[2], l[9], l[-1], array_length(l), list_contains(l, 2) FROM t",
    "SELECT l[-2:] AS ends FROM t",
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
    "SELECT f, string_agg(DISTINCT s, '+' ORDER BY s) AS p FROM t GROUP BY f",
    "SELECT list(a ORDER BY id) FILTER (WHERE a > 0) FROM t",
    "SELECT list(id ORDER BY f, x DESC, id) FROM t",
    "SELECT TRY_CAST(s AS INTEGER), TRY_CAST(s AS DOUBLE), TRY_CAST(s AS DATE) FROM t",
    "SELECT TRY_CAST(g AS DATE), TRY_CAST(g AS INTEGER) FROM e WHERE id <> 7",
    "SELECT date_diff('month', d, ts), date_diff('year', d, DATE '2024-01-01'), "
    "date_diff('quarter', DATE '2024-01-01', d) FROM t",
    "SELECT d + INTERVAL '1 month', ts - INTERVAL '90 minutes', ts + INTERVAL 2 YEAR FROM t",
    "SELECT struct_pack(x := a, y := s) AS p, st.*, (st).q FROM t",
    "SELECT list_sort(l), list_sum(l), list_concat(l, [1]), list_concat(l, l), "
    "list_position(l, 2), flatten([l, l]), list_reverse(l), list_max(l), list_min(l) FROM t",
    "SELECT extract(second FROM ts), extract(dow FROM d), weekofyear(d), dayofmonth(d), "
    "year(ts), isodow(ts) FROM t",
    "SELECT w, TRY_CAST(w AS INTEGER) AS i, TRY_CAST(w AS TINYINT) AS j, TRY_CAST(w AS "
    "DOUBLE) FROM e",
    "SELECT regexp_replace(s, '[a-c]', 'X'), regexp_replace(s, '[a-c]', 'X', 'g'), "
    r"regexp_replace(s, '(a)(.)', '<\2\1>0$'), regexp_replace(s, '(a)(.)', '\20', 'g') FROM "
    "t",
    r"SELECT regexp_matches(m, 'a.b'), regexp_matches(m, 'b$'), regexp_matches(m, '^\s'), "
    r"regexp_extract(m, '\s+'), regexp_extract(m, '[\s\[]+b'), regexp_full_match(m, "
    "'a[^x]b'), regexp_replace(m, 'b$', 'X') FROM e",
    "SELECT strftime(ts, '%Y-%m-%d %H:%M:%S.%f'), strftime(d, '%d/%m/%Y week'), "
    "strftime(ts, '%b %B %a %A %j %-d.%-m %%') FROM t",
    "SELECT strptime('2020-01-02', '%Y-%m-%d'), strptime('03.04.2021 05:06:07', '%d.%m.%Y "
    "%H:%M:%S')",
    "SELECT string_agg(s, ',' ORDER BY id DESC), list(a ORDER BY id), array_agg(s ORDER BY "
    "a DESC NULLS FIRST), string_agg(s ORDER BY id) FROM t",
    "SELECT string_agg(s, ',' ORDER BY id), list(a ORDER BY id), first(a ORDER BY id) FROM "
    "t WHERE id > 100",
    "SELECT first(a ORDER BY id), last(s ORDER BY id), first(s ORDER BY a), arg_max(s, a), "
    "arg_min(s, b), max_by(id, x), median(a), median(x) FROM t",
    "SELECT DISTINCT ON (f) f, id FROM t ORDER BY f, id DESC",
    "SELECT DISTINCT ON (g) f AS g, id AS k, s FROM t ORDER BY k LIMIT 2",
    "SELECT l[1:2], l[2:], l[:2], l[5:9], list_slice(l, 1, 2), l[:], len(l), len(s), "
    "length(l) FROM t",
    "SELECT date_diff('hour', d, ts), date_diff('minute', d, ts), date_diff('second', ts, "
    "TIMESTAMP '2020-03-01 00:00:00'), date_diff('day', ts, TIMESTAMP '2020-03-01 "
    "00:00:00') FROM t",
    "SELECT id, nth_value(a, 2) OVER (PARTITION BY f ORDER BY id ROWS BETWEEN UNBOUNDED "
    "PRECEDING AND UNBOUNDED FOLLOWING) AS n, last_value(a) OVER (ORDER BY id) FROM t",
    "SELECT id, avg(a) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS m, "
    "sum(a) OVER (ORDER BY b RANGE BETWEEN 2 PRECEDING AND CURRENT ROW) AS r FROM t",
    "SELECT f, s, sum(a), GROUPING(f) FROM t GROUP BY GROUPING SETS ((f), (s), ())",
    "SELECT f, s, sum(a) FROM t GROUP BY CUBE (f, s)",
    "SELECT date_part('dow', d), date_part('epoch', ts), dayofyear(d), second(ts), "
    "epoch(ts), monthname(d), dayname(d), make_date(2020, 1, 2), epoch(d), "
    "date_part('doy', ts) FROM t",
    "SELECT date_trunc('hour', ts), date_trunc('minute', ts), date_trunc('second', ts), "
    "date_trunc('week', d) FROM t",
    "SELECT array_to_string(l, ','), list_contains(l, a), list_contains(l, nullif(id, 2)), "
    "list_contains(l, 5) FROM t",
    "SELECT ltrim(s, 'a'), rtrim(s, 'c'), trim(s, 'ac'), md5(s), string_split(s, '_'), "
    "string_split(s, '.'), prefix(s, 'a'), suffix(s, 'c'), rpad(s, 5, '-'), instr(s, 'b') "
    "FROM t",
    "SELECT ln(abs(b)), log10(id), log2(id), log(id), pi() FROM t",
    "SELECT sum(a) FILTER (WHERE a > 0), count(DISTINCT s), sum(DISTINCT a), count(*) "
    "FILTER (WHERE f), avg(a) FILTER (WHERE f) FROM t",
    "SELECT id FROM t WHERE a IN (SELECT b FROM t) OR s NOT IN ('abc') OR NOT EXISTS "
    "(SELECT 1 FROM u WHERE u.id = t.id)",
    "SELECT id, id FROM t QUALIFY row_number() OVER (PARTITION BY f ORDER BY id DESC) = 1",
    "SELECT f, list(a ORDER BY id)[1] AS p, len(list(a ORDER BY id)) AS n, string_agg(s, "
    "', ' ORDER BY id) FILTER (WHERE a IS NOT NULL) AS q FROM t GROUP BY f HAVING count(*) "
    "> 0",
    "SELECT date_trunc('month', ts) AS m, count(*) AS n, sum(x) FILTER (WHERE x > 0) AS z "
    "FROM t GROUP BY date_trunc('month', ts) ORDER BY m",
    "SELECT strftime(d, '%Y-%m') AS m, max(a) AS k FROM t GROUP BY strftime(d, '%Y-%m')",
    "SELECT (SELECT string_agg(w, '|' ORDER BY w) FROM u WHERE u.id = t.id) AS q, id FROM t",
    "SELECT id, (SELECT count(*) FROM u WHERE u.id = t.id) AS n FROM t",
    "SELECT a::HUGEINT AS h, CAST(a AS SMALLINT) AS i FROM t",
    "SELECT id, count(*) OVER (PARTITION BY f) AS n, lag(a, 1, 0) OVER (ORDER BY id) AS l, "
    "dense_rank() OVER (ORDER BY f NULLS FIRST) AS r, percent_rank() OVER (ORDER BY id) AS "
    "p FROM t",
    "SELECT v.* FROM (VALUES (1, 'a', [1]), (2, NULL, NULL)) v(x, y, z) LIMIT 5 OFFSET 1",
    "SELECT round(a, 1) AS r, mod(a, 4) AS m, abs(m) AS v, ceil(m) AS c, floor(x) AS fl, "
    "greatest(a, NULL) AS g, least(s, 'b') AS le FROM t",
    "SELECT DISTINCT ON (t.f, s IS NULL) t.id, u.w FROM t LEFT JOIN u ON u.id = t.id ORDER "
    "BY t.f, s IS NULL, t.id DESC, u.w",
    "SELECT concat_ws(', ', s, NULL, 'x') AS c, substring(s, 2, 1) AS u, split_part(s, "
    "'b', 2) AS p, split_part(s, 'zz', 1) AS q, lpad(s, 2, '*') AS l, replace(s, '', 'x') "
    "AS r FROM t",
    "SELECT id, x FROM t WHERE x > 'nan'::DOUBLE OR x <> 2.5",
    "SELECT t.id, k.w FROM t LEFT JOIN k ON t.id = k.id AND k.w LIKE 'k%' WHERE t.id NOT "
    "IN (SELECT id FROM u)",
    "SELECT upper('stra\u00dfe') AS a, lower('\u03a3\u0391\u03a3 \u03a3') AS b, "
    "trim('\u00a0x\u3000') AS c, ltrim('\u2003 x ') AS d, upper(NULL::VARCHAR) AS e",
    "SELECT trim(w) AS a, rtrim(w) || '.' AS b, ltrim(w) AS c, upper(m) AS d FROM e",
    "SELECT a::HUGEINT AS h, CAST(a AS SMALLINT) AS i, x::HUGEINT AS j, m::HUGEINT AS k FROM t",
    "SELECT regexp_extract(s, '(a)|(b)', 2) AS b, regexp_replace(s, '[^a-z]', '', 'g') AS c FROM t",
    "SELECT make_date(year(d), month(d), 1) AS m, epoch(ts)::BIGINT AS e, "
    "(d + INTERVAL 7 DAY)::DATE AS w, d + INTERVAL 1 YEAR AS y FROM t",
    "SELECT list_concat(NULL, [1]) AS b, [1, 2, 3][2:3] AS c, len('abc') AS e, "
    "array_to_string([1, NULL, 3], '-') AS g",
    # What has no name inside a view is called there as DuckDB calls it.
    "SELECT * FROM (SELECT id, count(*), max(m) FROM t GROUP BY id)",
    'SELECT id, "count_star()" AS n FROM (SELECT id, count(*) FROM t GROUP BY id)',
    "WITH c AS (SELECT id + 1, upper(s), t.a FROM t) SELECT * FROM c",
    "SELECT * FROM (SELECT * FROM (SELECT a * 2, 'q' || s, 7, NULL FROM t) o) p",
    "SELECT * FROM (SELECT a * 10 FROM t UNION ALL SELECT 5)",
    "SELECT * FROM (SELECT DISTINCT ON (f) a - 1, s FROM t ORDER BY f, a)",
    "SELECT DISTINCT ON (f) a - 1, s FROM t ORDER BY f, a",
    'SELECT * FROM (SELECT min(a), min(a), "max"(s) FROM t)',
    "SELECT * FROM (SELECT k.*, id + 2 FROM k), (SELECT 1 EXCEPT SELECT 2)",
    "SELECT * FROM (SELECT twice(id), CASE WHEN f THEN 'yes' END, a::BIGINT, st.q FROM t)",
    "SELECT id FROM t WHERE a > (SELECT min(a) FROM t) AND EXISTS (SELECT 1 FROM u)",
    "SELECT a FROM t UNION BY NAME SELECT b FROM t",
    "SELECT d - DATE '2020-01-01', date_diff('week', d, ts), round(x, 1), round(m, 1) FROM t",
    "SELECT reverse(s), hex(s), '{\"a\": [1, null]}'::JSON->>'$.a[0]' AS j, MAP {'k': a} FROM t",
    "SELECT ts + INTERVAL '1 month 2 days' AS m, time_bucket(INTERVAL '15 minutes', ts) FROM t",
)

# Each with words of the reason.
REFUSED = {
    "SELECT * FROM t TABLESAMPLE 5 ROWS": "sample of rows",
    "SELECT * REPLACE (a + 1 AS a) FROM t": "REPLACE",
    "SELECT list(a) FROM t": "list without ORDER BY",
    "SELECT hash(a) FROM t": "hash",
    "SELECT * FROM glob('*.csv')": "glob",
    "SELECT x || 'x' FROM t": "concatenation of float",
    "SELECT DISTINCT ON (s) s, a FROM t": "DISTINCT ON",
    "SELECT * FROM t POSITIONAL JOIN u": "POSITIONAL",
    "SELECT COLUMNS('a|b') FROM t": "COLUMNS",
    "SELECT ts - ts FROM t": "difference of date",
    "SELECT x // 2 FROM t": "// of float",
    "SELECT * FROM t NATURAL JOIN u": "NATURAL",
    "PIVOT t ON s IN ('abc') USING sum(a)": "PIVOT",
    "SELECT first(a) FROM t": "first without ORDER BY",
    "SELECT string_agg(s, ',') FROM t": "string_agg without ORDER BY",
    "SELECT list(a ORDER BY id) OVER (PARTITION BY f) FROM t": "window function",
    "SELECT DISTINCT ON (f) f, sum(a) FROM t GROUP BY f ORDER BY f": "DISTINCT ON",
    "SELECT regexp_replace(s, 'a*', 'x', 'g') FROM t": "can be empty",
    "SELECT regexp_matches(s, s) FROM t": "regular expression",
    "SELECT regexp_matches(s, '\\bab') FROM t": "regular expression",
    "SELECT regexp_matches(s, '(?i)AB') FROM t": "regular expression",
    "SELECT regexp_matches(s, '[[:alpha:]]') FROM t": "regular expression",
    "SELECT strftime(ts, '%c') FROM t": "%c in strftime",
    "SELECT strptime(s, '%d %B %Y') FROM t": "strptime with this format",
    "SELECT TRY_CAST(s AS DECIMAL(10, 2)) FROM t": "TRY_CAST to DECIMAL",
    "SELECT TRY_CAST(x AS INTEGER) FROM t": "TRY_CAST of",
    "SELECT median(m) FROM t": "median of",
    "SELECT age(ts, ts) FROM t": "age",
    # These hang on the type of a column.
    "SELECT x::VARCHAR FROM t": "text of",
}

QUERIES = (
    "SELECT * FROM over",
    "SELECT first, second, b FROM renamed",
    "SELECT * FROM s.own",
    "SELECT top FROM s.other",
    "SELECT n FROM pinned",
    "SELECT count(*) AS n FROM plain AT (VERSION => 12)",
    "SELECT p.id, o.ten FROM PLAIN p JOIN over o ON o.ten = p.id * 10",
    "WITH plain AS (SELECT 1 AS z) SELECT z FROM plain",
    "SELECT id, t2 FROM macros",
    "SELECT (SELECT max(ten) FROM over) AS m, plain.id FROM plain",
)
