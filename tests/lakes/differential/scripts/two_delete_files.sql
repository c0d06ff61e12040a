-- Deletes that are flushed after their file was rewritten: the file that has ended gets a second delete file.
-- inline: 10
-- catalogs: sqlite, duckdb
CREATE TABLE t AS SELECT range AS i, 'v' || range AS v FROM range(20);
DELETE FROM t WHERE i BETWEEN 5 AND 15;
DELETE FROM t WHERE i IN (1, 2);
CALL ducklake_rewrite_data_files('lk', delete_threshold => 0);
CALL ducklake_flush_inlined_data('lk');
DELETE FROM t WHERE i = 3;
