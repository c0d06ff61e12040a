-- | A file of literal rows with a map was looked through for NaN by the wrong field.
-- inline: 0
CREATE TABLE t (i BIGINT, k INT, c1 MAP(VARCHAR, DOUBLE), c2 INT[], c3 STRUCT(a DOUBLE, b MAP(VARCHAR, INT)));
INSERT INTO t VALUES (0, 2, MAP {'a': CAST('nan' AS DOUBLE), 'b': 3.0}, [1, NULL], {'a': 1.5, 'b': MAP {'k': 1}}), (1, 8, NULL, [], NULL);
