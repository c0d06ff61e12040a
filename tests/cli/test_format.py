"""penstock format and penstock show --as, without Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from penstock.cli.main import main
from tests.engine.toy import write_project

HEADER = "--materialize  ducklake://main/a key=id\nSELECT 1 AS id\n"
MODEL = "MODEL (NAME b, kind full, formatting false);\nSELECT 1 AS id\n"
AS_MODEL = """\
MODEL (
  name main.main.a,
  kind INCREMENTAL_BY_UNIQUE_KEY (
    unique_key (id),
    on_additive_change warn
  )
);
SELECT 1 AS id
"""


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    return write_project(tmp_path / "toy", {"models/a": HEADER, "models/x/b": MODEL})


def penstock(project: Path, command: str, *arguments: str) -> Result:
    return CliRunner().invoke(main, [command, "--project", str(project), *arguments])


def test_check_changes_nothing(toy: Path) -> None:
    result = penstock(toy, "format", "--check")
    path = toy / "models" / "a.sql"
    assert (result.exit_code, result.output) == (
        1,
        "would change models/a.sql\n1 file would change\n",
    )
    assert path.read_text() == HEADER


def test_files_are_written_once(toy: Path) -> None:
    path = toy / "models" / "a.sql"
    path.write_bytes(f"\ufeff{HEADER}".replace("\n", "\r\n").encode())
    assert penstock(toy, "format", str(path)).exit_code == 0
    canonical = "\ufeff-- materialize ducklake://main/a key=id\r\nSELECT 1 AS id\r\n"
    assert path.read_bytes().decode() == canonical
    said = json.loads(penstock(toy, "format", "--check", "--json").output)
    assert said == {"schema_version": 1, "changed": [], "refused": []}
    assert (toy / "models" / "x" / "b.sql").read_text() == MODEL


def test_the_other_form(toy: Path) -> None:
    assert penstock(toy, "show", "a", "--as", "model").output == AS_MODEL
    assert penstock(toy, "format", "--as", "model").exit_code == 0
    assert (toy / "models" / "a.sql").read_text() == AS_MODEL
    shown = penstock(toy, "show", "a", "--as", "annotations", "--json").output
    assert json.loads(shown) == {
        "schema_version": 1,
        "script": "-- pipeline\n-- materialize ducklake://main/a key=id\nSELECT 1 AS id\n",
    }


def test_what_people_are_to_know_is_shown(tmp_path: Path) -> None:
    said = "owner jen, tags (a, b), description 'what it is', column_descriptions (id = 'the key')"
    text = f"MODEL (name s.t, kind FULL, {said}, grain id);\nSELECT 1 AS id\n"
    toy = write_project(tmp_path / "toy", {"models/t": text})
    assert (
        "\nabout\n  description: what it is\n  owner: jen\n  tags: a, b\n  grains: id\n"
        "  column id: the key\n"
    ) in penstock(toy, "show", "t").output


def test_a_file_that_cannot_be_rewritten_is_named_and_the_others_are_written(toy: Path) -> None:
    refused = toy / "models" / "c.sql"
    refused.write_text("-- materialize ducklake://main/c\n-- retry 3\nSELECT 1 AS id\n")
    result = penstock(toy, "format", "--as", "model")
    assert result.exit_code == 2
    assert result.output == (
        "changed models/a.sql\n1 file changed\n"
        "models/c.sql:1:4: error: MODEL (...) cannot say retry\n"
        "  → leave the script in its form, or remove that\n"
    )
    assert (toy / "models" / "a.sql").read_text() == AS_MODEL
    result = penstock(toy, "format", "--as", "model", "--check", "--json")
    said = json.loads(result.stdout)
    assert (said["changed"], [each["message"] for each in said["refused"]]) == (
        [],
        ["MODEL (...) cannot say retry"],
    )


def test_models_with_audits_of_their_own_are_formatted(tmp_path: Path) -> None:
    block = "AUDIT (name neg); SELECT * FROM @this_model WHERE @a < 0;"
    scripts = {
        "audits/low": block.replace("neg", "low"),
        "models/m": "MODEL (NAME m, kind FULL, audits (low(a := v)));\nSELECT 1 AS v\n",
        "models/own": f"MODEL (NAME own, kind full, audits (neg(a := v)));\nSELECT 1 AS v;{block}",
    }
    toy = write_project(tmp_path / "toy", scripts)
    assert penstock(toy, "format").exit_code == 0
    shown = "MODEL (\n  name own,\n  kind FULL,\n  audits (neg(a := v))\n);\n"
    assert (toy / "models" / "own.sql").read_text() == f"{shown}SELECT 1 AS v;{block}"
    shown = penstock(toy, "show", "m", "--as", "annotations").output
    assert "annotations cannot say the audit of low a=v" in shown


def test_rules_for_columns_that_annotations_lack_are_named(tmp_path: Path) -> None:
    kind = "INCREMENTAL_BY_UNIQUE_KEY (unique_key id, on_additive_change ignore)"
    text = f"MODEL (name s.t, kind {kind});\nSELECT 1 AS id\n"
    toy = write_project(tmp_path / "toy", {"models/t": text})
    output = penstock(toy, "show", "t", "--as", "annotations").output
    assert "on_additive_change ignore with on_destructive_change error" in output
    assert "write on_additive_change allow in its kind" in output
    (toy / "models" / "t.sql").write_text(text.replace(", on_additive_change ignore", ""))
    assert penstock(toy, "show", "t", "--as", "annotations").exit_code == 0


def test_a_directory_without_models(toy: Path) -> None:
    (toy / "tests").mkdir()
    result = penstock(toy, "format", str(toy / "tests"))
    assert result.exit_code == 2
    assert "tests has no model" in result.output
