"""The arguments of a run: what its scripts declare, and what the request says of them. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, cast

from penstock.engine.planning.ranges import SliceRange
from penstock.engine.planning.selection import Selection
from penstock.engine.planning.slices import Partition, RunRequest
from penstock.errors import ArgumentError
from penstock.lake.snapshot import time_of
from penstock.model.definition.model import Model
from penstock.model.definition.naming import Naming
from penstock.model.script import arguments
from penstock.model.time.moments import is_moment
from penstock.model.time.partition import is_in_time
from penstock.sql.identifiers import names_of


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


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of a run, which `Project.run` explains.

    The keyword arguments of `Project.run` and `Project.plan` and the options of both commands have
    these names and defaults: ``tests/engine/planning/test_run_arguments.py`` compares them.
    """

    partition: Partition | None = None
    select: str | Sequence[str] | None = None
    exclude: str | Sequence[str] | None = None
    args: Mapping[str, object] | None = None
    fire_time: Fired | None = None
    payload: Mapping[str, Any] | None = None
    trigger: str = "manual"
    full_refresh: bool = False
    from_: Partition | None = None
    to: Ends = None
    all_: bool = False
    upstream: bool = False
    allow_missing: bool = False
    behind: bool | None = None
    changed: bool = False
    force: bool = False

    def request(self, given: Sequence[Positional], models: Sequence[Model]) -> RunRequest:
        """The request of a run of what is ``given`` by position, in a project of these models.

        Raises ArgumentError.
        """
        chosen, partition = asked(given, self.partition, [model.name for model in models])
        selection, last = selection_of(chosen, self.select, self.exclude, self.to, models)
        return RunRequest(
            partition=partition,
            select=selection.select,
            exclude=selection.exclude,
            to=selection.to,
            args={k: None if v is None else str(v) for k, v in (self.args or {}).items()},
            fire_time=fired(self.fire_time),
            payload=self.payload,
            trigger=self.trigger,
            full_refresh=self.full_refresh,
            range=SliceRange.of(self.from_, last, every=self._every(last)),
            upstream=self.upstream,
            allow_missing=self.allow_missing,
            behind=self.behind is not False,
            late=self.behind is True,
            changed=self.changed,
            force=self.force,
        )

    def _every(self, last: Partition | None) -> bool:
        """Return whether the slices of a range are made that are there already."""
        return self.all_ or (self.force and not (self.from_ is None and last is None))


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
