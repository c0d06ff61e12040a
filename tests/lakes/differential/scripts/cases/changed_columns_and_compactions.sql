-- Compactions after columns were added with a default, widened, renamed in structs.
-- catalogs: sqlite
-- inline: 0
CREATE TABLE t(id INT, a SMALLINT, s STRUCT(x INT, y VARCHAR));
INSERT INTO t VALUES (1, 1, {'x': 1, 'y': 'one'}), (2, 2, {'x': 2, 'y': 'two'}), (3, 3, NULL);
INSERT INTO t VALUES (4, 4, {'x': 4, 'y': 'four'});
ALTER TABLE t ADD COLUMN d VARCHAR DEFAULT 'old';
ALTER TABLE t ALTER a SET DATA TYPE BIGINT;
ALTER TABLE t RENAME COLUMN s.x TO z;
ALTER TABLE t ADD COLUMN s.w INT;
DELETE FROM t WHERE id = 2;
CALL ducklake_rewrite_data_files('lk', delete_threshold => 0);
INSERT INTO t VALUES (5, 5000000000, {'z': 5, 'y': 'five', 'w': 5}, 'new');
CALL ducklake_merge_adjacent_files('lk');
DELETE FROM t WHERE id = 5;
CALL ducklake_rewrite_data_files('lk', delete_threshold => 0);
