"""What a user of Spark or of DuckDB types, by Penstock, and what DuckDB has for the same.

A statement whose value is empty is DuckDB's as it stands.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.errors import PenstockError, SchemaMismatch
from penstock.lakes.lake import Lake
from tests import duck
from tests.lakes.statements import twins

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

MAKE = (
    "CREATE SCHEMA pond",
    "CREATE TABLE fish (id INT, kind VARCHAR DEFAULT 'eel', size DECIMAL(6,2) DEFAULT 1.25, "
    "seen DATE, s STRUCT(a INT, b VARCHAR), tags VARCHAR[], m MAP(VARCHAR, INT))",
    "CREATE TABLE pond.frogs (id INT, kind VARCHAR)",
    "INSERT INTO pond.frogs VALUES (2, 'tree'), (3, 'moor'), (7, 'marsh')",
    "INSERT INTO fish (id) VALUES (1), (2), (3), (4)",
)
CHANGES = (
    (
        (
            "INSERT INTO fish (id, kind, size) VALUES (5 + 5, upper('ide'), 2.5), (11, "
            "DEFAULT, DEFAULT)"
        ),
        "",
    ),
    (
        "INSERT INTO fish (id, size, seen) VALUES ((SELECT 12), DEFAULT, DEFAULT)",
        "INSERT INTO fish (id, seen) VALUES (12, NULL)",
    ),
    (
        "INSERT INTO pond.frogs TABLE pond.frogs",
        "INSERT INTO pond.frogs FROM pond.frogs",
    ),
    (
        "CREATE TABLE copied AS TABLE pond.frogs",
        "CREATE TABLE copied AS FROM pond.frogs",
    ),
    (
        "INSERT INTO fish (id, tags, s) SELECT 20, ['a', NULL], {'b': 'x', 'a': 1}",
        "",
    ),
    (
        "INSERT INTO fish (id, tags, m) VALUES (20 + 1, ['z'], MAP {'k': 5})",
        "",
    ),
    (
        (
            "UPDATE fish SET tags = ['u', kind], s = {'a': id, 'b': 'n'}, m = MAP {'q': 1} "
            "WHERE id = 1"
        ),
        "",
    ),
    (
        "UPDATE fish SET kind = 'none' WHERE NULL",
        "",
    ),
    (
        "DELETE FROM fish WHERE NULL",
        "",
    ),
    (
        "DELETE FROM fish WHERE tags = ['z'] AND s IS NULL",
        "",
    ),
    (
        "MERGE INTO fish USING pond.frogs ON NULL WHEN MATCHED THEN DELETE",
        "",
    ),
    (
        (
            "MERGE INTO fish USING (SELECT DISTINCT * FROM pond.frogs) f ON fish.id = f.id "
            "WHEN MATCHED AND NULL THEN DELETE WHEN MATCHED THEN UPDATE SET tags = [f.kind]"
        ),
        (
            "UPDATE fish SET tags = [f.kind] FROM (SELECT DISTINCT * FROM pond.frogs) f WHERE"
            " fish.id = f.id"
        ),
    ),
    (
        (
            "MERGE INTO copied USING pond.frogs ON copied.id + 100 = pond.frogs.id "
            "WHEN NOT MATCHED THEN INSERT (id, kind) VALUES (pond.frogs.id, pond.frogs.kind)"
        ),
        "",
    ),
    (
        "ALTER TABLE fish ADD COLUMN (a1 INT, a2 STRING)",
        "ALTER TABLE fish ADD COLUMN a1 INT; ALTER TABLE fish ADD COLUMN a2 VARCHAR",
    ),
    (
        "ALTER TABLE fish ADD COLUMNS a3 INT COMMENT 'third', a4 INT",
        (
            "ALTER TABLE fish ADD COLUMN a3 INT; COMMENT ON COLUMN fish.a3 IS 'third'; ALTER "
            "TABLE fish ADD COLUMN a4 INT"
        ),
    ),
    (
        "ALTER TABLE fish DROP COLUMN (a1, a2)",
        "ALTER TABLE fish DROP COLUMN a1; ALTER TABLE fish DROP COLUMN a2",
    ),
    (
        "ALTER TABLE fish DROP COLUMN IF EXISTS a4, nothing",
        "ALTER TABLE fish DROP COLUMN a4",
    ),
    (
        "ALTER TABLE fish CHANGE COLUMN a3 third BIGINT COMMENT 'the third'",
        (
            "ALTER TABLE fish ALTER a3 TYPE BIGINT; ALTER TABLE fish RENAME a3 TO third; "
            "COMMENT ON COLUMN fish.third IS 'the third'"
        ),
    ),
    (
        "ALTER TABLE fish CHANGE size size DECIMAL(8,2)",
        "ALTER TABLE fish ALTER size TYPE DECIMAL(8,2)",
    ),
    (
        (
            "ALTER TABLE fish ALTER COLUMN id TYPE BIGINT, kind COMMENT 'what it is', size "
            "SET DEFAULT 3"
        ),
        (
            "ALTER TABLE fish ALTER id TYPE BIGINT; COMMENT ON COLUMN fish.kind IS 'what it "
            "is'; ALTER TABLE fish ALTER size SET DEFAULT '3.00'"
        ),
    ),
    (
        "ALTER TABLE pond.frogs RENAME TO pond.toads",
        "ALTER TABLE pond.frogs RENAME TO toads",
    ),
)
SEEN = (
    "FROM fish",
    "FROM copied",
    "FROM pond.toads",
    "SELECT column_name, data_type, column_default, comment FROM duckdb_columns() "
    "WHERE database_name = 'lk' AND table_name = 'fish'",
)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> tuple[Path, Path]:
    duck.required()
    folder = tmp_path_factory.mktemp("spellings")
    ours = (text for text, _ in CHANGES)
    theirs = (other or text for text, other in CHANGES)
    twins.by_duckdb(folder / "duckdb", (*MAKE, *theirs))
    twins.by_penstock(folder / "penstock", (*MAKE, *ours), spark)
    return folder / "penstock", folder / "duckdb"


@pytest.mark.parametrize("query", SEEN)
def test_as_duckdb_has_it(pair: tuple[Path, Path], query: str) -> None:
    ours, theirs = pair
    assert twins.rows(ours, query) == twins.rows(theirs, query) != []


# Of rows that no source row matches; its columns would be NULL.
NO_SOURCE = (
    "AND f.id IS NULL THEN DELETE",
    "AND kind = f.kind THEN DELETE",
    "THEN UPDATE SET kind = f.kind",
    "THEN UPDATE SET *",
    "THEN UPDATE",
)


@pytest.mark.parametrize("clause", NO_SOURCE)
def test_where_no_source_row_is(pair: tuple[Path, Path], spark: SparkSession, clause: str) -> None:
    text = (
        "MERGE INTO copied AS t USING pond.toads AS f ON t.id = f.id\nWHEN NOT MATCHED BY SOURCE "
    )
    with Lake.attach(twins.uri(pair[0]), spark=spark) as lake:
        before = len(lake.snapshots())
        with pytest.raises(PenstockError, match=r"at line 2:|of all columns"):
            lake.sql(text + clause)
        assert len(lake.snapshots()) == before


@pytest.mark.parametrize("value", ["X'FF41'", ":bytes"])
def test_bytes_are_no_text(pair: tuple[Path, Path], spark: SparkSession, value: str) -> None:
    text = f"INSERT INTO copied VALUES (1, {value})"
    with (
        Lake.attach(twins.uri(pair[0]), spark=spark) as lake,
        pytest.raises(SchemaMismatch, match="the rows have blob"),
    ):
        lake.sql(text, args={"bytes": b"\xffA"})


CALLS = (
    "CALL lk.snapshots()",
    "/* a */ CALL ducklake_snapshots('lk')",
    "CALL lk.current_snapshot()",
    "CALL ducklake_table_changes('lk', 'main', 'fish', 2, 5)",
)


@pytest.mark.parametrize("call", CALLS)
def test_calls_of_table_functions(pair: tuple[Path, Path], spark: SparkSession, call: str) -> None:
    with Lake.attach(twins.uri(pair[0]), spark=spark, read_only=True, name="lk") as lake:
        df = lake.sql(call)
        theirs = twins.rows(pair[0], call.removeprefix("/* a */ "))
        assert (df.count(), len(df.columns)) == (len(theirs), len(theirs[0]))


# By Spark, and what DuckDB answers.
QUERIES = {
    "TABLE n": "FROM n",
    "(TABLE n) UNION ALL TABLE n": "FROM n UNION ALL FROM n",
    "SELECT [1, a], {'x': a}.x, MAP {'k': [a]}['k'] FROM n": (
        "SELECT [1, a], {'x': a}.x, MAP {'k': [a]}['k'] FROM n"
    ),
    "SELECT CAST(parse_json('{\"x\": [7]}') :['x'][0] AS INT) FROM n": "SELECT 7 FROM n",
    "SELECT a FROM n FOR SYSTEM_VERSION AS OF 2": "FROM n AT (VERSION => 2)",
    "SELECT a FROM n WHERE [a] = [2]": "SELECT a FROM n WHERE [a] = [2]",
}


def test_queries(tmp_path: Path, spark: SparkSession) -> None:
    duck.required()
    twins.by_penstock(
        tmp_path / "lake", ("CREATE TABLE n (a INT)", "INSERT INTO n VALUES (1), (2)")
    )
    with Lake.attach(twins.uri(tmp_path / "lake"), spark=spark, read_only=True) as lake:
        for text, theirs in QUERIES.items():
            rows = sorted((tuple(row) for row in lake.sql(text).collect()), key=repr)
            assert rows == twins.rows(tmp_path / "lake", theirs), text
