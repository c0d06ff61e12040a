-- Few deletes of rows in files stay in the catalog, until they are flushed into delete files.
-- catalogs: sqlite, postgres
-- inline: 10
CREATE TABLE t AS SELECT range AS i, range % 7 AS g, 'v' || range AS v FROM range(60);
INSERT INTO t SELECT range, range % 7, 'w' || range FROM range(60, 100);
DELETE FROM t WHERE i = 5;
DELETE FROM t WHERE i IN (6, 7, 70);
UPDATE t SET v = 'updated' WHERE i IN (8, 71);
INSERT INTO t VALUES (1000, 0, 'inlined'), (1001, 1, 'inlined too');
DELETE FROM t WHERE i IN (1000, 9);
UPDATE t SET v = 'twice' WHERE i = 8;
DELETE FROM t WHERE g = 3;
DELETE FROM t WHERE i = 10;
-- check
CALL ducklake_flush_inlined_data('lk');
DELETE FROM t WHERE i IN (11, 12, 72);
UPDATE t SET g = g + 100 WHERE i < 20;
CALL ducklake_flush_inlined_data('lk');
BEGIN;
DELETE FROM t WHERE i = 13;
INSERT INTO t VALUES (13, 13, 'back');
UPDATE t SET v = 'in one transaction' WHERE i IN (13, 14);
COMMIT;
TRUNCATE t;
INSERT INTO t VALUES (1, 1, 'one');
