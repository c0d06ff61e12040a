-- Views of DuckDB's dialect, over tables that change.
-- catalogs: sqlite
CREATE TABLE t AS SELECT range AS i, 'v' || range AS v FROM range(30);
CREATE VIEW plain AS SELECT * FROM t;
CREATE VIEW renamed(x, y) AS SELECT i, v FROM t WHERE i < 5;
CREATE VIEW computed AS SELECT i % 3 AS g, count(*) AS n, sum(i)::BIGINT AS total FROM t GROUP BY ALL;
CREATE SCHEMA s;
CREATE VIEW s.deep AS SELECT p.i, c.n FROM plain p JOIN computed c ON p.i = c.g;
CREATE VIEW casted AS SELECT i::VARCHAR AS t, i::DOUBLE / 4 AS q FROM t;
INSERT INTO t VALUES (100, 'hundred');
DELETE FROM t WHERE i = 1;
CREATE VIEW dropped AS SELECT 1 AS one;
DROP VIEW dropped;
CREATE OR REPLACE VIEW renamed(x) AS SELECT v FROM t WHERE i > 25;
COMMENT ON VIEW plain IS 'all of it';
-- query: SELECT i, v FROM t WHERE i > 20
-- query: SELECT count(*) AS n FROM t
-- query: SELECT i, v FROM t AT (VERSION => 1) WHERE i < 3
