"""``penstock test``: the unit tests of models, over rows of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.options import common_options, load_project, selection_options, warm_option
from penstock.cli.output import print_json, say, starting
from penstock.cli.paths import local
from penstock.rendering.text import count, seconds
from penstock.rendering.wire import to_json

if TYPE_CHECKING:
    from penstock.engine.verifying.row_values import RowDifference
    from penstock.engine.verifying.unit_tests import UnitTestResult

_FAILED = 1


@click.command(
    "test",
    short_help="Run unit tests of models, without a lake.",
    epilog="""\b
Examples:
  penstock test
  penstock test clean/flights
  penstock test tests/delays.yaml 'test_late_*'
  penstock test --select state:changed+ --exclude marts/
  penstock test --json""",
)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@selection_options
@warm_option
@common_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    *,
    names: tuple[str, ...],
    project_dir: Path | None,
    as_json: bool,
    **selection: tuple[str, ...],
) -> None:
    """Run the unit tests in tests/*.yaml: the query of a model over the rows of its test.

    NAME is a test, a file, a pattern of these, or selects models as --select does. All tests share
    one session of Spark; no lake is read or written. Exit code 1 when a test fails.
    """
    results: list[UnitTestResult] = []
    with starting() as on_event, load_project(project_dir, on_event) as project:
        for result in project.test(*names, **selection):
            results.append(result)
            if not as_json:
                for line in lines(result, project.settings.root):
                    say(line)
    if as_json:
        print_json({"tests": results})
    elif results:
        say(_summary(results))
    elif names or any(selection.values()):
        say("no unit test is selected")
    else:
        say("no unit tests: write them in tests/*.yaml")
    if any(result.state in {"failed", "error"} for result in results):
        ctx.exit(_FAILED)


def lines(result: UnitTestResult, root: Path) -> Iterator[str]:
    """A result as lines of text: what differs is indented under its test."""
    took = f", {seconds(result.seconds)}" if result.seconds else ""
    path = Path(result.location.path).relative_to(root).as_posix()
    place = f"{path}:{result.location.line}"
    yield f"{result.state:<7} {result.name} ({result.model}, {place}{took})"
    if result.error is not None:
        yield from (f"    {line}" for line in local(str(result.error)).splitlines())
    for cte, differences in (result.differences or {}).items():
        if differences and cte:
            yield f"    in {cte}:"
        for difference in differences:
            yield from _difference(difference)
    if result.surplus:
        yield "    there are more rows, which were not looked at"


def _difference(difference: RowDifference) -> Iterator[str]:
    if difference.actual is None:
        yield f"    row {difference.number} is missing: {_row(difference.expected)}"
    elif difference.expected is None:
        yield f"    not expected: {_row(difference.actual)}"
    else:
        yield f"    row {difference.number} differs: {_row(difference.expected)}"
        for cell in difference.cells:
            wanted, made = _value(cell.expected), _value(cell.actual)
            yield f"      {cell.column}: expected {wanted}, got {made}"


def _row(row: Any) -> str:
    return ", ".join(f"{name}={_value(value)}" for name, value in row.items())


def _value(value: Any) -> str:
    return "NULL" if value is None else to_json(value)


def _summary(results: list[UnitTestResult]) -> str:
    states = [result.state for result in results]
    parts = [
        f"{states.count(state)} {shown}"
        for state, shown in (
            ("passed", "passed"),
            ("failed", "failed"),
            ("error", "could not run"),
            ("skipped", "skipped"),
        )
        if state in states
    ]
    return f"{count(len(results), 'test')}: {', '.join(parts)}"
