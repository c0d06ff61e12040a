"""read_csv and its like: DuckDB's options as Spark's, files found, mistakes said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.engine.inputs.file_reader import Files, files
from penstock.errors import ArgumentError, Location, QueryFailed

PLACE = Location("models/raw.sql", 7, 6)


def read(root: Path, function: str = "read_csv", path: Any = "a.csv", **options: Any) -> Files:
    for name in ("a.csv", "b.csv"):
        (root / name).write_text("x,y\n1,2\n")
    return files(function, path, options, root=root, location=PLACE)


def test_csv_leaves_nothing_to_spark_defaults(tmp_path: Path) -> None:
    files = read(tmp_path)
    assert files.format == "csv"
    assert files.paths == (str(tmp_path / "a.csv"),)
    assert files.options == {
        "mode": "FAILFAST",
        "encoding": "UTF-8",
        "header": "true",
        "sep": ",",
        "quote": '"',
        "escape": '"',
        "inferSchema": "true",
    }


def test_columns_are_a_schema_and_nothing_is_inferred(tmp_path: Path) -> None:
    files = read(tmp_path, columns={"a b": "INTEGER", "t": "TIMESTAMPTZ"})
    assert files.schema == "`a b` INT, `t` TIMESTAMP"
    assert "inferSchema" not in files.options


@pytest.mark.parametrize(
    ("option", "value", "spark"),
    [
        ("header", False, {"header": "false"}),
        ("delim", ";", {"sep": ";"}),
        ("sep", "\t", {"sep": "\t"}),
        ("nullstr", "NA", {"nullValue": "NA"}),
        ("all_varchar", True, {"inferSchema": "false"}),
        ("dateformat", "%d/%m/%Y", {"dateFormat": "dd/MM/yyyy"}),
        ("timestampformat", "%Y-%m-%dT%H:%M:%S", {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss"}),
        ("multiline", True, {"multiLine": "true"}),
    ],
)
def test_options(tmp_path: Path, option: str, value: Any, spark: dict[str, str]) -> None:
    assert spark.items() <= read(tmp_path, **{option: value}).options.items()


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("headr", True, "did you mean 'header'"),
        ("zzz", True, "options are header"),
        ("header", "yes", "must be true or false"),
        ("columns", "x", "must be {'name'"),
        ("columns", {"a": "WAT"}, "unknown type 'WAT'"),
        ("columns", {"a": "TIME"}, "Spark cannot hold"),
        ("dateformat", "%Q", "%Q is not supported"),
    ],
)
def test_mistakes_are_placed(tmp_path: Path, option: str, value: Any, said: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        read(tmp_path, **{option: value})
    assert said in str(caught.value)
    assert str(caught.value).startswith("models/raw.sql:7:6: read_csv")


def test_a_missing_file_is_placed(tmp_path: Path) -> None:
    with pytest.raises(QueryFailed, match=r"raw.sql:7:6: file gone.csv does not exist") as caught:
        read(tmp_path, path="gone.csv")
    assert str(tmp_path / "gone.csv") in str(caught.value)


def test_lists_patterns_and_uris(tmp_path: Path) -> None:
    both = (str(tmp_path / "a.csv"), str(tmp_path / "b.csv"))
    assert read(tmp_path, path=["a.csv", "b.csv"]).paths == both
    assert read(tmp_path, path="?.csv").paths == both
    assert read(tmp_path, path="s3://bucket/x.csv").paths == ("s3://bucket/x.csv",)


@pytest.mark.parametrize("path", [3, [], ["a.csv", None], None, ""])
def test_a_path_is_a_text(tmp_path: Path, path: Any) -> None:
    with pytest.raises(ArgumentError, match="path or a list of paths"):
        read(tmp_path, path=path)


def test_a_uri_without_a_bucket(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="names no bucket") as raised:
        read(tmp_path, "read_json", "s3:///lake/x.json")
    assert raised.value.hint == "write s3://bucket/lake/x.json"
    assert raised.value.location == PLACE


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "x,channel,y\n1,web,2\n",
            "b.csv: the file has 3 columns, `columns` has 2: `channel` is new",
        ),
        ("Y\n2\n", "b.csv: the file has 1 column, `columns` has 2: `x` is missing"),
        ("x,y\n1,2\n3\n", "b.csv, line 3: the row has 1 of 2 columns"),
    ],
)
def test_a_file_with_other_columns_than_are_named(tmp_path: Path, text: str, said: str) -> None:
    of_two = read(tmp_path, path=["a.csv", "b.csv"], columns={"x": "INTEGER", "y": "INTEGER"})
    (tmp_path / "b.csv").write_text(text)
    error = QueryFailed("Malformed CSV record", data={"condition": "MALFORMED_RECORD_IN_PARSING"})
    blamed = of_two.blamed(error)
    assert blamed is not None
    assert blamed.message == said
