"""Models that may make other rows although nothing that they read has changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.model.slicing.undated import views_read, why_undated
from penstock.project.project import Project
from tests.engine.toy import write_project

HEAD = "-- pipeline\n-- materialize ducklake://main/t"
DAILY = f"{HEAD}\n-- partitioned daily\n"
MANUAL = HEAD.replace("materialize", "materialize manual")
CASES = {
    "SELECT * FROM a": None,
    "SELECT 1 AS x": None,
    "SELECT * FROM a VERSION AS OF 3": None,
    "SELECT * FROM read_csv('a.csv')": None,
    "SELECT now() AS at FROM a": "now differs from run to run",
    "SELECT current_date AS day FROM a": "current_date differs from run to run",
    "WITH b AS (SELECT rand() AS r FROM a) SELECT * FROM b": "rand differs from run to run",
    "SELECT my_macro(x) AS x FROM a": "functions that Spark does not have",
    "SELECT * FROM ducklake_snapshots('main')": "tells what the lake is now",
}


def why(root: Path, text: str, name: str = "models/t") -> str | None:
    project = Project.load(write_project(root / "p", {name: text}))
    return why_undated(project.model("t"))


@pytest.mark.parametrize("query", CASES)
def test_queries(query: str, tmp_path: Path) -> None:
    expected = CASES[query]
    found = why(tmp_path, f"{HEAD}\n{query}")
    assert (found is None) is (expected is None)
    assert (expected or "") in (found or "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{HEAD} append\nSELECT 1 AS x", "append does what it does once a run"),
        (f"{DAILY.replace('main/t', 'main/t append')}SELECT '{{partition}}' AS x", None),
        (
            f"{MANUAL}\nCREATE TABLE IF NOT EXISTS t (x INT)",
            "once a run",
        ),
        (f"{HEAD} key=x\nSELECT 1 AS x", None),
        (f"{HEAD}\n-- data_test expression x > 0\nSELECT 1 AS x", None),
        (
            f"{HEAD}\n-- data_test expression at > now() - INTERVAL 1 DAY\nSELECT at FROM a",
            "now of a data test differs from run to run",
        ),
        (f"{DAILY}SELECT @start_ds AS x", None),
        (f"{DAILY}SELECT @execution_ds AS x", "@execution_ds follows the moment of the run"),
        (f"{DAILY}SELECT $partition_start AS x", None),
        (f"{HEAD}\n-- $n (int) = 1\nSELECT $n AS x", None),
        ("MODEL (name main.t, kind FULL);\nSELECT @end_ds AS x", "@end_ds follows the moment"),
    ],
)
def test_declarations(text: str, expected: str | None, tmp_path: Path) -> None:
    found = why(tmp_path, text)
    assert (found is None) is (expected is None), found
    assert (expected or "") in (found or "")


PYTHON = """
# pipeline
# materialize ducklake://main/t
{on}import pyarrow as pa

def main({parameters}) -> pa.Table:
    return pa.table({{"x": [1]}})
"""


@pytest.mark.parametrize(
    ("on", "parameters", "expected"),
    [
        ("", "", "declares no table"),
        ("# on ducklake://main/a\n", "a: pa.Table", None),
        ("# on ducklake://main/a\n", "a: pa.Table, payload: dict", "reads the payload"),
    ],
)
def test_python(on: str, parameters: str, expected: str | None, tmp_path: Path) -> None:
    found = why(tmp_path, PYTHON.format(on=on, parameters=parameters), "models/t.py")
    assert (found is None) is (expected is None), found
    assert (expected or "") in (found or "")


def test_an_embedded_query_and_a_view_are_looked_through(tmp_path: Path) -> None:
    scripts = {
        "models/e": "MODEL (name main.e, kind EMBEDDED);\nSELECT now() AS x",
        "models/v": "MODEL (name main.v, kind VIEW);\nSELECT now() AS x",
        "models/w": "MODEL (name main.w, kind VIEW);\nSELECT x FROM v",
        "models/r": f"{HEAD.replace('main/t', 'main/r')}\nSELECT * FROM e",
        "models/t": f"{HEAD}\nSELECT * FROM w",
    }
    project = Project.load(write_project(tmp_path / "p", scripts))
    views = views_read(project.models)
    assert {name: [v.name for v in of] for name, of in views.items()} == {
        "t": ["w", "v"],
        "w": ["v"],
    }
    assert why_undated(project.model("r")) == "now differs from run to run"
    assert why_undated(project.model("t")) is None
    assert why_undated(project.model("t"), views["t"]) == "v: now differs from run to run"
