-- Inlined deletes of a file that was rewritten meanwhile are flushed to a delete file of the old one,
-- beside the one that it has.
-- catalogs: sqlite
-- inline: 5
CREATE TABLE t AS SELECT range AS i FROM range(20);
DELETE FROM t WHERE i IN (1, 12);
CALL ducklake_flush_inlined_data('lk');
DELETE FROM t WHERE i = 3;
CALL ducklake_rewrite_data_files('lk', 't', delete_threshold => 0);
CALL ducklake_flush_inlined_data('lk');
