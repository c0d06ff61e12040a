-- Every type in Parquet files, and deletes over them.
-- catalogs: sqlite
-- writers: 1.5.5, 1.4.4
-- inline: 0
CREATE TABLE t(k INT, u8 UTINYINT, u16 USMALLINT, u32 UINTEGER, u64 UBIGINT, f FLOAT, d DOUBLE, d4 DECIMAL(4,1),
    d38 DECIMAL(38,10), dt DATE, ts TIMESTAMP, tss TIMESTAMP_S, tsms TIMESTAMP_MS, tsns TIMESTAMP_NS, tz TIMESTAMPTZ, v VARCHAR,
    bl BLOB, j JSON, u UUID, lu UUID[], m MAP(INT, DECIMAL(9,2)), deep STRUCT(x STRUCT(y MAP(INT, TIMESTAMP_NS[]))[], z UBIGINT));
INSERT INTO t VALUES (1, 255, 65535, 4294967295, 18446744073709551615, 'nan', '-inf', -999.9, 1234567890123456789012345678.0123456789,
    '0001-01-01', '1582-10-10 01:02:03.000001', '1582-10-10 01:02:03', '2013-01-02 03:04:05.123', '2013-01-02 03:04:05.123456',
    '2013-03-10 02:30:00 America/New_York', 'é', '\x00\xFF'::BLOB, '{"a": [1, null]}', '00112233-4455-6677-8899-aabbccddeeff',
    ['00112233-4455-6677-8899-aabbccddeeff', NULL], MAP {1: 1.10, 2: NULL},
    {'x': [{'y': MAP {1: ['2013-01-02 03:04:05.5'::TIMESTAMP_NS, NULL]}}, NULL], 'z': 1});
INSERT INTO t(k) VALUES (2), (3);
UPDATE t SET v = 'set', f = -0.0, dt = '9999-12-31' WHERE k = 2;
DELETE FROM t WHERE k = 3;
