-- The delete file that a flush of inlined rows makes tells of several snapshots, and has no partial_max.
-- inline: 10
CREATE TABLE t (i INTEGER, s VARCHAR);
INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c');
UPDATE t SET s = 'bb' WHERE i = 2;
DELETE FROM t WHERE i = 1;
UPDATE t SET s = 'cc' WHERE i = 3;
CALL ducklake_flush_inlined_data('lk');
DELETE FROM t WHERE i = 3;
INSERT INTO t VALUES (4, 'd');
