-- Changes of every kind, also several to one row in one transaction, under changing columns.
-- catalogs: sqlite
-- inline: 3
CREATE TABLE t(k INT, v VARCHAR);
INSERT INTO t VALUES (1, 'a'), (2, 'b');
INSERT INTO t SELECT range, 'f' FROM range(10, 20);
UPDATE t SET v = 'x' WHERE k IN (1, 10);
DELETE FROM t WHERE k IN (2, 11);
BEGIN;
UPDATE t SET v = 'y' WHERE k = 12;
UPDATE t SET v = 'z' WHERE k = 12;
INSERT INTO t VALUES (30, 'brief'), (31, 'stays');
DELETE FROM t WHERE k = 30;
DELETE FROM t WHERE k = 13;
COMMIT;
UPDATE t SET v = v;
ALTER TABLE t ADD COLUMN n INT DEFAULT 5;
UPDATE t SET n = 6 WHERE k = 14;
ALTER TABLE t RENAME COLUMN v TO w;
INSERT INTO t VALUES (40, 'w', NULL);
ALTER TABLE t DROP COLUMN k;
DELETE FROM t WHERE n = 6;
INSERT INTO t VALUES ('last', 1);
CALL ducklake_flush_inlined_data('lk');
CALL ducklake_merge_adjacent_files('lk');
DELETE FROM t WHERE w = 'last';
DELETE FROM t;
