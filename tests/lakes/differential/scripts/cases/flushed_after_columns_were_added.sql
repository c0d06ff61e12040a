-- 1.4.4 flushes inlined rows into a file that lacks columns which they had, and begins it where the
-- first row was inlined: the columns are to be had from the file itself.
-- writers: 1.5.5, 1.4.4
-- catalogs: sqlite
-- inline: 10
CREATE TABLE t(k INT, c1 INT);
INSERT INTO t SELECT range, 1 FROM range(0, 20);
ALTER TABLE t ADD COLUMN c3 TINYINT DEFAULT 127;
INSERT INTO t VALUES (106, 1, 127);
ALTER TABLE t ADD COLUMN c4 INT[];
CALL ducklake_flush_inlined_data('lk');
INSERT INTO t VALUES (107, 1, 12, [1]);
