"""What is said of an error in a step's code."""

from __future__ import annotations

from dataclasses import fields
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from penstock.engine.python.job import Job
from penstock.engine.python.perform import failure


def job_of(path: Path) -> Job:
    given = {"root": str(path.parent), "path": str(path)}
    return Job(**{field.name: given.get(field.name) for field in fields(Job)})  # type: ignore[arg-type]


def test_a_missing_module_shows_only_lines_of_the_project(tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "step.py"
    path.write_text("import not_there_at_all\n")
    spec = spec_from_file_location("step", path)
    assert spec is not None
    assert spec.loader is not None
    try:
        spec.loader.exec_module(module_from_spec(spec))
    except ImportError as error:
        said = failure(error, job_of(path))
    assert said["message"] == "ModuleNotFoundError: No module named 'not_there_at_all'"
    assert [line.partition(",")[0] for line in said["traceback"]] == ["step.py:1"]
