"""Print how a run ended: why steps failed, once for all slices that failed alike, and warnings."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from penstock.cli.output import message_of, print_json_line, print_samples, say, say_prose
from penstock.cli.paths import local
from penstock.errors import PenstockError
from penstock.model.values.strategy import strategy_named
from penstock.rendering.text import count
from penstock.sinks.progress.view import SAID

if TYPE_CHECKING:
    from penstock.engine.results import CheckResult, RunResult, StepResult
    from penstock.project.project import Project

_FAILURES = 8  # different ones of a step that are shown
_NAMED = 3  # models with stale slices
_RANGES = 4  # of slices that failed alike


def print_ending(result: RunResult, left: Mapping[str, str], *, as_json: bool) -> None:
    """Print how a run ended, after its events; ``left`` is what tables hold whose step failed."""
    if as_json:
        print_json_line({"result": result.document})
    else:
        print_warnings(result)
        print_failures(result, left)
        print_stale(result)


def print_stale(result: RunResult) -> None:
    """Count the slices that the run left as they were, with the commands that rebuild them."""
    if result.stale:
        number = sum(each.slices for each in result.stale)
        names = ", ".join(each.model for each in result.stale[:_NAMED])
        more = f" and {len(result.stale) - _NAMED} more" if len(result.stale) > _NAMED else ""
        verb = "is" if number == 1 else "are"
        say(f"{count(number, 'slice')} of {names}{more} {verb} stale: {result.stale[0].rebuild}")
    for entry in result.untested[:_NAMED]:
        published = f"{'was' if entry.slices == 1 else 'were'} published under other data tests"
        say(f"{count(entry.slices, 'slice')} of {entry.model} {published}: {entry.rebuild}")
    if (more_models := len(result.untested) - _NAMED) > 0:
        say(f"and slices of {count(more_models, 'other model')}: penstock plan")


def what_is_left(project: Project, result: RunResult) -> Mapping[str, str]:
    """Return what became of the tables of failed steps, by step."""
    left: dict[str, str] = {}
    for step in result.steps:
        if step.state == "failed" and step.name not in left:
            left[step.name] = _left(project, step, result.steps)
    return left


def _left(project: Project, step: StepResult, steps: Sequence[StepResult]) -> str:
    done = sum(other.name == step.name and other.state == "done" for other in steps)
    if done:
        return f"{count(done, 'other slice')} {'was' if done == 1 else 'were'} published"
    if strategy_named(step.strategy).counts_rows:
        with suppress(PenstockError):  # the catalog itself may be what is gone
            columns = project.show(step.name).columns
            return f"{step.target} {'is unchanged' if columns else 'was not created'}"
    return "nothing was published"


class _Alike(NamedTuple):
    """Results of one step that ended alike; ``ranges`` are those of their slices."""

    results: Sequence[StepResult]
    ranges: Sequence[str]

    @property
    def slices(self) -> str:
        """``2026-09-21 to 2026-10-30, 2026-11-02``."""
        more_ranges = len(self.ranges) - _RANGES
        more = f", and {count(more_ranges, 'more range')}" if more_ranges > 0 else ""
        return ", ".join(self.ranges[:_RANGES]) + more


def _alike(
    steps: Sequence[StepResult], key: Callable[[StepResult], Hashable]
) -> Iterator[list[_Alike]]:
    """Yield the results of each step that have a key, those with the same together."""
    for _, of_step in groupby(steps, key=lambda step: step.name):
        results = list(of_step)
        groups: dict[Hashable, list[int]] = {}
        for position, result in enumerate(results):
            if (group_key := key(result)) is not None:
                groups.setdefault(group_key, []).append(position)
        yield [
            _Alike([results[position] for position in positions], _ranges(results, positions))
            for positions in groups.values()
        ]


def _ranges(results: Sequence[StepResult], positions: Sequence[int]) -> list[str]:
    """The slices at these positions; those that follow each other are one range."""
    ranges: list[str] = []
    numbered = groupby(enumerate(positions), key=lambda pair: pair[1] - pair[0])
    for _, following in numbered:
        group = [position for _, position in following]
        start, stop = results[group[0]].slice or "", results[group[-1]].slice or ""
        ranges.append(start if len(group) == 1 else f"{start} to {stop}")
    return ranges


def print_warnings(result: RunResult) -> None:
    """Print the data tests that warn about published rows."""
    names = dict.fromkeys(
        check.name for step in result.steps for check in step.checks if check.outcome == "warned"
    )
    for name in names:

        def warned(step: StepResult, name: str = name) -> str | None:
            return None if step.state == "failed" or _check(step, name) is None else name

        for groups in _alike(result.steps, warned):
            for group in groups:
                _print_warning(group, name)


def _check(step: StepResult, name: str) -> CheckResult | None:
    of_name = (check for check in step.checks if check.name == name)
    return next((check for check in of_name if check.outcome == "warned"), None)


def _print_warning(group: _Alike, name: str) -> None:
    checks = [check for step in group.results if (check := _check(step, name)) is not None]
    rows = count(sum(check.failures for check in checks), "row")
    scope = f" in {count(len(checks), 'slice')}, {group.slices}" if len(checks) > 1 else ""
    verb = SAID[checks[0].severity]
    say(f"\n{group.results[0].name}: test {name} {verb} {rows}{scope}")
    print_samples(checks[0])


def print_failures(result: RunResult, left: Mapping[str, str]) -> None:
    """Print why each step failed, with failing rows; slices that failed alike share a message."""
    for groups in _alike(result.steps, _failure):
        for group in groups[:_FAILURES]:
            _print_failure(group, left[group.results[0].name])
        others = [step for group in groups[_FAILURES:] for step in group.results]
        if others:
            said = f"{count(len(others), 'more slice')} failed in other ways"
            say(f"\n{others[0].name}: {said}: penstock runs show last")


def _failure(step: StepResult) -> Hashable:
    """Return a key that slices with the same failure share; only the slice in messages differs."""
    if step.state != "failed":
        return None
    failed = tuple(check.name for check in step.checks if check.outcome == "failed")
    if failed or step.error is None:
        return failed
    message = str(step.error)
    return message if step.slice is None else message.replace(step.slice, "{slice}")


def _print_failure(group: _Alike, left: str) -> None:
    first, number = group.results[0], len(group.results)
    if number == 1:
        what = f"{first.name} {first.slice}" if first.slice else first.name
        say(f"\n{what} failed; {left}")
    else:
        say_prose(
            f"\n{first.name}: {number:,} slices failed alike, {group.slices}; {left}; the first:"
        )
    failed = [check for check in first.checks if check.outcome == "failed"]
    for check in failed:
        say(f"test {check.name} failed on {count(check.failures, 'row')}")
        print_samples(check)
    if first.error is not None and not failed:
        say_prose(local(message_of(first.error)))
