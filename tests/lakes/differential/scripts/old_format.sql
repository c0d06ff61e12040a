-- What only 0.3 has: partial_file_info in both forms, compaction under its own names.
-- catalogs: sqlite
-- writers: 1.4.4
CREATE TABLE t(i INT, v VARCHAR);
INSERT INTO t VALUES (1, 'inlined'), (2, 'inlined');
INSERT INTO t SELECT range, 'f' FROM range(10, 40);
INSERT INTO t SELECT range, 'g' FROM range(40, 60);
INSERT INTO t SELECT range, 'h' FROM range(60, 80);
CALL ducklake_merge_adjacent_files('lk');
CALL ducklake_flush_inlined_data('lk');
INSERT INTO t VALUES (3, 'inlined');
DELETE FROM t WHERE i IN (10, 45, 3);
UPDATE t SET v = 'u' WHERE i IN (11, 46, 1);
INSERT INTO t SELECT range, 'k' FROM range(80, 100);
INSERT INTO t SELECT range, 'l' FROM range(100, 120);
CALL ducklake_merge_adjacent_files('lk');
ALTER TABLE t ADD COLUMN n INT DEFAULT 4;
INSERT INTO t SELECT range, 'm', 5 FROM range(120, 140);
CALL ducklake_rewrite_data_files('lk', delete_threshold => 0);
CALL ducklake_expire_snapshots('lk', versions => [3]);
CALL ducklake_cleanup_old_files('lk', cleanup_all => true);
DELETE FROM t WHERE i > 130;
