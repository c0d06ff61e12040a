"""Print a plan: its steps with the reasons of their slices, what they need, and estimates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.cli.output import in_markdown, print_table, say, say_list
from penstock.cli.paths import local
from penstock.cli.tables import Look
from penstock.engine.answers.plan_document import jobs_of, needs_of, step_document
from penstock.engine.planning.slice_reason import PLANNED
from penstock.rendering.text import count, seconds, state_text

if TYPE_CHECKING:
    from penstock.engine.planning.estimates import Estimate
    from penstock.engine.planning.plan import Plan, PlannedStep
    from penstock.engine.planning.slice_reason import ReasonedRange

_COLUMNS = ("step", "table", "strategy", "slice", "reason", "state")
_NEEDS = ("step", "input", "needs")
_FENCE = "````"  # of Markdown; a query may have three of them
_RANGES = 8  # of a step that text shows

Estimates = Mapping[str, "Estimate"]


def print_plan(plan: Plan) -> None:
    """Print the steps of a plan, and a line for each further range of slices."""
    notices = [local(f"notice: {notice}") for notice in plan.notices]
    if not in_markdown():
        say_list(notices, err=True)
    rows = [row for step in plan.steps for row in _rows(step)]
    look = Look(("strategy", "table"), ("state",))
    print_table(_COLUMNS, rows, look=look, empty="Nothing is to be made.")
    if plan.changes and not in_markdown():
        say("")
    say_list([*(notices if in_markdown() else ()), *(local(str(each)) for each in plan.changes)])
    if any(change.refused is None for change in plan.changes) and not plan.request.changed:
        say("\n" * in_markdown() + "penstock run --changed rebuilds what these changes touch")


def _rows(step: PlannedStep) -> Iterator[Sequence[str]]:
    shown = step_document(step)
    first = next(iter(step.ranges), None)
    several = len(step.ranges) > 1
    slice_ = _slice(first) if first is not None and several else shown["slice"]
    reason = "" if first is None else first.because
    names = ("step", "table", "strategy")
    yield [local(text or "") for text in (*map(shown.get, names), slice_, reason, shown["state"])]
    for each in step.ranges[1:_RANGES]:
        yield ["", "", "", _slice(each), local(each.because), _state(each)]
    left = step.ranges[_RANGES:]
    if left:
        number = sum(each.count for each in left)
        yield ["", "", "", f"{count(number, 'slice')} more, see --json", "", ""]


def _slice(range_: ReasonedRange) -> str:
    return range_.slices if range_.count == 1 else f"{range_.slices} ({range_.count:,})"


def _state(range_: ReasonedRange) -> str:
    return "" if range_.state == PLANNED else local(state_text(range_.state, range_.until))


def print_explained(plan: Plan, estimates: Estimates) -> None:
    """Print what differs in changed definitions, which slices of inputs each step needs, which
    slices share a job, and estimates.
    """
    fence = in_markdown() and any(change.diff for change in plan.changes)
    if fence:
        say(f"\n{_FENCE}diff")
    for change in plan.changes:
        for line in change.diff:
            say(local(line if fence else f"  {line}"))
    if fence:
        say(_FENCE)
    say("")
    needs = [[local(need[name]) for name in _NEEDS] for need in needs_of(plan)]
    print_table(_NEEDS, needs, look=Look((), ("needs",)), empty="No input is a model's.")
    if not estimates:
        return
    say("")
    steps = {step.name: step for step in plan.steps}
    rows = [
        [name, count(each.slices, "slice"), jobs_of(steps[name]), _number(each.rows), _time(each)]
        for name, each in estimates.items()
    ]
    print_table(("step", "slices", "jobs", "rows", "time"), rows, look=Look((), ("jobs",)))
    say(f"\n{_total(estimates)}")


def _number(rows: int | None) -> str:
    return "unknown" if rows is None else f"about {rows:,}"


def _time(estimate: Estimate) -> str:
    return "unknown" if estimate.seconds is None else f"about {seconds(estimate.seconds)}"


def _total(estimates: Estimates) -> str:
    """Return the sum of what is known: ``24 slices; about 12,000 rows, 3 min 05 s of work``."""
    every = list(estimates.values())
    number = sum(each.slices for each in every)
    known = [each for each in every if each.seconds is not None]
    if not known:
        return f"{count(number, 'slice')}; no past run to estimate from"
    rows = sum(each.rows or 0 for each in known)
    took = seconds(sum(each.seconds or 0 for each in known))
    text = f"{count(number, 'slice')}; about {rows:,} rows and {took} of work, by past runs"
    new = len(every) - len(known)
    return f"{text}, without {count(new, 'step')} of which there are none" if new else text
