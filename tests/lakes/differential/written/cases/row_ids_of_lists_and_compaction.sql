-- | Compaction did not know the embedded row ids of files under a name mapping.
-- catalogs: sqlite
-- inline: 0
CREATE TABLE t (i BIGINT, k INT, c1 INT[]);
INSERT INTO t VALUES (0, 4, [7]), (1, 2, [7]);
MERGE INTO t USING (SELECT n + 4 AS k FROM range(0, 1) AS r(n)) AS s ON t.k = s.k WHEN MATCHED THEN UPDATE SET c1 = NULL WHEN NOT MATCHED BY SOURCE AND t.k = 9 THEN DELETE;
INSERT INTO t SELECT n + 4, n % 10, [1, NULL] FROM range(0, 12) AS r(n);
@methods CALL ducklake_merge_adjacent_files('lk');
