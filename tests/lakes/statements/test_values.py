"""Literals of VALUES in columns of types that Spark has none of, written without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import SchemaMismatch, UnsupportedFeature
from penstock.lakes.lake import Lake
from tests import duck

WRITTEN = {
    "DATE": ["infinity", "-infinity", "2026-01-02"],
    "TIMESTAMP": ["infinity", "2026-01-02 03:04:05"],
    "TIMESTAMPTZ": ["-infinity"],
    "TIMESTAMP_NS": ["2026-01-02 03:04:05.123456", "2026-01-02 03:04:05.123456789"],
    "TIME": ["10:00:00.5"],
    "HUGEINT": ["12345678"],
}
INLINED = {"INTERVAL": ["3 days 04:05:06", "1 year 2 days"], "TIMETZ": ["10:00:00+02"]}


@pytest.fixture
def place(tmp_path: Path) -> str:
    return f"ducklake:sqlite:{tmp_path}/m.sqlite"


@pytest.mark.parametrize("rows", [1, 12], ids=["inlined", "in files"])
def test_duckdb_reads_what_was_written(place: str, tmp_path: Path, rows: int) -> None:
    kinds = WRITTEN if rows > 10 else WRITTEN | INLINED
    with Lake.attach(place, data_path=f"{tmp_path}/d") as lake:
        for kind, texts in kinds.items():
            values = ", ".join(f"('{text}')" for text in texts * rows)
            lake.sql(f"CREATE TABLE {kind} (a {kind}); INSERT INTO {kind} VALUES {values}")
    for kind, texts in kinds.items():
        read = duck.rows(place, f"SELECT DISTINCT a::VARCHAR FROM {kind}")
        assert [text.removesuffix("+00") for (text,) in read] == sorted(texts), kind


def test_units_of_intervals(place: str, tmp_path: Path) -> None:
    with Lake.attach(place, data_path=f"{tmp_path}/d") as lake:
        lake.sql("CREATE TABLE i (a INTERVAL)")
        lake.sql("INSERT INTO i VALUES ('90 minutes'), ('2 quarters 1 week 3 h'), ('1 month ago')")
        with pytest.raises(SchemaMismatch, match="'soon' is not an interval"):
            lake.sql("INSERT INTO i VALUES ('soon')")
        with pytest.raises(UnsupportedFeature, match="not written to files"):
            lake.sql(f"INSERT INTO i VALUES {', '.join(['(' + repr('1 day') + ')'] * 12)}")
    read = duck.rows(place, "SELECT a::VARCHAR FROM i")
    assert read == [("-1 month",), ("01:30:00",), ("6 months 7 days 03:00:00",)]
    with Lake.attach(place) as lake, pytest.raises(SchemaMismatch, match="timestamp_s"):
        lake.sql("CREATE TABLE s (a TIMESTAMP_S); INSERT INTO s VALUES ('infinity')")
