-- One inlined table per schema version; a read puts them together under its snapshot's columns.
-- inline: 50
CREATE TABLE t(a INT, b VARCHAR, s STRUCT(x INT, y VARCHAR));
INSERT INTO t VALUES (1, 'one', {'x': 1, 'y': 'p'}), (2, NULL, NULL);
ALTER TABLE t ADD COLUMN c INT DEFAULT 7;
INSERT INTO t VALUES (3, 'three', {'x': 3, 'y': NULL}, NULL), (4, 'four', NULL, 40);
ALTER TABLE t RENAME COLUMN b TO bb;
UPDATE t SET bb = 'renamed' WHERE a = 1;
ALTER TABLE t DROP COLUMN c;
INSERT INTO t VALUES (5, 'five', {'x': 5, 'y': 'q'});
ALTER TABLE t ADD COLUMN c VARCHAR DEFAULT 'again';
INSERT INTO t(a) VALUES (6);
ALTER TABLE t ALTER COLUMN a SET DATA TYPE BIGINT;
INSERT INTO t VALUES (9000000000, 'big', NULL, NULL);
ALTER TABLE t ADD COLUMN s.z DOUBLE;
INSERT INTO t VALUES (8, 'eight', {'x': 8, 'y': 'r', 'z': 1.5}, 'c8');
ALTER TABLE t RENAME COLUMN s.x TO xx;
ALTER TABLE t DROP COLUMN s.y;
DELETE FROM t WHERE a IN (2, 4);
UPDATE t SET c = 'u' WHERE a >= 5;
ALTER TABLE t RENAME TO renamed;
INSERT INTO renamed(a, bb) VALUES (10, 'ten');
DELETE FROM renamed WHERE a = 1;
-- check
CALL ducklake_flush_inlined_data('lk');
INSERT INTO renamed(a, bb) VALUES (11, 'after');
UPDATE renamed SET bb = 'x' WHERE a IN (3, 11);
CALL ducklake_flush_inlined_data('lk');
