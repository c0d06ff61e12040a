-- Files written by others whose times are finer than the column's type: they are rounded.
-- catalogs: sqlite
-- inline: 0
BEGIN;
CREATE TABLE s(k INT, t TIMESTAMP_S, l TIMESTAMP_S[]);
CREATE TABLE ms(k INT, t TIMESTAMP_MS, x STRUCT(t TIMESTAMP_MS));
CREATE TABLE us(k INT, t TIMESTAMP);
INSERT INTO s VALUES (0, '2024-03-31 01:59:59', ['2024-03-31 02:30:00', NULL]);
INSERT INTO ms VALUES (0, '2024-03-31 01:59:59.25', {'t': '2024-03-31 02:30:00.125'});
COMMIT;
COPY (SELECT k::INT AS k, v::TIMESTAMP AS t, [v::TIMESTAMP] AS l FROM (VALUES (1, '1999-12-31 23:59:59.999999'), (2, '2000-01-01 00:00:00.5'), (3, '2000-01-01 00:00:00.499999'), (4, '1969-12-31 23:59:59.5'), (5, '1969-12-31 23:59:59.500001'), (6, '1969-12-31 23:59:58.499999'), (7, 'infinity'), (8, '-infinity'), (9, NULL), (10, '0001-01-01 00:00:00.7'), (11, '1881-05-05 05:05:05.505')) v(k, v)) TO '{dir}/micros.parquet';
COPY (SELECT k::INT AS k, v::TIMESTAMP_MS AS t, [v::TIMESTAMP_MS] AS l FROM (VALUES (21, '1999-12-31 23:59:59.999'), (22, '2000-01-01 00:00:00.5'), (23, '1969-12-31 23:59:59.5'), (24, 'infinity'), (25, '-infinity')) v(k, v)) TO '{dir}/millis.parquet';
COPY (SELECT k::INT AS k, v::TIMESTAMP AS t, {'t': v::TIMESTAMP} AS x FROM (VALUES (31, '1999-12-31 23:59:59.999999'), (32, '2000-01-01 00:00:00.0005'), (33, '2000-01-01 00:00:00.000499'), (34, '1969-12-31 23:59:59.9995'), (35, 'infinity'), (36, '1969-12-31 23:59:59.999501')) v(k, v)) TO '{dir}/structs.parquet';
COPY (SELECT k::INT AS k, v::TIMESTAMP_NS AS t FROM (VALUES (41, '1999-12-31 23:59:59.999999'), (42, '2000-01-01 00:00:00.000005'), (43, '2000-01-01 00:00:00.000005999'), (44, '1969-12-31 23:59:59.999999001'), (45, 'infinity'), (46, '-infinity'), (47, NULL)) v(k, v)) TO '{dir}/nanos.parquet';
COPY (SELECT 48::INT AS k, '2001-01-01 00:00:00.000000999'::TIMESTAMP_NS AS t) TO '{dir}/nano.parquet';
BEGIN;
CALL ducklake_add_data_files('lk', 's', '{dir}/micros.parquet');
CALL ducklake_add_data_files('lk', 's', '{dir}/millis.parquet');
CALL ducklake_add_data_files('lk', 'ms', '{dir}/structs.parquet');
CALL ducklake_add_data_files('lk', 'us', '{dir}/nanos.parquet');
CALL ducklake_add_data_files('lk', 'us', '{dir}/nano.parquet');
COMMIT;
UPDATE s SET k = k + 100 WHERE k IN (3, 22);
DELETE FROM ms WHERE k = 33;
-- query: SELECT k FROM s WHERE t = '2000-01-01 00:00:01'
-- query: SELECT k FROM s WHERE t > '2000-01-01 00:00:00'
-- query: SELECT k FROM ms WHERE t >= '2000-01-01 00:00:00.001'
-- query: SELECT k FROM us WHERE t = '2000-01-01 00:00:00.000005'
-- query: SELECT k FROM us WHERE t = '2001-01-01 00:00:00'
-- query: SELECT k FROM us WHERE t <= '2001-01-01 00:00:00' AND t > '2000-06-01'
-- query: SELECT min(t), max(t) FROM ms
CALL ducklake_merge_adjacent_files('lk');
