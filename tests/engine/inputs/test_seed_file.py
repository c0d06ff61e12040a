"""The file of a SEED, read on the driver and made a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.engine.inputs.declared_columns import cast_to
from penstock.engine.inputs.seed_file import seed_file
from penstock.errors import ArgumentError, Location, QueryFailed
from penstock.model.values.asset import ColumnType
from penstock.spark.failures import explained
from tests.engine.conftest import Make
from tests.engine.toy import rows, step

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODEL = """MODEL (
  name codes,
  kind SEED (path '$root/codes.csv', csv_settings (delimiter = ';', na_values = (price = ('-'))))
  {}
);
"""


@pytest.mark.spark
def test_a_seed_is_loaded_and_stays_until_it_changes(make: Make) -> None:
    project = make({"models/codes": MODEL.format("")})
    file = Path(project.settings.root, "codes.csv")
    text = '\ufeffid;name;price;ok;code;digits\n1;"a;""b""";1.5;true;1_0;١\n\n2;;-;NA;2;2\n'
    file.write_text(text)
    result = project.run()
    assert step(result, "codes").state == "done"
    assert "codes.csv: 1 value `NA` of ok read as NULL" in result.notices[0].message
    assert rows(project, "SELECT * FROM codes ORDER BY id") == [
        (1, 'a;"b"', 1.5, True, "1_0", "١"),
        (2, None, None, None, "2", "2"),
    ]
    assert step(project.run(), "codes").state == "unchanged"
    types = {column.name: column.type for column in project.show("codes").columns}
    assert types == {
        "id": "int64",
        "name": "varchar",
        "price": "float64",
        "ok": "boolean",
    } | dict.fromkeys(("code", "digits"), "varchar")
    file.write_text("id;name;price;ok\n007;-;2;x\n")
    columns = ", columns (code TEXT, label TEXT, price DECIMAL(9, 2), ok TEXT)"
    project = make({"models/codes": MODEL.format(columns)})
    assert step(project.run(), "codes").rows == 1
    found = rows(project, "SELECT code, label, CAST(price AS STRING), ok FROM codes")
    assert found == [("007", "-", "2.00", "x")]
    assert [tuple(row) for row in project.preview("codes").select("code").collect()] == [("007",)]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a;b\n1;2\n3\n", "codes.csv, line 3: the row has 1 of 2 columns"),
        (b'a;b\n1;"2\n', "codes.csv, line 2: it is not CSV"),
        (b"a;a\n1;2\n", "codes.csv, line 1: the header has 'a' twice"),
        (b"", "codes.csv: the file is empty"),
        (b"\n\n", "codes.csv: the file is empty"),
        (b"a;b\n1;2\n", "na_values has 'price', which is not a column of it"),
        (b"a;b\n\xff;2\n", "codes.csv: it is not utf-8"),
        (None, "file codes.csv does not exist"),
    ],
)
def test_a_file_that_is_wrong(make: Make, content: bytes | None, message: str) -> None:
    project = make({"models/codes": MODEL.format("")})
    if content is not None:
        Path(project.settings.root, "codes.csv").write_bytes(content)
    failed = step(project.run(), "codes")
    assert failed.state == "failed"
    assert isinstance(failed.error, QueryFailed)
    assert message in failed.error.message
    assert failed.error.location is not None
    assert str(failed.error.location.path).endswith("codes.sql")


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("a,b\n1\n", {}, "x.csv, line 2: the row has 1 of 2 columns"),
        ("a,\n1,2\n", {}, "x.csv, line 1: the header has no name for column 2"),
        ("a\n1\n", {"encoding": "utf-16"}, "x.csv: it is not utf-16"),
        ("a,b\n1,2\n", {"columns": ["a"]}, "x.csv, line 1: the row has 2 of 1 columns"),
        (f"a\n{'x' * 131_073}\n", {}, "line 2: a value has more than 131,072 characters"),
    ],
)
def test_texts_that_cannot_be_read(
    tmp_path: Path, content: str, options: dict[str, object], message: str
) -> None:
    (tmp_path / "x.csv").write_text(content)
    seed = seed_file("x.csv", options, root=tmp_path, location=None)
    with pytest.raises(QueryFailed, match=message):
        seed.texts()


def test_texts_that_are_null_unasked_are_counted(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("region,n\nNA,1\nNA,-\nEU,\nnull,NA\n")
    options = {"na_values": {"n": ("-", "NA")}}
    seed = seed_file("x.csv", options, root=tmp_path, location=None)
    said = [text.partition(";")[0] for text in seed.notices()]
    assert said == [
        "x.csv: 2 values `NA` of region read as NULL",
        "x.csv: 1 value `null` of region read as NULL",
    ]
    kept = seed_file("x.csv", {"keep_default_na": False}, root=tmp_path, location=None)
    assert not list(kept.notices())


def test_an_option_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a\n")
    with pytest.raises(ArgumentError, match=r"read_seed: .*'nosuch'"):
        seed_file("x.csv", {"nosuch": 1}, root=tmp_path, location=None)


def test_a_value_that_does_not_fit_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n,t\n1,x\n\noops,y\n")
    file = seed_file("a.csv", {"columns": ("n", "t")}, root=tmp_path, location=None)
    said = 'Spark: The value \'{}\' of the type "STRING" cannot be cast to "INT" because'
    blamed = file.blamed(QueryFailed(said.format("oops")))
    assert blamed is not None
    assert "a.csv, line 4: 'oops' in column n is not INT" in blamed.message
    assert file.blamed(QueryFailed(said.format("elsewhere"))) is None
    assert file.blamed(QueryFailed("another error")) is None


@pytest.mark.spark
@pytest.mark.parametrize(
    ("kind", "text"),
    [("DATE", "2024-05"), ("DOUBLE", "1D"), ("TIMESTAMPTZ", "10:00"), ("DOUBLE", "x")],
)
def test_a_text_that_is_a_value_to_spark_alone(
    tmp_path: Path, spark: SparkSession, kind: str, text: str
) -> None:
    (tmp_path / "a.csv").write_text(f"v\n\n{text}\n")
    file = seed_file("a.csv", {"columns": ("v",)}, root=tmp_path, location=None)
    columns = [ColumnType("v", kind, Location("models/a.sql", 1, 1))]
    with pytest.raises(QueryFailed) as raised, explained():
        cast_to(file.read(spark), columns).collect()
    blamed = file.blamed(raised.value)
    assert blamed is not None
    assert f"a.csv, line 3: '{text}' in column v is not" in blamed.message
