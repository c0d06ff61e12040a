"""Files that may be missing: their slices are empty."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from penstock.engine.inputs.file_reader import NoFiles
from penstock.engine.inputs.resolve import files_of
from penstock.engine.running.sources import _with_files
from penstock.errors import ArgumentError, QueryFailed
from penstock.model.script.constants import Bindings
from penstock.model.slicing.slice_condition import NotJoint
from tests.engine.conftest import Make
from tests.engine.toy import rows, step
from tests.model.slicing.test_joint import model_of

COLUMNS = "columns = {'id': 'BIGINT'}"
CALL = "SELECT * FROM read_csv('data/x.csv'{})"


def read(root: Path, options: str) -> object:
    query = model_of(root, CALL.format(options)).query
    return files_of(query.files[0], query, Bindings(partition="2026-01-01"), root)


def test_a_missing_file_is_an_error_unless_the_call_says_so(tmp_path: Path) -> None:
    with pytest.raises(QueryFailed, match="does not exist"):
        read(tmp_path, f", {COLUMNS}")
    assert isinstance(read(tmp_path, f", {COLUMNS}, missing = 'empty'"), NoFiles)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x.csv").write_text("id\n1\n")
    assert not isinstance(read(tmp_path, f", {COLUMNS}, missing = 'empty'"), NoFiles)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (", missing = 'empty'", "needs the columns"),
        (f", {COLUMNS}, missing = 'skip'", "missing is 'skip'"),
    ],
)
def test_what_a_call_cannot_say(tmp_path: Path, options: str, said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        read(tmp_path, options)


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
