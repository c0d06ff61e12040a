-- 1.4.4 begins the file that a rewrite makes at the snapshot of the delete, and gives it the
-- columns of the file it comes from: the column added between is not in it.
-- writers: 1.4.4
-- catalogs: sqlite
-- inline: 10
CREATE TABLE t(k INT, c1 BOOLEAN);
INSERT INTO t SELECT range, true FROM range(4, 17);
ALTER TABLE t ADD COLUMN c5 DATE DEFAULT '2013-01-02';
UPDATE t SET c5 = '1969-12-31' WHERE k = 6;
CALL ducklake_rewrite_data_files('lk', delete_threshold => 0);
