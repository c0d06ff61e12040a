-- Files written by others: no field ids, missing and extra columns, hive folders.
-- catalogs: sqlite
-- inline: 0
CREATE TABLE t(a INT, b VARCHAR, c DOUBLE);
INSERT INTO t VALUES (1, 'lake', 1.5);
COPY (SELECT 2::INT AS a, 'file' AS b, 2.5::DOUBLE AS c) TO '{dir}/same.parquet';
COPY (SELECT 3.5::DOUBLE AS c, 'reordered' AS b, 3::INT AS a) TO '{dir}/reordered.parquet';
COPY (SELECT 4::INT AS a) TO '{dir}/missing.parquet';
COPY (SELECT 5::INT AS a, 'extra' AS b, 5.5::DOUBLE AS c, 'x' AS zzz) TO '{dir}/extra.parquet';
COPY (SELECT 6::INT AS "A", 'case' AS "B", 6.5::DOUBLE AS "C") TO '{dir}/case.parquet';
COPY (SELECT 7::TINYINT AS a, 'narrow' AS b, 7.5::FLOAT AS c) TO '{dir}/narrow.parquet';
CALL ducklake_add_data_files('lk', 't', '{dir}/same.parquet');
CALL ducklake_add_data_files('lk', 't', '{dir}/reordered.parquet');
CALL ducklake_add_data_files('lk', 't', '{dir}/missing.parquet', allow_missing => true);
CALL ducklake_add_data_files('lk', 't', '{dir}/extra.parquet', ignore_extra_columns => true);
CALL ducklake_add_data_files('lk', 't', '{dir}/case.parquet');
CALL ducklake_add_data_files('lk', 't', '{dir}/narrow.parquet');
DELETE FROM t WHERE a IN (2, 6);
UPDATE t SET b = 'updated' WHERE a >= 5;
ALTER TABLE t ADD COLUMN d INT DEFAULT 9;
ALTER TABLE t RENAME COLUMN b TO bb;
COPY (SELECT 8::INT AS a, 'new' AS bb, 8.5::DOUBLE AS c, 8::INT AS d) TO '{dir}/later.parquet';
CALL ducklake_add_data_files('lk', 't', '{dir}/later.parquet');
CREATE TABLE n(s STRUCT(x INT, y VARCHAR), l STRUCT(z INT)[], m MAP(VARCHAR, INT));
COPY (SELECT {'x': 1::INT, 'y': 'p'} AS s, [{'z': 2::INT}, NULL] AS l, MAP {'k': 3::INT} AS m) TO '{dir}/nested.parquet';
COPY (SELECT {'y': 'q', 'x': 4::INT} AS s, []::STRUCT(z INT)[] AS l, MAP {}::MAP(VARCHAR, INT) AS m) TO '{dir}/nested2.parquet';
CALL ducklake_add_data_files('lk', 'n', '{dir}/nested.parquet');
CALL ducklake_add_data_files('lk', 'n', '{dir}/nested2.parquet');
ALTER TABLE n ADD COLUMN s.w INT;
ALTER TABLE n RENAME COLUMN s.x TO xx;
INSERT INTO n VALUES ({'xx': 5, 'y': 'r', 'w': 6}, NULL, NULL);
CREATE TABLE h(a INT, part INT, name VARCHAR);
COPY (SELECT range::INT AS a, (range % 3)::INT AS part, 'n ' || (range % 2) AS name FROM range(12)) TO '{dir}/hive' (FORMAT parquet, PARTITION_BY (part, name));
CALL ducklake_add_data_files('lk', 'h', '{dir}/hive/**/*.parquet', hive_partitioning => true);
DELETE FROM h WHERE a = 4;
INSERT INTO h VALUES (100, 100, 'own');
UPDATE h SET name = 'moved' WHERE part = 2;
CALL ducklake_merge_adjacent_files('lk');
