"""The arguments of a run in Python: models by position, the slice and others by keyword."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, cast

import click
import pytest

from penstock.cli.plan import command as plan_command
from penstock.cli.run import command as run_command
from penstock.engine.planning.run_arguments import (
    DEFAULTS,
    Ends,
    Positional,
    RunOptions,
    asked,
    build_run_request,
    ends,
    fired,
    selection_of,
)
from penstock.engine.planning.selection import Selection
from penstock.errors import ArgumentError
from penstock.project.project import Project
from tests.engine.toy import write_project

#: of how the run is executed, which no plan has
EXECUTION = {"jobs": None, "new_catalog": False, "on_event": None, "wait": True, "plan": None}
#: of each command
COMMON = {
    "models",
    "project_dir",
    "as_json",
    "jobs",
    "new_catalog",
    "no_wait",
    "explain",
    "plan",
    "out",
    "dry_run",
}
OPTIONS: dict[str, object] = {**DEFAULTS}

NAMES = ("raw/orders", "2026")
DAY = date(2026, 1, 2)


@pytest.mark.parametrize(
    ("given", "models", "partition"),
    [
        (("raw/orders", "+x*"), ("raw/orders", "+x*"), None),
        ((["raw/orders"], None), ("raw/orders",), None),
        (("2026-01-02", "raw/orders"), ("raw/orders",), "2026-01-02"),
        ((DAY,), (), DAY),
        (("2026",), ("2026",), None),
        (("1+raw/orders", "2026-01-02T00:00+01:00"), ("1+raw/orders",), "2026-01-02T00:00+01:00"),
    ],
)
def test_positions(
    given: tuple[Positional, ...], models: tuple[str, ...], partition: Positional
) -> None:
    assert asked(given, None, NAMES) == (models, partition)


@pytest.mark.parametrize("given", [(DAY,), ("2026-01-01",), ({"n": 1},)])
def test_what_is_neither_is_refused(given: tuple[Positional, ...]) -> None:
    with pytest.raises(ArgumentError, match="is not a model"):
        asked(given, "2026-01-02", NAMES)


DAILY = "-- partitioned daily format=day-%Y%m%d\n-- materialize ducklake://main/daily\nSELECT 1"
WHOLE = "-- materialize ducklake://main/{}\nSELECT 1"
SCRIPTS = {"raw/daily": DAILY} | {name: WHOLE.format("t") for name in ("a",)}
MODELS = {f"models/{name}": text for name, text in SCRIPTS.items()}
MODELS |= {"models/2026": WHOLE.format("y"), "models/now": WHOLE.format("n")}


@pytest.mark.parametrize(
    ("to", "last", "models"),
    [
        (None, None, ()),
        ((), None, ()),
        ("2026-01-02", "2026-01-02", ()),
        (DAY, DAY, ()),
        ("yesterday", "yesterday", ()),
        ("2 days ago", "2 days ago", ()),
        ("a week ago", "a week ago", ()),
        ("2026-W03", "2026-W03", ()),
        ("day-20260102", "day-20260102", ()),
        ("2026-01-02T00:00+01:00", "2026-01-02T00:00+01:00", ()),
        ("raw/daily", None, ("raw/daily",)),
        ("main.t", None, ("main.t",)),
        ("2026", None, ("2026",)),
        ("now", "now", ()),  # whatever models are called
        ("now.sql", None, ("now.sql",)),
        ("2013-day", "2013-day", ()),  # which is wrong, and said to be where it is read
        ("1+raw/daily", None, ("1+raw/daily",)),
        ("tag:x", None, ("tag:x",)),
        ("tomorrow", None, ("tomorrow",)),
        (("a", "raw/daily"), None, ("a", "raw/daily")),
        (["a", "2026-01-02"], "2026-01-02", ("a",)),
    ],
)
def test_an_end_is_of_a_range_or_a_model(
    to: Ends, last: object, models: tuple[str, ...], tmp_path: Path
) -> None:
    project = Project.load(write_project(tmp_path / "p", MODELS))
    assert ends(to, project.models) == (last, models)


@pytest.mark.parametrize(
    ("to", "said"),
    [
        (("2026-01-02", "2026-01-03"), "a range has one end, and --to gives two"),
        (("2026-01-02", DAY), "a range has one end, and --to gives two"),
        ("", "to takes names, and '' is not a name"),
        (3, "to takes names, and 3 is not a name"),
    ],
)
def test_wrong_ends(to: Any, said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        ends(to, ())


def test_a_selection_of_options() -> None:
    assert selection_of(("a",), "b", None, DAY, ()) == (Selection(("a", "b")), DAY)
    assert selection_of((), ["b"], ("c",), "d", ()) == (Selection(("b",), ("c",), ("d",)), None)
    with pytest.raises(ArgumentError, match="exclude takes names, and '' is not a name"):
        selection_of((), None, [""], None, ())


def test_the_time_of_a_run() -> None:
    assert fired("2026-01-02T03:04:05Z") == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert fired(None).tzinfo is UTC
    with pytest.raises(ArgumentError, match="has no time zone") as caught:
        fired("2026-01-02 03:04")
    assert "2026-01-02T03:04:00Z" in (caught.value.hint or "")
    with pytest.raises(ArgumentError, match="'tonight' is not a time"):
        fired("tonight")


@pytest.mark.parametrize(("method", "more"), [(Project.run, EXECUTION), (Project.plan, {})])
def test_the_keywords_of_python_are_the_options(
    method: Callable[..., object], more: dict[str, object]
) -> None:
    parameters = inspect.signature(method).parameters
    keywords = {p.name: p.default for p in parameters.values() if p.kind is p.KEYWORD_ONLY}
    assert keywords == more
    assert parameters["options"].annotation == "Unpack[RunOptions]"
    assert RunOptions.__annotations__.keys() == DEFAULTS.keys()


def test_an_option_that_does_not_exist_is_refused() -> None:
    with pytest.raises(TypeError, match=r"a run has no option 'forced': did you mean force\?"):
        build_run_request((), (), cast("RunOptions", {"forced": True}))


@pytest.mark.parametrize("command", [run_command, plan_command], ids=["run", "plan"])
def test_the_options_of_commands_are_the_options(command: click.Command) -> None:
    named = {each.name for each in command.params if each.expose_value} - COMMON
    assert named == OPTIONS.keys() - {"trigger"}  # a command runs by hand
