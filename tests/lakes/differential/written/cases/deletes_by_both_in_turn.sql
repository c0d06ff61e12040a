-- | A delete over DuckDB's consolidated delete file ended that one's row, where somebody committed
-- | beside it, and added another: DuckDB's next delete then covered the same snapshots twice.
-- catalogs: sqlite
-- inline: 0
CREATE TABLE t (i BIGINT, v VARCHAR);
CREATE TABLE beside (i BIGINT);
INSERT INTO t SELECT n, 'v' FROM range(0, 20) AS r(n);
INSERT INTO t SELECT n, 'v' FROM range(20, 40) AS r(n);
CALL ducklake_merge_adjacent_files('lk');
@duckdb DELETE FROM t WHERE i < 3;
@duckdb DELETE FROM t WHERE i IN (10, 11);
BEGIN;
MERGE INTO t USING (SELECT n AS i FROM range(18, 22) AS r(n)) AS s ON t.i = s.i WHEN MATCHED THEN UPDATE SET v = 'm';
@other INSERT INTO beside VALUES (1);
COMMIT;
@duckdb DELETE FROM t WHERE i = 30;
BEGIN;
DELETE FROM t WHERE i = 31;
DELETE FROM t WHERE i = 33;
@other INSERT INTO beside VALUES (3);
COMMIT;
@duckdb DELETE FROM t WHERE i = 34;
CALL ducklake_rewrite_data_files('lk', 't', delete_threshold => 0);
@duckdb DELETE FROM t WHERE i = 12;
@duckdb DELETE FROM t WHERE i = 13;
@duckdb CALL ducklake_merge_adjacent_files('lk');
BEGIN;
DELETE FROM t WHERE i = 14;
@other INSERT INTO beside VALUES (4);
COMMIT;
@duckdb CALL ducklake_rewrite_data_files('lk', 't', delete_threshold => 0);
@duckdb DELETE FROM t WHERE i = 15;
@methods BEGIN;
@methods DELETE FROM t WHERE i = 16;
@methods DELETE FROM t WHERE i = 17;
@other INSERT INTO beside VALUES (5);
@methods COMMIT;
@duckdb DELETE FROM t WHERE i = 5;
