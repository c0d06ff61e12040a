-- Row ids through updates, merges of sources, deletes, compaction and flushes.
-- catalogs: sqlite
-- inline: 4
CREATE TABLE t(k INT, v VARCHAR);
INSERT INTO t SELECT range, 'a' FROM range(10);
INSERT INTO t VALUES (20, 'i'), (21, 'i');
UPDATE t SET v = 'b' WHERE k IN (3, 20);
MERGE INTO t USING (SELECT unnest([4, 21, 30])::INT AS k, 'm' AS v) s ON t.k = s.k
    WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.v);
DELETE FROM t WHERE k = 5;
INSERT INTO t VALUES (5, 'new id');
UPDATE t SET k = k + 100 WHERE k < 3;
CALL ducklake_flush_inlined_data('lk');
UPDATE t SET v = 'c' WHERE k IN (3, 20, 100, 5);
CALL ducklake_rewrite_data_files('lk', delete_threshold => 0);
INSERT INTO t SELECT range, 'late' FROM range(200, 206);
UPDATE t SET v = 'd' WHERE k IN (100, 200);
CALL ducklake_merge_adjacent_files('lk');
UPDATE t SET v = 'all';
MERGE INTO t USING (SELECT 30 AS k) s ON t.k = s.k WHEN MATCHED THEN DELETE;
