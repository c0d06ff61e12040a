"""``penstock show``: everything about one model, without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.cli.options import (
    as_option,
    common_options,
    complete_model,
    load_project,
    partition_option,
)
from penstock.cli.output import clock, print_answers, print_json, print_samples, say, say_section
from penstock.cli.paths import local
from penstock.cli.tables import Look
from penstock.engine.results import ColumnInfo, RecordedChecks, StepRun
from penstock.errors import ArgumentError
from penstock.sql.identifiers import nearest

if TYPE_CHECKING:
    from penstock.engine.answers.schema_history import VersionChanges
    from penstock.engine.results import ModelDetail, RecordedCheck, SchemaVersion


@click.command(
    "show",
    short_help="Show a model: its table, inputs, tests, runs.",
    epilog="""\b
Examples:
  penstock show clean/flights
  penstock show clean/flights --tests
  penstock show clean/flights --tests --failed
  penstock show clean/flights --schema-history
  penstock show clean/flights --json
  penstock show clean/flights --as model""",
)
@click.argument("model", shell_complete=complete_model)
@click.option("--tests", is_flag=True, help="Show the latest results of its data tests instead.")
@click.option("--failed", is_flag=True, help="With --tests: only those that did not pass.")
@partition_option("With --tests: only those of this slice.", "value")
@click.option(
    "--schema-history",
    is_flag=True,
    help="Show the versions of its table's columns instead, with what each changed.",
)
@as_option
@common_options
def command(
    *,
    model: str,
    tests: bool,
    failed: bool,
    value: str | None,
    schema_history: bool,
    form: str | None,
    project_dir: Path | None,
    as_json: bool,
) -> None:
    """Show MODEL: what it makes and reads, its columns, tests, query and last runs.

    With --as, its script in that form instead.
    """
    if tests + schema_history + (form is not None) > 1:
        raise ArgumentError(
            "--tests, --schema-history and --as show different things", hint="keep one of them"
        )
    if (failed or value is not None) and not tests:
        raise ArgumentError("--failed and --partition select results of tests", hint="add --tests")
    with load_project(project_dir) as project:
        if form is not None:
            _print_script(project.show_as(model, form), as_json=as_json)
            return
        if schema_history:
            changes = project.schema_history(model)
            if as_json:
                print_json({"versions": changes})
            else:
                print_changes(changes)
            return
        checks = project.tests(model) if tests else None
        shown = project.show(model) if checks is None else selected(checks, value, failed=failed)
    if as_json:
        print_json({"tests": shown} if isinstance(shown, tuple) else shown)
    elif isinstance(shown, tuple):
        print_tests(shown)
    else:
        print_detail(shown)


def _print_script(text: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"script": text})
    else:
        say(text.rstrip())


def print_changes(changes: tuple[VersionChanges, ...]) -> None:
    """A line a version, oldest first, and under it a line for each change of a column."""
    if not changes:
        say("no run has made the table yet")
    for change in changes:
        version = change.version
        since = "" if version.snapshot_id is None else f", snapshot {version.snapshot_id}"
        say(f"version {version.version}{since}, {clock(version.time)}")
        for column in change.changes:
            say(f"  {_SHOWN[column.kind].format(column)}")
        for name, inputs in version.lineage.items():
            if inputs:
                say(f"  {name} derives from {', '.join(inputs)}")


_SHOWN = {
    "added": "+ {0.column} {0.after}",
    "dropped": "- {0.column} {0.before}",
    "retyped": "~ {0.column}: {0.before} is {0.after}",
    "moved": "> {0.column}: from position {0.before} to {0.after}",
    "described": "# {0.column}: {0.after}",
}


def selected(
    checks: tuple[RecordedCheck, ...], value: str | None, *, failed: bool
) -> tuple[RecordedCheck, ...]:
    """The results of one slice, or of those tests that did not pass.

    :raises ArgumentError: no test has a result for that slice
    """
    if value is not None:
        slices = [each.slice for each in checks if each.slice is not None]
        if value not in slices:
            guess = nearest(value, slices)
            tested = ", ".join(dict.fromkeys(slices))
            others = f"tested are {tested}" if tested else "leave out --partition"
            raise ArgumentError(
                f"no test has a result for the slice {value!r}",
                hint=f"did you mean {guess!r}?" if guess else others,
            )
        checks = tuple(each for each in checks if each.slice == value)
    return tuple(each for each in checks if not (failed and each.result.passed))


_OUTCOMES = ("failed", "warned", "passed")


def print_tests(checks: tuple[RecordedCheck, ...]) -> None:
    """A line a test and slice, failures first; then the query and some rows of these."""
    checks = tuple(sorted(checks, key=lambda each: _OUTCOMES.index(each.result.outcome)))
    print_answers(
        RecordedChecks.columns,
        checks,
        look=Look(("run", "tested"), ("outcome",)),
        empty="No such result of a data test is recorded.",
    )
    for each in checks:
        if not each.result.passed:
            where = f" on {each.slice}" if each.slice else ""
            say_section(f"{each.result.name}{where}", each.result.query.splitlines())
            print_samples(each.result)


def print_detail(detail: ModelDetail) -> None:
    status = detail.status
    facts = {
        "model": status.model,
        "file": local(detail.path),
        "makes": status.makes,
        "strategy": status.strategy + (f" on {', '.join(detail.keys)}" if detail.keys else ""),
        "slice": detail.unit,
        "state": status.state,
        "reads": ", ".join(detail.inputs) or "no managed table",
    }
    if detail.libraries:
        facts["libraries"] = ", ".join(detail.libraries)
    for name, value in facts.items():
        say(f"{name:<9} {value}")
    say_section("about", [f"{name}: {text}" for name, text in detail.about.items()])
    say_section("tests", list(detail.tests))
    _print_columns(detail.columns)
    say_section("schema versions", [_version(version) for version in detail.schema_versions])
    say_section("query", detail.query.strip().splitlines())
    if detail.runs:
        say("\nlast runs")
        look = Look(("snapshot", "time", "rows"), ("state",))
        print_answers(StepRun.columns, detail.runs, look=look)


def _print_columns(columns: tuple[ColumnInfo, ...]) -> None:
    if columns:
        say("\ncolumns")
        described = any(column.comment for column in columns)
        headings = ("name", "type", *(["description"] if described else []))
        print_answers({name: ColumnInfo.columns[name] for name in headings}, columns)


def _version(version: SchemaVersion) -> str:
    columns = ", ".join(f"{column.name} {column.type}" for column in version.columns)
    since = "" if version.snapshot_id is None else f" from snapshot {version.snapshot_id}"
    return f"{version.version}{since}, {clock(version.time)}: {columns}"
