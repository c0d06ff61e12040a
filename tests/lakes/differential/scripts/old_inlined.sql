-- Inlined rows as 1.4.4 writes them. NaN is left out: it loses it on SQLite itself.
-- writers: 1.4.4
-- inline: 20
CREATE TABLE t(i INT, d DOUBLE, n DECIMAL(10,3), ts TIMESTAMP, dt DATE, v VARCHAR, b BOOLEAN);
INSERT INTO t VALUES (1, 0.1, 1.125, '2013-01-02 03:04:05.678', '2013-01-02', 'x', true), (2, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO t VALUES (3, -0.0, -0.001, '0001-01-01', '9999-12-31', '', false);
DELETE FROM t WHERE i = 2;
UPDATE t SET v = 'it''s' WHERE i = 1;
ALTER TABLE t ADD COLUMN z INT DEFAULT 3;
INSERT INTO t VALUES (4, 1e300, 0, '1969-12-31 23:59:59.999999', '1970-01-01', 'é', NULL, 4);
DELETE FROM t WHERE i = 3;
CALL ducklake_flush_inlined_data('lk');
INSERT INTO t(i) VALUES (5);
