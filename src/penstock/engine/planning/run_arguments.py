"""The arguments of a run: what its scripts declare, and what the request says of them. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, TypedDict, cast

from penstock.engine.planning.ranges import SliceRange
from penstock.engine.planning.selection import Selection
from penstock.engine.planning.slices import Partition, RunRequest
from penstock.errors import ArgumentError
from penstock.lakes.snapshot import time_of
from penstock.model.definition.graph import Naming
from penstock.model.definition.model import Model
from penstock.model.script import arguments
from penstock.model.time.moments import is_moment
from penstock.model.time.partition import is_in_time
from penstock.sql.identifiers import did_you_mean, names_of


def require_jobs(jobs: int | None) -> None:
    """Raise ArgumentError for a number of steps side by side that lets none run."""
    if jobs is not None and jobs < 1:
        raise ArgumentError(
            f"jobs is {jobs}, and a run needs one or more", hint="leave it out to go by cores"
        )


Fired = datetime | str
Positional = str | Sequence[str] | Partition | None
Ends = Partition | Sequence[Partition] | None  # the last slice of a range, and models to have
_HOPS = re.compile(r"\d+\+(?!\d)")  # as selections begin, and no date does


class RunOptions(TypedDict, total=False):
    """The options of a run, which `Project.run` explains. `DEFAULTS` has their defaults.

    The keyword arguments of `Project.run` and `Project.plan` and the options of both commands have
    these names and defaults: ``tests/engine/planning/test_run_arguments.py`` compares them.
    """

    partition: Partition | None
    select: str | Sequence[str] | None
    exclude: str | Sequence[str] | None
    args: Mapping[str, object] | None
    fire_time: Fired | None
    payload: Mapping[str, Any] | None
    trigger: str
    full_refresh: bool
    from_: Partition | None
    to: Ends
    all_: bool
    upstream: bool
    allow_missing: bool
    behind: bool | None
    changed: bool
    force: bool


DEFAULTS: RunOptions = {
    "partition": None,
    "select": None,
    "exclude": None,
    "args": None,
    "fire_time": None,
    "payload": None,
    "trigger": "manual",
    "full_refresh": False,
    "from_": None,
    "to": None,
    "all_": False,
    "upstream": False,
    "allow_missing": False,
    "behind": None,
    "changed": False,
    "force": False,
}


def build_run_request(
    positions: Sequence[Positional], models: Sequence[Model], options: RunOptions
) -> RunRequest:
    """Build the request of a run.

    Args:
        positions: What the user gave by position: models, and perhaps the slice.
        models: The models of the project.
        options: The options; `DEFAULTS` has those that are left out.

    Returns:
        The request.

    Raises:
        ArgumentError: An argument is wrong.
        TypeError: There is no such option.
    """
    for name in options.keys() - DEFAULTS.keys():
        raise TypeError(f"a run has no option {name!r}: {did_you_mean(name, DEFAULTS, 'options')}")
    chosen_options: RunOptions = {**DEFAULTS, **options}
    names = [model.name for model in models]
    chosen, partition = asked(positions, chosen_options["partition"], names)
    select, exclude = chosen_options["select"], chosen_options["exclude"]
    selection, last = selection_of(chosen, select, exclude, chosen_options["to"], models)
    first, behind = chosen_options["from_"], chosen_options["behind"]
    # With force, the slices of a range are built that are there already.
    is_range = first is not None or last is not None
    every = chosen_options["all_"] or (chosen_options["force"] and is_range)
    args = chosen_options["args"] or {}
    return RunRequest(
        partition=partition,
        select=selection.select,
        exclude=selection.exclude,
        to=selection.to,
        args={name: None if value is None else str(value) for name, value in args.items()},
        fire_time=fired(chosen_options["fire_time"]),
        has_fire_time=chosen_options["fire_time"] is not None,
        payload=chosen_options["payload"],
        trigger=chosen_options["trigger"],
        full_refresh=chosen_options["full_refresh"],
        range=SliceRange.of(first, last, every=every),
        upstream=chosen_options["upstream"],
        allow_missing=chosen_options["allow_missing"],
        behind=behind is not False,
        late=behind is True,
        changed=chosen_options["changed"],
        force=chosen_options["force"],
    )


def fired(fire_time: Fired | None) -> datetime:
    """The time that a run is for: now, a datetime or a text of ISO 8601, with its zone.

    Raises ArgumentError.
    """
    if fire_time is None:
        return datetime.now(UTC)
    parsed = time_of(fire_time)
    if parsed.tzinfo is None:
        raise ArgumentError(
            f"fire_time {str(fire_time)!r} has no time zone",
            hint=f"write {parsed.isoformat(timespec='seconds')}Z for UTC, or +01:00 after it",
        )
    return parsed


def asked(
    given: Sequence[Positional], partition: Partition | None, names: Collection[str]
) -> tuple[tuple[str, ...], Partition | None]:
    """The models and the slice of a run, of its positional arguments and ``partition``.

    These are models, in the selection language; a date, or a text that begins with a digit and
    names no model (as ``1+orders`` does), is the slice. Raises ArgumentError.
    """
    models: list[str] = []
    for each in given:
        if each is None:
            continue
        if isinstance(each, list | tuple):
            models += map(str, each)
        elif isinstance(each, str) and (each in names or _names_models(each)):
            models.append(each)
        elif isinstance(each, str | date) and partition is None:
            partition = each
        else:
            raise ArgumentError(
                f"{each!r} is not a model"
                + (", and the slice is given already" if isinstance(each, str | date) else ""),
                hint='give models by name, and others by keyword: run("orders", partition=..., '
                "args={...})",
            )
    return tuple(models), partition


def _names_models(text: str) -> bool:
    return not text[:1].isdigit() or _HOPS.match(text) is not None


def selection_of(
    given: Sequence[str],
    select: str | Sequence[str] | None,
    exclude: str | Sequence[str] | None,
    to: Ends,
    models: Sequence[Model],
) -> tuple[Selection, Partition | None]:
    """The selection of a request, and the last slice of its range. Raises ArgumentError."""
    last, within = ends(to, models)
    chosen = (*given, *names_of(() if select is None else select, "select"))
    without = names_of(() if exclude is None else exclude, "exclude")
    return Selection(chosen, without, within), last


def ends(to: Ends, models: Sequence[Model]) -> tuple[Partition | None, tuple[str, ...]]:
    """The last slice of a range and the models to have, of what ``to`` names.

    A text is the end where it is a date or another moment, or a partition as some model writes it;
    else it is of models. Raises ArgumentError for two ends.
    """
    if to is None:
        return None, ()
    last: list[Partition] = []
    chosen: list[str] = []
    for each in to if isinstance(to, list | tuple) else [to]:
        if isinstance(each, date) or (isinstance(each, str) and _is_end(each, models)):
            last.append(each)
        else:
            chosen += names_of(cast("str", each), "to")
    if len(last) > 1:
        raise ArgumentError(
            f"a range has one end, and --to gives two: {last[0]} and {last[1]}",
            hint="the others that --to may name are models",
        )
    return last[0] if last else None, tuple(chosen)


def _is_end(text: str, models: Sequence[Model]) -> bool:
    specs = {model.partition for model in models if model.partition is not None}
    if is_moment(text, datetime.now(UTC)) or any(is_in_time(spec, text) for spec in specs):
        return True
    return not _names_models(text) and not Naming(models).find(text)


def check_arguments(models: Iterable[Model], args: Mapping[str, str | None]) -> None:
    """Raise ArgumentError for names that no script declares, and for those of the slice: as
    arguments they could differ from the slice that is written."""
    given = [name for name in arguments.OF_SLICE if name in args]
    if given:
        raise ArgumentError(
            f"{given[0]} is not an argument: the run's slice says it",
            hint="give the partition: --partition VALUE",
        )
    models = list(models)
    declared = _declared(models)
    keys = {model.partition.key for model in models if model.partition}
    names = [*declared, *(key.split(".")[1] for key in keys if key)]
    arguments.unknown(args, names)


def args_of(steps: Sequence[Model], request: RunRequest) -> dict[str, str | None]:
    """Return what the request says of the arguments that these steps declare."""
    declared = _declared(steps)
    return {
        name: arguments.text_of(declared[name], value)
        for name, value in request.inputs.items()
        if name in declared
    }


def _declared(models: Iterable[Model]) -> dict[str, arguments.Argument]:
    """Return what the scripts declare, without what comes of their slices."""
    return {
        argument.name: argument
        for model in models
        for argument in model.query.arguments
        if argument.name not in arguments.OF_SLICE and not argument.automatic
    }
