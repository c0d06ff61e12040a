-- Inlined rows that are older than every snapshot that is left, under columns that no snapshot has any more.
-- catalogs: sqlite
-- inline: 10
CREATE TABLE t (k INTEGER, s VARCHAR, z INTEGER);
INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3);
ALTER TABLE t ALTER k TYPE BIGINT;
ALTER TABLE t ADD COLUMN x INTEGER DEFAULT 5;
ALTER TABLE t DROP COLUMN z;
ALTER TABLE t RENAME COLUMN s TO q;
INSERT INTO t VALUES (4, 'd', 1);
ALTER TABLE t ADD COLUMN s INTEGER;
CALL ducklake_expire_snapshots('lk', versions => [0, 1, 2, 3, 4, 5, 6, 7]);
INSERT INTO t VALUES (5, 'e', 1, 7);
