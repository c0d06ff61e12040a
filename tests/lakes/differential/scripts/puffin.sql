-- Deletion vectors instead of Parquet delete files.
-- catalogs: sqlite
-- inline: 0
CALL lk.set_option('write_deletion_vectors', true);
CREATE TABLE t AS SELECT range AS i, range % 5 AS g FROM range(50);
INSERT INTO t SELECT range, 9 FROM range(100, 110);
DELETE FROM t WHERE i = 0;
DELETE FROM t WHERE i IN (1, 2, 49, 105);
UPDATE t SET g = -1 WHERE i IN (4, 101);
DELETE FROM t WHERE g = 3;
DELETE FROM t WHERE i < 30;
CREATE TABLE big AS SELECT range AS i FROM range(20000);
DELETE FROM big WHERE i % 100 <> 0;
DELETE FROM big WHERE i > 15000;
CALL ducklake_rewrite_data_files('lk', 't', delete_threshold => 0);
DELETE FROM t WHERE i = 40;
