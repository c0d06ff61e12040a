"""read_csv and its like: DuckDB's options as Spark's, files found, mistakes said."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from penstock.engine.inputs.file_reader import NoFiles, files
from penstock.engine.inputs.resolve import files_of
from penstock.engine.running.sources import _with_files
from penstock.errors import ArgumentError, Location, QueryFailed
from penstock.model.script.constants import Bindings
from penstock.model.slicing.slice_condition import NotJoint
from tests.engine.conftest import Make
from tests.engine.toy import rows, step
from tests.model.slicing.test_joint import model_of

PLACE = Location("models/raw.sql", 7, 6)


def read(root: Path, function: str = "read_csv", path: Any = "a.csv", **options: Any) -> Any:
    for name in ("a.csv", "b.csv"):
        (root / name).write_text("x,y\n1,2\n")
    return files(function, path, options, root=root, location=PLACE)


def test_csv_leaves_nothing_to_spark_defaults(tmp_path: Path) -> None:
    files = read(tmp_path)
    assert files.paths == (str(tmp_path / "a.csv"),)
    assert files.columns == (("x", "BIGINT"), ("y", "BIGINT"))
    assert files.parts[0].form.options(files.options) == {
        "header": "true",
        "sep": ",",
        "quote": '"',
        "escape": '"',
        "encoding": "UTF-8",
        "multiLine": "false",
        "nullValue": "",
        "emptyValue": "",
        "ignoreLeadingWhiteSpace": "false",
        "ignoreTrailingWhiteSpace": "false",
        "inferSchema": "false",
        "enforceSchema": "true",
        "columnPruning": "false",
        "mode": "FAILFAST",
    }


def test_declared_columns_are_spark_types(tmp_path: Path) -> None:
    files = read(tmp_path, columns={"a b": "INTEGER", "t": "TIMESTAMPTZ"})
    assert files.columns == (("a b", "INT"), ("t", "TIMESTAMP"))


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("header", False, {"header": "false"}),
        ("delim", ",", {"sep": ","}),
        ("sep", "\\t", {"sep": "\t"}),
        ("nullstr", "NA", {"nullValue": "\x01"}),
        ("quote", "'", {"quote": "'", "escape": "'"}),
        ("comment", "#", {"comment": "#"}),
        ("multiline", True, {"multiLine": "true", "lineSep": "\n"}),
        ("encoding", "cp1252", {"encoding": "ISO-8859-1"}),
    ],
)
def test_options(tmp_path: Path, option: str, value: Any, said: dict[str, str]) -> None:
    files = read(tmp_path, **{option: value})
    assert said.items() <= files.parts[0].form.options(files.options).items()


def test_a_path_that_leads_out_of_the_project_is_one_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "bad.csv").write_text("x,y\n1,2\n")
    columns = {"x": "INTEGER", "y": "INTEGER"}
    read_ = files(
        "read_csv", "../bad.csv", {"columns": columns}, root=tmp_path / "project", location=None
    )
    assert read_.paths == (str(tmp_path / "bad.csv"),)
    (tmp_path / "bad.csv").write_text("x,y\n1,2\n3\n")
    cause = (
        f"Encountered error while reading file file://{tmp_path}/bad.csv. Malformed CSV record: 3"
    )
    blamed = read_.blamed(QueryFailed(cause, data={"condition": "FAILED_READ_FILE.NO_HINT"}))
    assert blamed is not None
    assert blamed.message.endswith("bad.csv, line 3: the row has 1 of 2 columns")


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
        ("decimal_separator", "x", "must be '.' or ','"),
        ("encoding", "utf-7.5", "is 'utf-7.5', and Python has no such encoding"),
        ("encoding", "gb18030", "is 'gb18030', which is not supported: convert"),
        ("columns", {"a": "INTEGER[]"}, "column a is ARRAY<INT>, which no text"),
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


COLUMNS = "columns = {'id': 'BIGINT'}"
CALL = "SELECT * FROM read_csv('data/x.csv'{})"


def read_missing_files(root: Path, options: str) -> object:
    query = model_of(root, CALL.format(options)).query
    return files_of(query.files[0], query, Bindings(partition="2026-01-01"), root)


def test_a_missing_file_is_an_error_unless_the_call_says_so(tmp_path: Path) -> None:
    with pytest.raises(QueryFailed, match="does not exist"):
        read_missing_files(tmp_path, f", {COLUMNS}")
    assert isinstance(read_missing_files(tmp_path, f", {COLUMNS}, missing = 'empty'"), NoFiles)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x.csv").write_text("id\n1\n")
    assert not isinstance(read_missing_files(tmp_path, f", {COLUMNS}, missing = 'empty'"), NoFiles)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (", missing = 'empty'", "needs the columns"),
        (f", {COLUMNS}, missing = 'skip'", "missing is 'skip'"),
    ],
)
def test_what_a_call_cannot_say(tmp_path: Path, options: str, said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        read_missing_files(tmp_path, options)


def test_slices_without_a_file_are_left_out_of_what_is_read_together() -> None:
    missing, present = NoFiles("id BIGINT"), cast("Any", object())
    call = cast("Any", "call")
    found: dict[str, Any] = {
        "01": {call: present},
        "02": {call: missing},
        "03": QueryFailed("wrong"),
    }
    assert list(_with_files(found)) == ["01", "03"]
    with pytest.raises(NotJoint, match="no slice has a file"):
        _with_files({"02": {call: missing}})
    with pytest.raises(NotJoint, match="some files of 02"):
        _with_files({"02": {call: missing, cast("Any", "other"): present}})


HEADS = (
    "-- partitioned daily start=2026-01-01\n-- materialize ducklake://main/{}\n",
    "-- partitioned daily start=2026-01-01\n-- dialect duckdb\n-- materialize ducklake://main/{}\n",
)


@pytest.mark.spark
def test_a_day_without_a_file_is_an_empty_slice(make: Make) -> None:
    query = f"SELECT id FROM read_csv('data/{{partition}}.csv', {COLUMNS}, missing = 'empty')"
    scripts = {
        f"models/{name}": head.format(name) + query
        for name, head in zip(("spark", "duck"), HEADS, strict=True)
    }
    scripts["models/apart"] = HEADS[0].format("apart") + f"{query} LIMIT 10"
    project = make(scripts)
    data = project.settings.root / "data"
    data.mkdir()
    for day in ("01", "03"):
        (data / f"2026-01-{day}.csv").write_text("id\n7\n")
    result = project.run(from_="2026-01-01", to="2026-01-03")
    assert result.state == "done", result.steps
    for name in ("spark", "duck", "apart"):
        counts = [(each.slice, each.rows) for each in result.steps if each.name == name]
        assert counts == [("2026-01-01", 1), ("2026-01-02", 0), ("2026-01-03", 1)]
    (data / "2026-01-02.csv").write_text("id\n8\n")  # it comes late
    assert step(project.run(from_="2026-01-01", to="2026-01-03", select="spark"), "spark").rows == 1
    assert rows(project, "SELECT sum(id) FROM spark") == [(22,)]
