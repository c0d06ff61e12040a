"""NULL in fields that take none, found in Arrow's values; Spark's are in tests/delta."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.errors import PenstockError, QueryFailed, SchemaMismatch
from penstock.lakes.format.schema import Column
from penstock.lakes.lake import Lake
from penstock.lakes.reading.conversions.validation import missing_field, required_fields
from tests import duck

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


X = Column("x", "int64", nullable=False)
STRUCT = Column("s", "struct", children=(X, Column("y", "int64")))
LIST = Column("l", "list", children=(Column("element", "int64", nullable=False),))
STRUCTS = Column("n", "list", children=(Column("element", "struct", children=STRUCT.children),))
VALUE = Column("value", "struct", children=STRUCT.children)
MAP = Column("m", "map", children=(Column("key", "varchar"), VALUE))
STRUCT_TYPE = pa.struct([("x", pa.int64()), ("y", pa.int64())])
FULL, EMPTY = {"x": 1, "y": None}, {"x": None, "y": 1}


def test_required_fields() -> None:
    assert list(required_fields(Column("o", "struct", children=(STRUCT, MAP, LIST)))) == [
        "o.s.x",
        "o.m.value.x",
        "o.l.element",
    ]
    assert list(required_fields(X)) == []


@pytest.mark.parametrize(
    ("column", "kind", "right", "wrong", "path"),
    [
        (STRUCT, STRUCT_TYPE, [FULL, None], EMPTY, "s.x"),
        (LIST, pa.list_(pa.int64()), [[1], [], None], [1, None], "l.element"),
        (STRUCTS, pa.list_(STRUCT_TYPE), [[FULL, None], None], [FULL, EMPTY], "n.element.x"),
        (
            MAP,
            pa.map_(pa.string(), STRUCT_TYPE),
            [{"a": FULL, "b": None}, None],
            {"a": EMPTY},
            "m.value.x",
        ),
    ],
    ids=["struct", "list", "structs in a list", "map"],
)
def test_values(column: Column, kind: Any, right: list[Any], wrong: Any, path: str) -> None:
    values = pa.array([wrong, *right], kind)
    assert missing_field(pa.chunked_array([values]), column) == path
    assert missing_field(pa.chunked_array([values[1:]]), column) is None  # part of another array
    assert missing_field(pa.chunked_array([], kind), column) is None


_BYTES = b"gar\xe7on"  # Latin-1, whose last letters no UTF-8 begins with


@pytest.fixture
def uri(tmp_path: Path, spark: SparkSession) -> str:
    uri = f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}"
    with Lake.attach(uri, data_path=f"{tmp_path}/data", spark=spark) as lake:
        lake.sql("CREATE TABLE raw (id INT, b BLOB)")
        lake.table("raw").append([{"id": 1, "b": "caf\u00e9".encode()}, {"id": 2, "b": _BYTES}])
        lake.sql("CREATE TABLE kept (id INT, v VARCHAR)")
        lake.sql("INSERT INTO kept VALUES (1, 'one'), (2, 'two')")
        lake.sql(
            "CREATE TABLE deep (l VARCHAR[], m MAP(VARCHAR, VARCHAR), "
            "s STRUCT(x INT, t VARCHAR), d STRUCT(t VARCHAR)[])"
        )
    return uri


REFUSED = (
    "INSERT INTO kept SELECT id, CAST(b AS STRING) FROM raw",
    "INSERT INTO kept VALUES (3, CAST(X'FF' AS STRING)), (4, 'x')",
    "INSERT INTO kept SELECT id, b || 'x' FROM raw",
    "INSERT INTO kept SELECT id, v FROM kept UNION ALL SELECT id, b::STRING FROM raw",
    "CREATE TABLE made AS SELECT id, left(v, 9) AS v FROM (SELECT id, string(b) AS v FROM raw)",
    "UPDATE kept SET v = (SELECT max(CAST(b AS STRING)) FROM raw)",
    "UPDATE kept SET v = CAST(X'80' AS STRING) WHERE id = 1",
    "MERGE INTO kept USING raw ON kept.id = raw.id WHEN MATCHED THEN UPDATE SET v = raw.b::STRING",
    "MERGE INTO kept USING raw ON kept.id = raw.id + 9 "
    "WHEN NOT MATCHED THEN INSERT VALUES (raw.id, raw.b::STRING)",
    "INSERT OVERWRITE kept SELECT id, CAST(b AS STRING) FROM raw",
    "INSERT INTO deep (l) SELECT array(NULL, 'a', CAST(b AS STRING)) FROM raw",
    "INSERT INTO deep (l) SELECT array(X'C3'::STRING, X'A9'::STRING)",
    "INSERT INTO deep (m) SELECT map('k', CAST(b AS STRING)) FROM raw",
    "INSERT INTO deep (m) SELECT map(CAST(b AS STRING), 'v') FROM raw",
    "INSERT INTO deep (s) SELECT named_struct('x', 1, 't', CAST(b AS STRING)) FROM raw",
    "INSERT INTO deep (d) SELECT array(NULL, named_struct('t', CAST(b AS STRING))) FROM raw",
)


@pytest.mark.parametrize("text", REFUSED)
def test_statements(uri: str, spark: SparkSession, text: str) -> None:
    with Lake.attach(uri, spark=spark) as lake:
        before = len(lake.snapshots())
        with pytest.raises(QueryFailed, match=r"not valid UTF-8.*decode") as caught:
            lake.sql(text)
        assert "at line 1:" in caught.value.message
        assert len(lake.snapshots()) == before


def test_text_stays_as_it_is(uri: str, spark: SparkSession) -> None:
    with Lake.attach(uri, spark=spark) as lake:
        lake.sql("INSERT INTO kept SELECT id, CAST(b AS STRING) FROM raw WHERE id = 1")
        lake.sql("INSERT INTO kept SELECT 3, decode(b, 'ISO-8859-1') FROM raw WHERE id = 2")
        lake.sql(
            "INSERT INTO deep SELECT array('\u00e9', NULL), map('\u00df', NULL), NULL, "
            "array(NULL, named_struct('t', '\u20ac')) UNION ALL SELECT NULL, NULL, "
            "named_struct('x', 1, 't', NULL), NULL"
        )
    with closing(duck.attach(uri)) as con:
        rows = con.execute("SELECT v FROM kept ORDER BY ALL").fetchall()
        assert rows == [("caf\u00e9",), ("gar\u00e7on",), ("one",), ("two",)]
        assert con.execute("FROM deep WHERE l IS NOT NULL").fetchall() == [
            (["\u00e9", None], {"\u00df": None}, None, [None, {"t": "\u20ac"}])
        ]


def test_frames(uri: str, spark: SparkSession, tmp_path: Path) -> None:
    """Files of other writers may hold invalid text, and Spark does not report it."""
    bad = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\6\0\0\0"), pa.py_buffer(_BYTES)]
    )
    rows = pa.table({"id": pa.array([2], pa.int32()), "v": bad})
    pq.write_table(rows, tmp_path / "others.parquet")
    frame = spark.read.parquet(str(tmp_path / "others.parquet"))
    with Lake.attach(uri, spark=spark) as lake:
        table, before = lake.table("kept"), len(lake.snapshots())
        writes: tuple[Callable[[], object], ...] = (
            lambda: table.append(frame),
            lambda: table.replace(frame),
            lambda: table.merge(frame, ["id"]),
            lambda: table.overwrite(frame, where="id = 2"),
        )
        for write in writes:
            with pytest.raises(QueryFailed, match=r"X'676172E76F6E'"):
                write()
        with pytest.raises(SchemaMismatch, match=r"column 'v' of main\.kept"):
            table.append(rows)
        with pytest.raises(PenstockError, match=r"row 2, column 'v' of main\.kept"):
            table.append([{"id": 3, "v": "x"}, {"id": 4, "v": "\ud800"}])
        assert len(lake.snapshots()) == before
