-- Merged files are read at snapshots inside them; rewritten ones keep their row ids.
-- catalogs: sqlite
-- writers: 1.5.5, 1.4.4
-- inline: 0
CREATE TABLE t(i INT, v VARCHAR);
INSERT INTO t VALUES (1, 'a'), (2, 'b');
INSERT INTO t VALUES (3, 'c');
INSERT INTO t VALUES (4, 'd'), (5, 'e'), (6, 'f');
CALL ducklake_merge_adjacent_files('lk');
INSERT INTO t VALUES (7, 'g');
DELETE FROM t WHERE i = 4;
INSERT INTO t VALUES (8, 'h');
UPDATE t SET v = 'uu' WHERE i IN (2, 7);
INSERT INTO t VALUES (9, 'i'), (10, 'j');
INSERT INTO t VALUES (11, 'k');
CALL ducklake_merge_adjacent_files('lk');
DELETE FROM t WHERE i IN (1, 9);
CALL ducklake_rewrite_data_files('lk', delete_threshold => 0);
INSERT INTO t VALUES (12, 'l');
CALL ducklake_merge_adjacent_files('lk');
UPDATE t SET v = 'last' WHERE i > 9;
CALL ducklake_cleanup_old_files('lk', cleanup_all => true);
