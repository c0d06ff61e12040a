-- Types that Spark does not have, in files and in the catalog.
-- catalogs: sqlite
-- inline: 3
CREATE TABLE t(k INT, ti TIME, tz TIMETZ, iv INTERVAL, h HUGEINT, u UHUGEINT, tn TIMESTAMP_NS);
INSERT INTO t VALUES (1, '01:02:03.5', '01:02:03+02', INTERVAL '1 month 2 days 3.5 seconds', 1, 2, '2013-01-02 03:04:05.123456'), (2, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO t SELECT range, '24:00:00', '23:59:59.999999+00', INTERVAL (range) DAY, -range, range, '1969-12-31 23:59:59' FROM range(10, 16);
UPDATE t SET ti = '00:00:00', iv = INTERVAL '1 year' WHERE k IN (1, 12);
DELETE FROM t WHERE k = 13;
CREATE TABLE d(dt DATE, ts TIMESTAMP, tz TIMESTAMPTZ);
INSERT INTO d VALUES ('infinity', 'infinity', 'infinity'), ('-infinity', '-infinity', '-infinity'), ('0044-03-15 (BC)', '0044-03-15 (BC) 01:02:03', '10000-01-01 00:00:00+00');
CREATE TABLE v(k INT, v VARIANT);
INSERT INTO v SELECT range, (CASE WHEN range % 2 = 0 THEN {'a': range, 'b': ['x', NULL]}::VARIANT ELSE 'text'::VARIANT END) FROM range(6);
INSERT INTO v VALUES (10, 42::VARIANT), (11, NULL);
CALL ducklake_flush_inlined_data('lk');
