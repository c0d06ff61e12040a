-- Delete files over time: one for several snapshots, files that lose all rows, many tables.
-- catalogs: sqlite
-- writers: 1.5.5, 1.4.4
-- inline: 0
CREATE TABLE t AS SELECT range AS i, range % 5 AS g FROM range(50);
DELETE FROM t WHERE i = 0;
DELETE FROM t WHERE i = 1;
DELETE FROM t WHERE g = 2 AND i < 20;
INSERT INTO t SELECT range, 9 FROM range(100, 110);
DELETE FROM t WHERE i IN (3, 100, 105);
UPDATE t SET g = -1 WHERE i IN (4, 101);
UPDATE t SET g = -2 WHERE g = -1;
UPDATE t SET i = i + 1000 WHERE i >= 100;
DELETE FROM t WHERE i >= 1000;
BEGIN;
DELETE FROM t WHERE i = 8;
DELETE FROM t WHERE i = 9;
INSERT INTO t VALUES (8, 8);
UPDATE t SET g = 88 WHERE i = 8;
COMMIT;
BEGIN;
DELETE FROM t;
ROLLBACK;
DELETE FROM t WHERE i % 2 = 0;
DELETE FROM t;
INSERT INTO t VALUES (1, 1);
DELETE FROM t WHERE i = 1;
