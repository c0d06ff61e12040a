-- Rows of a file that a transaction updates and then deletes.
-- inline: 0
-- catalogs: sqlite
CREATE TABLE t AS SELECT range AS k, 'a' AS v FROM range(5);
BEGIN;
UPDATE t SET v = 'b' WHERE k < 3;
DELETE FROM t WHERE k = 1;
COMMIT;
