-- Flushed rows that were deleted or updated while they were inlined: the file has all their versions,
-- and its delete file says in which snapshots they went. Asked for a single snapshot, too.
-- catalogs: sqlite
-- inline: 10
CREATE TABLE t(k INT, v VARCHAR);
INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c');
DELETE FROM t WHERE k = 2;
UPDATE t SET v = 'd' WHERE k = 1;
UPDATE t SET v = 'e' WHERE k = 1;
CALL ducklake_flush_inlined_data('lk');
