"""The arguments of a run: what its scripts declare, and what the request says of them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from penstock.engine.planning.ranges import SliceRange
from penstock.engine.planning.slices import Partition, RunRequest
from penstock.errors import ArgumentError
from penstock.lake.snapshot import time_of
from penstock.model.definition.model import Model
from penstock.model.script import arguments
from penstock.sql.identifiers import names_of


def require_jobs(jobs: int | None) -> None:
    """Raise ArgumentError for a number of steps side by side that lets none run."""
    if jobs is not None and jobs < 1:
        raise ArgumentError(
            f"jobs is {jobs}, and a run needs one or more", hint="leave it out to go by cores"
        )


Fired = datetime | str
Positional = str | Sequence[str] | Partition | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of a run, which `Project.run` explains.

    The keyword arguments of `Project.run` and `Project.plan` and the options of both commands have
    these names and defaults: ``tests/engine/planning/test_run_arguments.py`` compares them.
    """

    partition: Partition | None = None
    select: str | Sequence[str] | None = None
    args: Mapping[str, object] | None = None
    fire_time: Fired | None = None
    payload: Mapping[str, Any] | None = None
    trigger: str = "manual"
    full_refresh: bool = False
    from_: Partition | None = None
    to: Partition | None = None
    all_: bool = False
    upstream: bool = False
    allow_missing: bool = False
    behind: bool | None = None
    changed: bool = False

    def request(self, models: Sequence[Positional], names: Collection[str]) -> RunRequest:
        """The request of a run of ``models``, its positional arguments. Raises ArgumentError.

        ``names`` are those of the project's models.
        """
        named = names_of(() if self.select is None else self.select, "select")
        chosen, partition = asked(models, self.partition, names)
        return RunRequest(
            partition=partition,
            select=(*chosen, *named),
            args={k: None if v is None else str(v) for k, v in (self.args or {}).items()},
            fire_time=fired(self.fire_time),
            payload=self.payload,
            trigger=self.trigger,
            full_refresh=self.full_refresh,
            range=SliceRange.of(self.from_, self.to, every=self.all_),
            upstream=self.upstream,
            allow_missing=self.allow_missing,
            behind=self.behind is not False,
            late=self.behind is True,
            changed=self.changed,
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

    These are models, by name or pattern; a date, or a text that begins with a digit and names no
    model, is the slice. Raises ArgumentError.
    """
    models: list[str] = []
    for each in given:
        if each is None:
            continue
        if isinstance(each, list | tuple):
            models += map(str, each)
        elif isinstance(each, str) and (each in names or not each[:1].isdigit()):
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
