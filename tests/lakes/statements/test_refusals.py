"""What other lakes' SQL has and this one has not: each says where, and what does it. No Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.errors import ArgumentError, PenstockError
from penstock.lakes.lake import Lake


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    uri = f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}"
    with Lake.attach(uri, data_path=f"{tmp_path}/data") as attached:
        attached.sql('CREATE TABLE fish (id INT, kind VARCHAR, s STRUCT(x INT), "two words" INT)')
        attached.sql("INSERT INTO fish (id, kind) VALUES (1, 'eel'), (2, 'pike')")
        yield attached


# A statement, the column (of line 1) that its error names, and words of what it says to do.
REFUSED = {
    "ALTER TABLE fish REPLACE COLUMNS (id INT)": (18, "DROP COLUMNS"),
    "ALTER TABLE fish CLUSTER BY (id)": (18, "SET SORTED BY"),
    "ALTER TABLE fish WRITE ORDERED BY id": (18, "SET SORTED BY"),
    "ALTER TABLE fish RECOVER PARTITIONS": (18, "add_data_files"),
    "ALTER TABLE fish DROP IF EXISTS PARTITION (id = 1)": (33, "DELETE"),
    "ALTER TABLE fish ADD PARTITION (id = 1)": (22, "DELETE"),
    "ALTER TABLE fish OWNER TO me": (18, "rights"),
    "ALTER TABLE fish SET TAGS ('a' = 'b')": (22, "COMMENT ON TABLE"),
    "ALTER TABLE fish SET COMMENT 'a'": (22, "COMMENT ON TABLE"),
    "ALTER TABLE fish ADD COLUMN a INT, ADD COLUMN b INT": (36, "ADD COLUMNS"),
    "ALTER TABLE fish ADD COLUMN a INT AFTER id": (35, "SELECT orders them"),
    "ALTER TABLE fish CHANGE COLUMN id id INT NOT NULL": (42, "SET NOT NULL"),
    "ALTER TABLE fish ALTER COLUMN s.x COMMENT 'a'": (35, "its column"),
    "ALTER TABLE fish RENAME TO pond.fish": (28, "stays where it is"),
    "ALTER TABLE fish RENAME COLUMN s.x TO s.y": (39, "alone"),
    "ALTER TABLE fish DROP COLUMN weight": (30, "id, kind, s"),
    "ALTER TABLE fish SET PARTITIONED BY (weight)": (38, "id, kind, s"),
    "CREATE TABLE fish (a INT)": (14, "OR REPLACE"),
    'CREATE TABLE "" (a INT)': (14, "what it is called"),
    "ALTER TABLE fish ADD COLUMN `` INT": (29, "what it is called"),
    "CREATE TABLE pond.fish (a INT)": (14, "there are main"),
    "CREATE TABLE two DEEP CLONE fish": (18, "AS SELECT"),
    "CREATE OR REFRESH STREAMING TABLE two AS SELECT 1": (11, "CREATE OR REPLACE"),
    "DROP TABLE fish, birds": (16, "a statement for each"),
    "INSERT INTO fish (weight) VALUES (1)": (19, "id, kind, s"),
    "INSERT INTO fish (id, ID) VALUES (1, 2)": (19, "once"),
    "INSERT INTO fish (id) VALUES ('eel')": (19, "CAST"),
    "INSERT INTO fish (id) BY NAME SELECT 1 AS kind": (23, "leave the list out"),
    "INSERT INTO fish (id) VALUES (1) ON DUPLICATE KEY UPDATE id = 2": (34, "MERGE"),
    "INSERT WITH SCHEMA EVOLUTION INTO fish SELECT 1": (8, "MERGE WITH SCHEMA EVOLUTION"),
    "INSERT OVERWRITE LOCAL DIRECTORY 'd' SELECT 1": (18, "write"),
    "INSERT INTO birds VALUES (1)": (13, "main.fish"),
    "DELETE fish WHERE id = 1": (8, "DELETE FROM t"),
    "DELETE FROM fish LIMIT 1": (18, "ORDER BY"),
    "DELETE FROM fish WHERE id > 0 ORDER BY id LIMIT 1": (31, "WHERE id IN"),
    "DELETE FROM fish WHERE id > 0 GROUP BY id": (31, "WHERE id IN"),
    "DELETE FROM fish WHERE id > 0 UNION SELECT 1": (31, "WHERE id IN"),
    "DELETE FROM fish, birds WHERE id = 1": (17, "USING"),
    "DELETE FROM fish PARTITION (id = 1)": (18, "WHERE"),
    "DELETE FROM fish VERSION AS OF 1 WHERE id = 1": (18, "latest snapshot"),
    "UPDATE fish SET id = 0 WHERE id > 0 LIMIT 1": (37, "WHERE id IN"),
    "UPDATE fish SET id = 0 LIMIT 1": (24, "WHERE id IN"),
    "UPDATE fish JOIN birds SET id = 0": (13, "FROM s"),
    "MERGE fish USING fish AS f ON true WHEN MATCHED THEN DELETE": (7, "MERGE INTO t"),
    "MERGE INTO fish USING fish JOIN two ON true WHEN MATCHED THEN DELETE": (28, "in brackets"),
    "MERGE INTO fish VERSION AS OF 1 USING fish AS f ON true": (17, "latest snapshot"),
    "MERGE INTO fish USING fish AS f ON true WHEN MATCHED THEN UPDATE SET * EXCEPT (id)": (
        72,
        "SET a = s.a",
    ),
    "MERGE INTO fish USING fish AS f ON true WHEN MATCHED THEN UPDATE SET id = 1 WHERE id = 2": (
        77,
        "WHEN MATCHED AND",
    ),
    "CREATE TABLE two (_ducklake_internal_row_id INT)": (19, "another name"),
    "ALTER TABLE fish RENAME kind TO _ducklake_internal_snapshot_id": (33, "another name"),
    "CREATE SCHEMA outer_one.inner_one": (
        15,
        "only the name of the schema; schemas cannot be nested",
    ),
    "BEGIN; SAVEPOINT a": (8, "transaction"),
    "MSCK REPAIR TABLE fish": (1, "add_data_files"),
    "UNCACHE TABLE fish": (1, "unpersist"),
    "EXPLAIN SELECT * FROM fish": (1, "lake.explain"),
    "SELEC * FROM fish": (1, "did you mean SELECT"),
    "XYZZY 1": (1, "docs/sql.md"),
    "RESET x": (7, "set_option"),
    "SET threads = 4": (5, "set_option"),
    "PREPARE p AS SELECT 1": (1, "args="),
    "DESCRIBE HISTORY fish": (10, "snapshots()"),
    "DESCRIBE DETAIL fish": (10, "table_info()"),
    "SHOW CREATE TABLE fish": (6, "DESCRIBE"),
    "SHOW CREATE VIEW fish": (6, "lake.views()"),
    "SHOW TABLE EXTENDED LIKE 'f*'": (6, "table_info()"),
    "SHOW CURRENT SCHEMA": (6, "schema.table"),
    "SHOW LOCKS fish": (6, "nothing is locked"),
    "SHOW SCHEMAS IN pond": (17, "it is called lake"),
    "DESCRIBE fish id": (15, "all columns"),
    "BEGIN ISOLATION LEVEL SERIALIZABLE": (7, "one snapshot"),
}


@pytest.mark.parametrize("text", REFUSED)
def test_says_where_and_what_instead(lake: Lake, text: str) -> None:
    column, nearest = REFUSED[text]
    with pytest.raises(PenstockError) as caught:
        lake.sql(text)
    assert f"at line 1:{column}" in caught.value.message
    assert nearest in (caught.value.hint or "")
    if text.startswith("BEGIN;"):
        lake.sql("ROLLBACK")
    assert len(lake.snapshots()) == 3


def test_a_call_without_what_it_needs(lake: Lake) -> None:
    with pytest.raises(ArgumentError, match="set_option needs a value of value"):
        lake.sql("CALL lake.set_option('parquet_compression')")
    with pytest.raises(ArgumentError, match="set_option needs a value of option and value"):
        lake.sql("CALL lake.set_option()")


def test_an_error_of_the_second_statement_is_placed_in_the_whole_text(lake: Lake) -> None:
    with pytest.raises(PenstockError) as caught:
        lake.sql("SHOW TABLES;\n-- fish\nTRUNCATE birds")
    assert "at line 3:10" in caught.value.message
    assert caught.value.data["line"] == 3
