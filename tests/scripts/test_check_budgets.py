"""Limits fail when a figure is above them, can be lowered, and are raised with an ADR only."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

import pytest
from scripts.check_budgets import (
    count_docstring_faults,
    count_missing_sections,
    exceeded_limits,
    format_limits,
    lowered_limits,
    measure_packages,
    raises_in_history,
)

LIMITS = {"lines": {"cli": 10, "lakes/rows": 5}, "names": {"run.py": 2}}
MODULE = '''"""Read files."""


def read(path: str) -> str:
    """Read a file.

    Args:
        path: The file.

    Returns:
        Its text.
    """
    return path


def write(path: str) -> str:
    """Write a file."""
    return path


def _close(path: str) -> str:
    """Close a file."""
    return path
'''


@pytest.mark.parametrize(
    ("figures", "problems"),
    [
        ({"lines": {"cli": 10}, "names": {"run.py": 1}}, []),
        ({"lines": {"cli": 11}}, ["lines of cli: 11, the limit is 10"]),
        ({"names": {"new.py": 1}}, ["names of new.py: 1, the limit is 0"]),
        ({"shares": {"names": 0.004}}, []),
        ({"shares": {"names": 0.006}}, ["shares of names: 0.01, the limit is 0"]),
    ],
)
def test_a_figure_above_its_limit_is_a_problem(
    figures: dict[str, dict[str, float]], problems: list[str]
) -> None:
    assert list(exceeded_limits(figures, LIMITS)) == problems


def test_limits_are_lowered_and_never_raised() -> None:
    figures = {"lines": {"cli": 12, "lakes/rows": 3}, "names": {"new.py": 4}}
    assert lowered_limits(figures, LIMITS) == {"lines": {"cli": 10, "lakes/rows": 3}, "names": {}}


def test_the_text_of_limits_reads_back() -> None:
    assert tomllib.loads(format_limits(LIMITS)) == LIMITS


def test_a_package_is_the_first_two_directories(tmp_path: Path) -> None:
    for name in ("top.py", "cli/run.py", "lakes/rows/deep/merge.py", "lakes/rows/delete.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("import os\nvalue = os.name\n")
    figures = measure_packages(tmp_path)
    assert figures["lines"] == {".": 2, "cli": 2, "lakes/rows": 4}
    assert figures["files"] == {".": 1, "cli": 1, "lakes/rows": 2}
    assert figures["shares"] == {"imports": 50}


def test_docstrings_are_counted_by_file(tmp_path: Path) -> None:
    (tmp_path / "files.py").write_text(MODULE)
    (tmp_path / "bare.py").write_text("def run() -> None: ...\n")
    assert count_missing_sections(tmp_path) == {"files.py": 1}
    assert set(count_docstring_faults(tmp_path)) == {"bare.py"}


def git(root: Path, *arguments: str) -> None:
    settings = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    command = ["git", "-C", str(root), *settings, *arguments]
    subprocess.run(command, check=True, capture_output=True)


def test_a_commit_that_raises_a_limit_changes_an_adr(tmp_path: Path) -> None:
    limits, adr = tmp_path / "budgets.toml", tmp_path / "docs/adr/0001-size.md"
    adr.parent.mkdir(parents=True)
    git(tmp_path, "init", "-q")
    for lines, text in ((10, None), (8, None), (9, "for a reader"), (12, None)):
        limits.write_text(format_limits({"lines": {"cli": lines}}))
        if text:
            adr.write_text(text)
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "-qm", "change")
    (raised,) = raises_in_history(tmp_path, limits)
    assert (raised.section, raised.entry) == ("lines", "cli")
    assert "state in docs/adr/ what the addition is for" in str(raised)
