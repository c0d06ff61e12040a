-- Tables dropped, made again and renamed; schemas; names that need quoting.
-- catalogs: sqlite
-- writers: 1.5.5, 1.4.4
CREATE TABLE t AS SELECT 1 AS a;
DROP TABLE t;
CREATE TABLE t AS SELECT 'x' AS b, range AS r FROM range(20);
CREATE OR REPLACE TABLE t AS SELECT 2.5 AS c;
ALTER TABLE t RENAME TO was_t;
CREATE TABLE t(a INT);
INSERT INTO t VALUES (1), (2);
DELETE FROM t WHERE a = 1;
CREATE SCHEMA s;
CREATE TABLE s.t AS SELECT range AS x FROM range(30);
CREATE SCHEMA "odd ""s"" / %";
CREATE TABLE "odd ""s"" / %"."T a.b"("a b" INT, "C.d" INT, "e`f" INT, "É" INT);
INSERT INTO "odd ""s"" / %"."T a.b" VALUES (1, 2, 3, 4), (5, 6, 7, 8);
UPDATE "odd ""s"" / %"."T a.b" SET "C.d" = 50 WHERE "a b" = 1;
CREATE TABLE "Üt"(_metadata INT, "select" INT, "Key" VARCHAR);
INSERT INTO "Üt" VALUES (1, 2, 'k'), (3, 4, NULL);
DELETE FROM "Üt" WHERE "select" = 2;
BEGIN;
CREATE TABLE in_one(i INT);
ALTER TABLE in_one ADD COLUMN j INT DEFAULT 3;
INSERT INTO in_one VALUES (2, 2);
INSERT INTO in_one(i) VALUES (1);
DROP TABLE s.t;
COMMIT;
DROP TABLE "odd ""s"" / %"."T a.b";
CREATE TABLE empty(a INT, b VARCHAR);
CREATE TABLE s.t AS SELECT 'again' AS x;
DROP SCHEMA s CASCADE;
DROP TABLE was_t;
