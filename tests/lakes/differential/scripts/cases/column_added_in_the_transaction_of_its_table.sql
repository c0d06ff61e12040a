-- The rows were inserted before the column, in one transaction with it: they have its default.
-- writers: 1.5.5, 1.4.4
-- catalogs: sqlite
-- inline: 0
BEGIN;
CREATE TABLE t(i INT);
INSERT INTO t VALUES (1);
ALTER TABLE t ADD COLUMN j INT DEFAULT 3;
INSERT INTO t VALUES (2, 2);
COMMIT;
INSERT INTO t VALUES (3, NULL);
