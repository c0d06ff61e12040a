-- All transforms, keys that change over time, values that need escaping.
-- catalogs: sqlite
-- inline: 0
CREATE TABLE t(k INT, p VARCHAR, ts TIMESTAMP, d DATE, tz TIMESTAMPTZ, n BIGINT);
INSERT INTO t VALUES (0, 'unpartitioned', NULL, NULL, NULL, NULL);
ALTER TABLE t SET PARTITIONED BY (p);
INSERT INTO t VALUES (1, 'a/b %2F=''', '2013-01-02', '2013-01-02', '2013-01-02 00:00:00+00', 1), (2, NULL, NULL, NULL, NULL, NULL),
    (3, '', NULL, NULL, NULL, 3), (4, 'ü +&', '2013-01-02 03:04:05', '1969-12-31', '1969-12-31 23:59:59+00', -4);
ALTER TABLE t SET PARTITIONED BY (year(ts), month(ts), day(ts), hour(ts));
INSERT INTO t VALUES (5, 'x', '2013-01-02 03:04:05', '2013-01-02', NULL, 5), (6, 'y', NULL, NULL, NULL, 6), (7, 'z', '1950-12-31 23:00:00', NULL, NULL, 7);
ALTER TABLE t SET PARTITIONED BY (bucket(4, n), year(d));
INSERT INTO t SELECT range, 'b' || range, '2020-01-01', DATE '2019-12-31' + range::INT, NULL, range FROM range(10, 20);
ALTER TABLE t SET PARTITIONED BY (year(tz), bucket(3, p));
INSERT INTO t VALUES (30, 'q', NULL, NULL, '2013-12-31 23:30:00+00', NULL), (31, NULL, NULL, NULL, NULL, 1);
DELETE FROM t WHERE k IN (2, 5, 12);
UPDATE t SET p = 'moved', ts = '2000-01-01' WHERE k IN (1, 13, 30);
ALTER TABLE t RENAME COLUMN p TO pp;
INSERT INTO t VALUES (40, 'renamed', NULL, NULL, '2014-01-01', 1);
ALTER TABLE t RESET PARTITIONED BY;
INSERT INTO t VALUES (41, 'none', NULL, NULL, NULL, NULL);
CALL ducklake_merge_adjacent_files('lk');
CALL ducklake_rewrite_data_files('lk', delete_threshold => 0);
