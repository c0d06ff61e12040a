-- Two columns take each other's names; then files from before and after are put together.
-- catalogs: sqlite
-- inline: 0
CREATE TABLE t(id INT, a BIGINT, b BOOLEAN);
INSERT INTO t VALUES (1, 1, true), (2, 2, false), (3, 3, NULL);
ALTER TABLE t RENAME COLUMN a TO tmp;
ALTER TABLE t RENAME COLUMN b TO a;
ALTER TABLE t RENAME COLUMN tmp TO b;
INSERT INTO t VALUES (4, false, 4);
CALL ducklake_merge_adjacent_files('lk');
DELETE FROM t WHERE id = 2;
CALL ducklake_rewrite_data_files('lk', delete_threshold => 0);
