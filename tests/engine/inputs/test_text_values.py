"""SQL that converts texts of CSV files; what it does is tested with the files."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.engine.inputs.file_reader import Files, files
from penstock.engine.inputs.text_values import Formats, Misfit, is_readable, misfit_in, value_of
from penstock.errors import ArgumentError, PenstockError, QueryFailed
from penstock.spark.failures import explained

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


NONE = Formats()


def test_texts_are_their_own_values() -> None:
    assert value_of("c0", "STRING", NONE, "k", 0) == "c0"


@pytest.mark.parametrize("kind", ["BIGINT", "DECIMAL(9, 2)", "DOUBLE", "DATE", "TIMESTAMP_NTZ"])
def test_another_text_raises_an_error_with_its_column(kind: str) -> None:
    sql = value_of("c3", kind, NONE, "abc", 3)
    assert "raise_error(concat('penstock_csv abc 3 ', hex(c3), ' penstock_csv_end'))" in sql
    assert sql.startswith("coalesce(")


def test_the_text_of_an_error() -> None:
    message = (
        f"[USER_RAISED_EXCEPTION] penstock_csv abc 3 {b'1,50 x'.hex().upper()} penstock_csv_end"
    )
    assert misfit_in(message, "abc") == Misfit(3, "1,50 x")
    assert misfit_in(message, "other") is None
    assert misfit_in("another error", "abc") is None


def test_types_without_texts() -> None:
    assert [is_readable(kind) for kind in ("INT", "DECIMAL(38, 0)", "ARRAY<INT>", "VARIANT")] == [
        True,
        True,
        False,
        False,
    ]


def test_formats_are_javas() -> None:
    formats = Formats("%d/%m/%y", "%d.%m.%Y %H:%M", ",")
    assert "try_to_date(c0, 'd/M/yy')" in value_of("c0", "DATE", formats, "k", 0)
    assert "'d.M.yyyy H:m'" in value_of("c0", "TIMESTAMP_NTZ", formats, "k", 0)
    assert "translate(c0, ',.', '.#')" in value_of("c0", "DECIMAL(9, 2)", formats, "k", 0)


def read(root: Path, text: str | bytes, **options: Any) -> Files:
    (root / "a.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    made = files("read_json", "a.json", options, root=root, location=None)
    assert isinstance(made, Files)
    return made


@pytest.mark.parametrize(
    ("columns", "notices"),
    [
        ({"id": "BIGINT"}, []),
        ({"id": "BIGINT", "cost": "BIGINT"}, ["column `cost` of read_json is in none"]),
        ({"ID": "BIGINT"}, ["the file has `id`: write the column in these letters"]),
    ],
)
def test_a_declared_column_that_no_row_has(
    tmp_path: Path, columns: dict[str, str], notices: list[str]
) -> None:
    for text in ('{"id": 1}\n{"id": 2, "price": 3}\n', '[{"id": 1},\n {"id": 2}]'):
        found = list(read(tmp_path, text, columns=columns).notices())
        assert len(found) == len(notices)
        assert all(notice in said for notice, said in zip(notices, found, strict=True))


def test_an_encoding_that_sparks_json_lacks(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="supported by read_csv only"):
        read(tmp_path, "{}", encoding="cp1252")
    with pytest.raises(QueryFailed, match="UTF-16 with an object a line is not read"):
        read(tmp_path, '{"a": 1}\n{"a": 2}\n'.encode("utf-16"), encoding="utf-16")


KINDS = {
    "i": "BIGINT",
    "d": "DECIMAL(9,2)",
    "x": "DOUBLE",
    "b": "BOOLEAN",
    "t": "VARCHAR",
    "day": "DATE",
    "s": "STRUCT(p DECIMAL(9,2), n VARCHAR)",
    "l": "DATE[]",
}
ROW = (
    '{"i": 3000000000, "d": "1.50", "x": 2.25, "b": true, "t": 1.50, "day": "2026-05-16", '
    '"s": {"p": 1.5, "n": "x"}, "l": ["2026-05-16", null]}'
)
DAY = dt.date(2026, 5, 16)
VALUES = (3000000000, Decimal("1.50"), 2.25, True, "1.50", DAY, (Decimal("1.50"), "x"), [DAY, None])


@pytest.mark.spark
def test_values_are_those_that_are_written(tmp_path: Path, spark: SparkSession) -> None:
    texts: tuple[str | bytes, ...] = (
        ROW,
        f"\ufeff{ROW}",
        f"\ufeff[\n{ROW}\n]",
        f"\ufeff{{\n{ROW[1:]}",
    )
    for text in texts:
        frame = read(tmp_path, text, columns=KINDS).read(spark)
        ((*values,),) = (tuple(row) for row in frame.collect())
        values[4] = "1.50" if values[4] == "1.5" else values[4]  # in a document
        assert tuple(tuple(v) if hasattr(v, "asDict") else v for v in values) == VALUES, text


@pytest.mark.spark
@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("DECIMAL(9,2)", '"1,50"', "1,50"),
        ("DATE", '"2024-05"', "2024-05"),
        ("DOUBLE", '"1D"', "1D"),
        ("BIGINT", "1.5", "1.5"),
        ("STRUCT(p DECIMAL(9,2))", '{"p": "1,50"}', "1,50"),
        ("DECIMAL(9,2)[]", '["1,50"]', "1,50"),
    ],
)
def test_other_texts_are_refused_with_their_line(
    tmp_path: Path, spark: SparkSession, kind: str, value: str, text: str
) -> None:
    made = read(tmp_path, f'{{"a": null}}\n{{"a": {value}}}\n', columns={"a": kind})
    with pytest.raises(PenstockError) as raised, explained():
        made.read(spark).collect()
    blamed = made.blamed(raised.value)
    assert blamed is not None
    assert blamed.message.startswith(f"a.json, line 2: {text!r} is not of its column's type")
