"""``penstock status``: what is made, slice by slice, without Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.cli.options import (
    common_options,
    load_project,
    markdown_option,
    selected_range_options,
)
from penstock.cli.output import (
    in_markdown,
    local_cells,
    print_answers,
    print_json,
    print_table,
    say,
)
from penstock.cli.tables import Look
from penstock.engine.results import SliceStatus
from penstock.errors import ArgumentError
from penstock.model.values.strategy import strategy_named
from penstock.rendering.text import count
from penstock.sql.identifiers import nearest
from penstock.states import SliceState

if TYPE_CHECKING:
    from penstock.engine.answers.summaries import ModelSummary
    from penstock.engine.results import ModelStatus


_NO_MODELS = "The project has no models yet."
_NOTHING_SELECTED = "No model is selected: none has such a slice."
_RUNS = 5  # of missing slices that are shown
_MODELS = Look(("strategy", "table", "snapshot", "last made"), ("slices",))
_RANGES = Look(("table",), ("slices",))
_FAILED = Look(("time",), ("model", "state"))
_SLICES = Look(("snapshot", "time", "tests"), ("state",))


@click.command(
    "status",
    short_help="Show which slices are materialized, stale or failed.",
    epilog="""\b
Examples:
  penstock status
  penstock status clean/flights
  penstock status clean/flights --grid
  penstock status clean/flights --from 2013-01-01 --to 2013-12-31
  penstock status --failed
  penstock status state:failed state:behind
  penstock status --to marts/delays_daily
  penstock status --markdown
  penstock status --json""",
)
@selected_range_options("show")
@markdown_option
@click.option(
    "--fail-on",
    metavar="STATES",
    help="For monitors: end with exit code 1 if slices are in one of these states, such as "
    "failed,behind,waiting. failed means skipped, too; late means past the freshness, too.",
)
@click.option("--failed", is_flag=True, help="Show only slices that failed or were skipped.")
@click.option("--grid", is_flag=True, help="Of one model: a calendar of its slices, or ranges.")
@common_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    *,
    fail_on: str | None,
    failed: bool,
    grid: bool,
    models: tuple[str, ...],
    select: tuple[str, ...],
    exclude: tuple[str, ...],
    from_: str | None,
    to: tuple[str, ...],
    project_dir: Path | None,
    as_json: bool,
) -> None:
    """Show the state of every model, or of those selected; of one MODEL each slice. Starts no
    Spark.

    A slice is missing, running, materialized, failed, skipped (something that it depends on
    failed), waiting (for a slice of an input that is not there), unfinished (made before its time
    was over), stale (its definition has changed since), or behind: what it was made from has other
    rows since, in the slice and snapshot that it names.
    "changed outside" names the snapshot in which another writer changed or dropped it; "other kind"
    is a slice of another `partitioned` line. A table that no model makes any more is listed last.

    A slice is past its freshness if it is older than its model allows and one of its inputs has
    changed since, or if it never was made although it is due.

    With --from and --to: the slices of partitioned models in a range, the missing ones among them.

    With --fail-on the exit code is 1 if any of the slices is in one of the states that it names,
    and stderr says how many are. With one MODEL, the output has only these slices.
    """
    from penstock.engine.planning.run_arguments import selection_of

    wrong = None if fail_on is None else _states_of(fail_on)
    with load_project(project_dir) as project:
        selection, last = selection_of(models, select, exclude, to, project.models)
        alone = selection.only(project.models) is not None
        is_table = not (alone or as_json or failed or grid or wrong or from_ or to)
        if is_table:
            summaries = project.summaries(*models, select=select, exclude=exclude)
            print_models(summaries, _NOTHING_SELECTED if selection else _NO_MODELS)
            return
        whole = project.status(*models, select=select, exclude=exclude, from_=from_, to=to)
    statuses = tuple(_select_slices(whole, _states_of("failed"))) if failed else whole
    if grid and not alone:
        raise ArgumentError("--grid shows the slices of one model", hint="name it")
    if as_json:
        print_json({"models": statuses})
    elif alone and statuses:
        print_grid(statuses[0]) if grid else print_slices(statuses[0], wrong)
    elif failed:
        print_failed(statuses)
    else:
        _print_all(statuses, is_range=(from_ or last) is not None, selected=bool(selection))
    if wrong is not None:
        ctx.exit(_monitored(whole, wrong))


def _print_all(statuses: tuple[ModelStatus, ...], *, is_range: bool, selected: bool) -> None:
    from penstock.engine.answers.summaries import ModelSummary

    if is_range:
        print_ranges(statuses)
    else:
        summaries = map(ModelSummary.of_status, statuses)
        print_models(summaries, _NOTHING_SELECTED if selected else _NO_MODELS)


_LATE = SliceState.LATE.value  # as a word of --fail-on: late rows, and what is past its freshness
_KNOWN = (
    *("failed", "skipped", "behind", "late", "waiting", "missing", "stale", "unfinished"),
    *("running", "changed outside"),
)


def _states_of(text: str) -> tuple[str, ...]:
    """The states of ``--fail-on``. Raises ArgumentError."""
    states = tuple(each.strip() for each in text.split(","))
    for state in states:
        if state not in _KNOWN:
            guess = nearest(state, _KNOWN)
            raise ArgumentError(
                f"--fail-on {state!r} is no state of a slice",
                hint=f"did you mean {guess!r}?" if guess else f"states are {', '.join(_KNOWN)}",
            )
    return (*states, "skipped") if "failed" in states else states


def _monitored(statuses: tuple[ModelStatus, ...], wrong: tuple[str, ...]) -> int:
    """The exit code, 1 where slices are in one of these states; says how many on stderr."""
    numbers, total = Counter[str](), 0
    for part in (part for status in statuses for part in status.slices):
        if not _is_wrong(part, wrong):
            continue
        intervals = part.intervals if part.state in wrong else 1
        total += intervals
        if part.state in wrong:
            numbers[part.state] += intervals
        if part.is_overdue and _LATE in wrong:
            numbers["past freshness"] += 1
    if not total:
        return 0
    states = ", ".join(f"{number:,} {state}" for state, number in numbers.items())
    say(f"{count(total, 'slice')}: {states}", err=True)
    return 1


def _is_wrong(slice_: SliceStatus, states: Collection[str]) -> bool:
    return slice_.state in states or (slice_.is_overdue and _LATE in states)


def _select_slices(
    statuses: tuple[ModelStatus, ...], states: tuple[str, ...]
) -> Iterator[ModelStatus]:
    """Yield the models with slices in one of these states, with those slices alone."""
    for status in statuses:
        slices = tuple(each for each in status.slices if each.state in states)
        if slices:
            yield replace(status, slices=slices)


def print_failed(statuses: tuple[ModelStatus, ...]) -> None:
    """Print a line for each slice that failed or was skipped, of any model."""
    columns = {name: SliceStatus.columns[name] for name in ("slice", "state", "time", "reason")}
    rows = [
        (status.model or "(none)", *values)
        for status in statuses
        for values in local_cells(columns, status.slices)
    ]
    empty = "No slice failed or was skipped."
    print_table(("model", *columns), rows, look=_FAILED, empty=empty)


def print_ranges(statuses: tuple[ModelStatus, ...]) -> None:
    from penstock.engine.answers.summaries import ModelSummary

    rows = [
        (status.model, status.target, ModelSummary.of_status(status).states, _missing(status))
        for status in statuses
    ]
    columns = ("model", "table", "slices", "missing")
    print_table(columns, rows, look=_RANGES, empty="No model is partitioned.")


def _missing(status: ModelStatus) -> str:
    """``2026-01-03, 2026-01-07 to 2026-01-09``: runs of missing slices, some of many."""
    runs: list[list[str]] = []
    before = None
    for each in status.slices:
        if each.state == "missing":
            if before != "missing":
                runs.append([])
            runs[-1].append(each.slice or "")
        before = each.state
    said = [run[0] if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs]
    more = [f"and {len(said) - _RUNS} more"] if len(said) > _RUNS else []
    return ", ".join([*said[:_RUNS], *more])


def print_models(summaries: Iterable[ModelSummary], empty: str = _NO_MODELS) -> None:
    """Print a line for each model."""
    # Late: --json has no need of it.
    from penstock.engine.answers.summaries import ModelSummary

    print_answers(ModelSummary.columns, summaries, look=_MODELS, empty=empty)


def print_slices(status: ModelStatus, states: tuple[str, ...] | None = None) -> None:
    empty = f"No slice is {' or '.join(states)}." if states and status.slices else "Never run."
    say(f"{status.model} makes {status.makes} ({status.strategy})" + "\n" * in_markdown())
    if not strategy_named(status.strategy).runs:
        return
    slices = [each for each in status.slices if states is None or _is_wrong(each, states)]
    print_answers(SliceStatus.columns, slices, look=_SLICES, empty=empty)


def print_grid(status: ModelStatus) -> None:
    from penstock.cli.status_grid import grid

    say(f"{status.model} makes {status.makes} ({status.strategy})")
    for line in grid(status.slices):
        say(line)
