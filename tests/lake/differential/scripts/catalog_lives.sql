-- Rows of the catalog through updates, deletes, transactions, flushes and compactions.
-- inline: 10
CREATE TABLE t (i INTEGER, s VARCHAR);
INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c');
UPDATE t SET s = 'bb' WHERE i = 2;
DELETE FROM t WHERE i = 1;
BEGIN;
INSERT INTO t VALUES (9, 'x');
UPDATE t SET s = 'y' WHERE i = 9;
UPDATE t SET s = 'cc' WHERE i = 3;
UPDATE t SET s = 'ccc' WHERE i = 3;
COMMIT;
BEGIN;
INSERT INTO t VALUES (10, 'gone');
DELETE FROM t WHERE i = 10;
COMMIT;
-- check
CALL ducklake_flush_inlined_data('lk');
INSERT INTO t SELECT i + 100, 'f' || i FROM range(20) r(i);
DELETE FROM t WHERE i IN (105, 107);
DELETE FROM t WHERE i = 3;
UPDATE t SET s = 'U' WHERE i = 110;
UPDATE t SET s = 'V' WHERE i = 110;
INSERT INTO t VALUES (500, 'inlined');
CALL ducklake_flush_inlined_data('lk');
DELETE FROM t WHERE i IN (110, 9, 119, 500);
-- DuckDB 1.5.5 flushes deletes of files that a rewrite ended as second delete files, and then reads
-- the snapshots before it twice: so this comes first.
CALL ducklake_flush_inlined_data('lk');
CALL ducklake_rewrite_data_files('lk', delete_threshold => 0);
DELETE FROM t WHERE i = 118;
CALL ducklake_flush_inlined_data('lk');
CALL ducklake_merge_adjacent_files('lk');
DELETE FROM t WHERE i = 117;
INSERT INTO t VALUES (600, 'again');
UPDATE t SET s = 'W' WHERE i < 104;
ALTER TABLE t ADD COLUMN n INTEGER DEFAULT 5;
UPDATE t SET n = i WHERE i < 103;
CALL ducklake_flush_inlined_data('lk');
CREATE TABLE off (i INTEGER);
CALL lk.set_option('data_inlining_row_limit', 0, table_name => 'off');
INSERT INTO off VALUES (1);
CALL lk.set_option('data_inlining_row_limit', 10, table_name => 'off');
INSERT INTO off VALUES (2);
