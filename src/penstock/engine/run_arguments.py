"""The arguments of a run: what its scripts declare, and what the request says of them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from penstock.engine.slices import RunRequest
from penstock.errors import ArgumentError
from penstock.model import arguments
from penstock.model.model import Model


def require_jobs(jobs: int | None) -> None:
    """Raise ArgumentError for a number of steps side by side that lets none run."""
    if jobs is not None and jobs < 1:
        raise ArgumentError(
            f"jobs is {jobs}, and a run needs one or more", hint="leave it out to go by cores"
        )


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
    """What the request says of the arguments that these steps declare."""
    declared = _declared(steps)
    return {
        name: arguments.text_of(declared[name], value)
        for name, value in request.inputs.items()
        if name in declared
    }


def _declared(models: Iterable[Model]) -> dict[str, arguments.Argument]:
    """What the scripts declare, without what comes of their slices."""
    return {
        argument.name: argument
        for model in models
        for argument in model.query.arguments
        if argument.name not in arguments.OF_SLICE and not argument.automatic
    }
