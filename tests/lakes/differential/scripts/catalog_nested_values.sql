-- Nested values in the catalog itself: as text on SQLite and PostgreSQL.
-- writers: 1.5.5, 1.4.4
-- inline: 1000
-- errors: allowed
CREATE TABLE lists (i INTEGER[], v VARCHAR[], d DOUBLE[], dt DATE[], ts TIMESTAMP[], u UUID[], dec DECIMAL(5,2)[], b BOOLEAN[], n INTEGER[][], h UBIGINT[]);
INSERT INTO lists VALUES ([1, NULL, -3], ['a', 'b', NULL, 'c d'], [0.1, 1e300], ['2024-02-03'], ['2024-02-03 01:02:03.5'], ['550e8400-e29b-41d4-a716-446655440000'], [1.5, -0.01], [true, false, NULL], [[1], [], NULL, [2, NULL]], [18446744073709551615]);
INSERT INTO lists VALUES ([], [], [], [], [], [], [], [], [], []), (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO lists (v) VALUES (['', 'NULL', 'null', ' lead', 'trail ', 'a, b', '[x', 'x]', 'x{y}', 'a=b', 'a:b', 'it(s)', chr(10), 'ü🦆']);
CREATE TABLE quotes (v VARCHAR[]);
INSERT INTO quotes VALUES (['b''c', 'd"e', '\', 'a\b', '\''', '''''', 'a,\''b']);
CREATE TABLE structs (s STRUCT(a INTEGER, b VARCHAR), t STRUCT(s STRUCT(x BIGINT, y VARCHAR[]), l STRUCT(z INTEGER)[]));
INSERT INTO structs VALUES ({'a': 1, 'b': 'x'}, {'s': {'x': 1, 'y': ['p', 'q, r']}, 'l': [{'z': 1}, NULL, {'z': NULL}]});
INSERT INTO structs VALUES ({'a': NULL, 'b': NULL}, {'s': NULL, 'l': NULL}), (NULL, NULL), ({'a': 2, 'b': ''}, {'s': {'x': NULL, 'y': []}, 'l': []}), ({'a': 3, 'b': 'NULL'}, NULL), ({'a': 4, 'b': 'x, y {z} [w] "v"'}, NULL), ({'a': 5, 'b': ' lead'}, NULL);
CREATE TABLE maps (m MAP(VARCHAR, INTEGER), n MAP(INTEGER, VARCHAR), o MAP(VARCHAR, STRUCT(x INTEGER, y VARCHAR)));
INSERT INTO maps VALUES (MAP {'a': 1, 'b=c': 2, '': 3, ' x': NULL, 'NULL': 4, 'it''s': 5}, MAP {1: 'x=y', 2: NULL, 3: 'it''s'}, MAP {'k': {'x': 1, 'y': 'v'}, 'l': NULL});
INSERT INTO maps VALUES (MAP {}, MAP {}, MAP {}), (NULL, NULL, NULL);
CREATE TABLE odd (s STRUCT("A b" INTEGER, "x:y" INTEGER)[], m MAP(DATE, DATE));
INSERT INTO odd VALUES ([{'A b': 1, 'x:y': 2}], MAP {DATE '2024-01-01': DATE '0044-03-15 (BC)'});
