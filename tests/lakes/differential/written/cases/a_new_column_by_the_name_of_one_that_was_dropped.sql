-- | Rows of the transaction got a name mapping that took the dropped column's values for the new one's.
-- catalogs: sqlite
-- inline: 0
CREATE TABLE t (i BIGINT, d VARCHAR, f INT);
BEGIN;
INSERT INTO t VALUES (0, 'a', 1), (1, 'b', 2);
ALTER TABLE t DROP COLUMN d;
ALTER TABLE t ADD COLUMN d VARCHAR;
ALTER TABLE t RENAME COLUMN f TO g;
UPDATE t SET d = 'c' WHERE g = 1;
SELECT i FROM t WHERE d IS NULL;
COMMIT;
SELECT i FROM t WHERE d IS NULL;
@duckdb SELECT i FROM t WHERE d <> 'b';
