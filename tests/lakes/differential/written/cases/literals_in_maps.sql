-- | A file of literal rows with a map was looked through for NaN by the wrong field.
-- inline: 0
CREATE TABLE t (i BIGINT, k INT, c1 MAP(VARCHAR, DOUBLE), c2 INT[], c3 STRUCT(a DOUBLE, b INT));
INSERT INTO t VALUES (0, 2, MAP {'a': 1e300, 'b': 3e0}, [1, NULL], {'a': 15e-1, 'b': 1}), (1, 8, NULL, [7], NULL);
