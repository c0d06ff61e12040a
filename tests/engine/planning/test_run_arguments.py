"""The arguments of a run in Python: models by position, the slice and others by keyword."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from datetime import UTC, date, datetime

import click
import pytest

from penstock.cli.plan import command as plan_command
from penstock.cli.run import command as run_command
from penstock.engine.planning.run_arguments import Positional, RunOptions, asked, fired
from penstock.errors import ArgumentError
from penstock.project import Project

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
}
OPTIONS = {each.name: each.default for each in fields(RunOptions)}

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
    parameters = inspect.signature(method).parameters.values()
    keywords = {each.name: each.default for each in parameters if each.kind is each.KEYWORD_ONLY}
    assert keywords == OPTIONS | more


@pytest.mark.parametrize("command", [run_command, plan_command], ids=["run", "plan"])
def test_the_options_of_commands_are_the_options(command: click.Command) -> None:
    named = {each.name for each in command.params if each.expose_value} - COMMON
    assert named == OPTIONS.keys() - {"fire_time", "trigger"}  # a command runs now, by hand
