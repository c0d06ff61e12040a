"""Values on their way to a step and back."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, date, datetime, time
from decimal import Decimal
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from uuid import UUID

import pytest

from penstock.engine.python.job import Job, Rows, failure, of_line, to_line, written

VALUES = [
    ("text", "a", "a"),
    ("date", date(2026, 5, 16), date(2026, 5, 16)),
    ("timestamptz", datetime(2026, 5, 16, tzinfo=UTC), datetime(2026, 5, 16, tzinfo=UTC)),
    ("time", "09:30:00", time(9, 30)),
    ("decimal", Decimal("1.50"), Decimal("1.50")),
    ("uuid", "550e8400-e29b-41d4-a716-446655440000", UUID("550e8400-e29b-41d4-a716-446655440000")),
    ("json", '{"a": [1]}', {"a": [1]}),
    ("blob", b"\xca\xfe", b"\xca\xfe"),
    ("bigint[]", [1, 2], [1, 2]),
    ("date[]", [date(2026, 5, 16)], [date(2026, 5, 16)]),
    ("bigint", None, None),
]


@pytest.mark.parametrize(("kind", "bound", "given"), VALUES)
def test_an_argument_arrives_as_what_its_annotation_says(
    kind: str, bound: object, given: object
) -> None:
    job = Job("s.py", "/r", "/r/f", "main", "p", {"x": (kind, written(bound))}, {"payload": {}})
    back = Job.from_json(job.to_json())
    assert back.values == {"x": given, "payload": {}}


def test_a_job_is_the_same_after_its_way() -> None:
    job = Job("s.py", "/r", "/f", "main", None, {}, {}, {"t": Rows("arrow", "main", "t")}, ("s",))
    assert Job.from_json(job.to_json()) == job


@pytest.mark.parametrize("value", [value for kind, value, _ in VALUES if "[" not in kind])
def test_a_message_keeps_values_that_json_does_not_have(value: object) -> None:
    assert of_line(to_line({"args": {"x": value}})) == {"args": {"x": value}}


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
