-- Everything in a row, with what is expired gone and the rest as it was.
-- catalogs: sqlite
-- inline: 5
CREATE TABLE t(i INT, p VARCHAR);
ALTER TABLE t SET PARTITIONED BY (p);
INSERT INTO t VALUES (1, 'x'), (2, 'y');
INSERT INTO t SELECT range, CASE WHEN range % 2 = 0 THEN 'x' ELSE 'y' END FROM range(10, 30);
INSERT INTO t SELECT range, 'x' FROM range(30, 40);
DELETE FROM t WHERE i IN (1, 12, 13);
CALL ducklake_flush_inlined_data('lk');
CALL ducklake_merge_adjacent_files('lk');
UPDATE t SET p = 'z' WHERE i < 15;
DELETE FROM t WHERE i > 35;
CALL ducklake_rewrite_data_files('lk', 't', delete_threshold => 0);
CALL ducklake_expire_snapshots('lk', versions => [2, 3]);
CALL ducklake_cleanup_old_files('lk', cleanup_all => true);
INSERT INTO t VALUES (50, 'x');
INSERT INTO t VALUES (51, 'x');
CALL ducklake_flush_inlined_data('lk');
CALL ducklake_merge_adjacent_files('lk');
CALL ducklake_expire_snapshots('lk', older_than => now());
CALL ducklake_cleanup_old_files('lk', cleanup_all => true);
CALL ducklake_delete_orphaned_files('lk', cleanup_all => true);
DELETE FROM t WHERE i = 50;
CHECKPOINT;
INSERT INTO t VALUES (60, NULL);
