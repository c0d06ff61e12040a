"""What differs between two definitions of a model."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.engine.planning.definition_diff import DefinitionDiff, definition_diff
from penstock.project.project import Project
from tests.engine.planning.test_reasons import HEAD
from tests.engine.toy import write_project

HEADER = HEAD.format("days")


def parts(root: Path, script: str) -> dict[str, str]:
    return (
        Project.load(write_project(root / "p", {"models/days": script})).models[0].definition_parts
    )


def test_a_definition_does_not_differ_from_itself(tmp_path: Path) -> None:
    known = parts(tmp_path, f"{HEADER}SELECT 1 AS a")
    assert definition_diff(known, known) == DefinitionDiff(())


def test_queries_differ_line_by_line() -> None:
    diff = definition_diff({"query": "SELECT a\nFROM t"}, {"query": "SELECT a, b\nFROM t"})
    assert diff.parts == ("query",)
    assert diff.lines == (
        "--- query, as recorded",
        "+++ query now",
        "@@ -1,2 +1,2 @@",
        "-SELECT a",
        "+SELECT a, b",
        " FROM t",
    )


def test_other_parts_differ_by_their_values() -> None:
    diff = definition_diff(
        {"argument n": "int = 3"}, {"argument n": "int = 4", "argument m": "text"}
    )
    assert diff.lines == ("argument n: int = 3 -> int = 4", "argument m: none -> text")


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ("SELECT 1 AS a", "SELECT 2 AS a", ("query",)),
        ("-- $n (int) = 3\nSELECT $n AS a", "-- $n (int) = 4\nSELECT $n AS a", ("argument n",)),
        ("SET spark.x=1;\nSELECT 1 AS a", "SET spark.x=2;\nSELECT 1 AS a", None),
    ],
)
def test_what_changed_is_named(
    tmp_path: Path, old: str, new: str, names: tuple[str, ...] | None
) -> None:
    before, after = parts(tmp_path, HEADER + old), parts(tmp_path, HEADER + new)
    diff = definition_diff(before, after)
    if names is None:
        assert "setting spark.x" in diff.parts
        assert after["setting spark.x"] not in {"1", "2"}
    else:
        assert set(names) <= set(diff.parts) <= {*names, "query"}


def test_a_property_is_named(tmp_path: Path) -> None:
    before = parts(tmp_path, f"{HEADER}SELECT 1 AS a")
    after = parts(tmp_path, HEADER.replace("daily", "monthly") + "SELECT 1 AS a")
    assert definition_diff(before, after).parts == ("partition",)


MACRO = "MODEL (name main.m, kind FULL);\n@DEF(f, x -> x + {});\nSELECT @f(1) AS a"


def test_a_macro_shows_in_what_it_makes(tmp_path: Path) -> None:
    before, after = (parts(tmp_path, MACRO.format(number)) for number in (1, 2))
    diff = definition_diff(before, after)
    assert diff.parts == ("query", "macro f")
    assert "+@DEF(f, x -> x + 2);" in diff.lines


PROJECT_MACRO = """
from sqlmesh import macro

@macro()
def plus(evaluator, x):
    return f"{x} + NUMBER"
"""
LIBRARY = "-- macros\nCREATE MACRO plus(x) AS x + NUMBER"
EMBEDDED = {
    "models/low": "MODEL (name main.low, kind EMBEDDED);\nSELECT @plus(1) AS a",
    "models/m": "MODEL (name main.m, kind FULL);\nSELECT a FROM main.low",
}


@pytest.mark.parametrize(
    ("scripts", "macros", "call"),
    [
        ({"models/m": "MODEL (name main.m, kind FULL);\nSELECT @plus(1) AS a"}, "py", "@plus(1)"),
        (EMBEDDED, "py", "@plus(1)"),
        ({"models/m": "MODEL (name main.m, kind FULL);\nSELECT plus(1) AS a"}, "sql", "plus(1)"),
    ],
)
def test_a_macro_of_the_project_is_named(
    tmp_path: Path, scripts: dict[str, str], macros: str, call: str
) -> None:
    """Also where an EMBEDDED model calls it."""
    root = write_project(tmp_path / "p", scripts)
    text = PROJECT_MACRO if macros == "py" else LIBRARY
    (root / "macros").mkdir()
    found = []
    for number in (1, 22):  # of other length: Python compares compiled files by size and second
        (root / "macros" / f"own.{macros}").write_text(text.replace("NUMBER", str(number)))
        with Project.load(root) as project:
            found.append(project.model("m").definition_parts)
    diff = definition_diff(*found)
    assert diff.parts == ("macro plus",)
    assert any(line.startswith(f"macro plus: {call}: ") for line in diff.lines)


def test_other_calls_of_a_macro_are_no_change_of_it() -> None:
    old, new = {"query": "f(1)", "macro f": '{"f(1)": "1"}'}, {"query": "f(2)"}
    assert definition_diff(old, new | {"macro f": '{"f(2)": "2"}'}).parts == ("query",)


def test_only_a_macro_elsewhere_has_changed() -> None:
    old = {"query": "SELECT @f(1)", "query with its macros": "SELECT 1 + 1"}
    diff = definition_diff(old, old | {"query with its macros": "SELECT 1 + 2"})
    assert diff.parts == ("query with its macros",)
    assert diff.lines[-2:] == ("-SELECT 1 + 1", "+SELECT 1 + 2")
