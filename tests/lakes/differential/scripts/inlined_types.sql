-- Values of every type kept in the catalog: SQLite and PostgreSQL have no column for most of them.
-- NaN, times and quotes in a struct are left out: DuckDB does not read back what it writes of them.
-- inline: 100
CREATE TABLE flat(
    b BOOLEAN, i8 TINYINT, i16 SMALLINT, i32 INTEGER, i64 BIGINT,
    u8 UTINYINT, u16 USMALLINT, u32 UINTEGER, u64 UBIGINT,
    f FLOAT, d DOUBLE, d4 DECIMAL(4,1), d18 DECIMAL(18,3), d38 DECIMAL(38,10),
    v VARCHAR, bl BLOB, j JSON, u UUID);
INSERT INTO flat VALUES
    (true, -128, -32768, -2147483648, -9223372036854775808, 0, 0, 0, 0,
     'nan', 'nan', -999.9, 123456789012345.678, 1234567890123456789012345678.0123456789,
     '', ''::BLOB, '{"a": [1, null], "b": "x\"y"}', '00112233-4455-6677-8899-aabbccddeeff'),
    (false, 127, 32767, 2147483647, 9223372036854775807, 255, 65535, 4294967295,
     18446744073709551615,
     'inf', '-inf', 0, -0.001, -0.0000000001,
     'é ☃ ''"\ {}[],', '\x00\xFF\x27\x5C'::BLOB, 'null', 'f0112233-4455-6677-8899-aabbccddeeff'),
    (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
     NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO flat(f, d, v) VALUES
    (-0.0, -0.0, 'NULL'), (1.17549435e-38, 5e-324, 'null'), (0.1, 0.1, E'a\nb\tc'),
    (3.4028235e38, 1.7976931348623157e308, '日本'), (16777217, 9007199254740993, ' x ');
CREATE TABLE times(dt DATE, ts TIMESTAMP, tss TIMESTAMP_S, tsms TIMESTAMP_MS, tz TIMESTAMPTZ);
INSERT INTO times VALUES
    ('1970-01-01', '1970-01-01', '1970-01-01', '1970-01-01', '1970-01-01 00:00:00+00'),
    ('0001-01-01', '0001-01-01', '0001-01-01', '0001-01-01', '0001-01-01 00:00:00+00'),
    ('9999-12-31', '9999-12-31 23:59:59.999999', '9999-12-31 23:59:59',
     '9999-12-31 23:59:59.999', '9999-12-31 23:59:59.999999+00'),
    ('1582-10-10', '1582-10-10 01:02:03.000001', '1582-10-10 01:02:03',
     '1582-10-10 01:02:03.5', '2013-03-10 02:30:00 America/New_York'),
    ('2024-02-29', '1969-12-31 23:59:59.999999', '1969-12-31 23:59:59',
     '1969-12-31 23:59:59.999', '1969-12-31 23:59:59.999999+00'),
    (NULL, NULL, NULL, NULL, NULL);
CREATE TABLE nested(
    k INT, l INT[], s STRUCT(a INT, b VARCHAR), m MAP(VARCHAR, INT), ls STRUCT(a INT, u UTINYINT)[],
    ll VARCHAR[][], sd STRUCT(f DOUBLE, d DECIMAL(9,2), n STRUCT(x INT)));
INSERT INTO nested VALUES
    (1, [1, NULL, 3], {'a': 1, 'b': 'x'}, MAP {'k': 1, 'n': NULL}, [{'a': 1, 'u': 255}, NULL],
     [['a', NULL], NULL, []], {'f': 0.1, 'd': 1.10, 'n': {'x': 5}}),
    (2, [], {'a': NULL, 'b': NULL}, MAP {}, [], [], {'f': -0.0, 'd': NULL, 'n': NULL}),
    (3, NULL, NULL, NULL, NULL, NULL, NULL),
    (4, [2147483647], {'a': -1, 'b': 'its = [1]'}, MAP {'a=b, c': 1, '''': 2}, [{'a': NULL, 'u': NULL}],
     [['NULL', 'null', '', 'a, b', '[x]', '"q"', 'it''s', '\']], {'f': 1e300, 'd': -0.01, 'n': {'x': NULL}});
DELETE FROM nested WHERE k = 2;
UPDATE nested SET l = [9], s = {'a': 9, 'b': 'new'} WHERE k = 1;
DELETE FROM flat WHERE i8 = 127;
UPDATE flat SET i64 = 7, v = 'seven' WHERE i8 = -128;
CALL ducklake_flush_inlined_data('lk');
