"""Files that make no model, each named with what to write."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import Diagnostic
from tests.model.project.test_python_models import load

MAIN = "def main(partition: str): ...\n"
SQLMESH = "from sqlmesh import model\n@model('db.sushi.orders', kind='full')\ndef execute(): ...\n"
SQL = "from sqlmesh import model\n@model('sushi.x', is_sql=True)\ndef entrypoint(): ...\n"


@pytest.mark.parametrize(
    ("text", "severity", "line", "said"),
    [
        (f"# materialise ducklake://main/a\n{MAIN}", "error", 1, "did you mean `# materialize d"),
        (f"# Pipeline\n# tag x\n{MAIN}", "warning", 1, "did you mean `# pipeline`?"),
        (f"# Materialize ducklake://main/a\n{MAIN}", "error", 1, "did you mean `# materialize"),
        (f"# materialize: ducklake://main/a\n{MAIN}", "error", 1, "did you mean `# materialize"),
        ("# materialize: ducklake://main/a\nx = 1\n", "error", 1, "did you mean `# materialize"),
        (f"import a\n# materialize ducklake://main/a\n{MAIN}", "error", 2, "move it into the"),
        (f"# partitioned daily\n{MAIN}", "error", 1, "add `# materialize ducklake://main/t` to"),
        (f"# on ducklake://main/a\n# data_test unique a\n{MAIN}", "error", 1, "add `# materialize"),
        (f"# a step\n{MAIN}", "warning", 2, "or move the file out of the models directory"),
        (SQLMESH, "error", 2, "write `# materialize ducklake://main/sushi.orders` at its top"),
        (SQL, "error", 2, "write its query in a .sql file: MODEL (name sushi.x, kind FULL)"),
    ],
)
def test_a_python_file_that_is_meant_as_a_step(
    tmp_path: Path, text: str, severity: str, line: int, said: str
) -> None:
    (found,) = load(tmp_path, text).diagnostics
    assert (found.severity, found.location.line) == (severity, line)
    assert found.hint is not None
    assert said in found.hint


@pytest.mark.parametrize(
    "text",
    [
        "import re\n# materialize ducklake://main/a is what steps write\ndef helper(): ...\n",
        "def main(): ...\nif __name__ == '__main__':\n    main()\n",
        "x = (\n",
        "def model(name): ...\n@model('x')\ndef f(): ...\n",
    ],
)
def test_modules_and_programs_are_left_alone(tmp_path: Path, text: str) -> None:
    found: tuple[Diagnostic, ...] = load(tmp_path, text).diagnostics
    assert found == ()
