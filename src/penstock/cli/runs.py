"""``penstock runs``: past runs, and what is known of one, without Spark."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from penstock.cli.options import common_options, complete_model, limit_option, load_project
from penstock.cli.output import clock, print_answers, print_json, print_samples, say, say_section
from penstock.cli.paths import local
from penstock.cli.tables import Look
from penstock.project.past_runs import LAST_RUNS
from penstock.rendering.text import count, seconds, slice_state, step_counts
from penstock.states import PUBLISHED, StepState

if TYPE_CHECKING:
    from penstock.engine.answers.runs import PastStep, RunDetail

F = TypeVar("F", bound=Callable[..., Any])

_RUNS = Look(("who", "exit", "how", "time"), ("slices", "partition"))
_STEPS = Look(("deleted", "bytes", "files", "started", "time"), ("state",))


def since_option(function: F) -> F:
    """``--since``; the command receives ``since``."""
    return click.option(
        "--since",
        metavar="AGE|TIME",
        help="Only runs since then: 24h, 7d, or 2026-01-31T00:00:00Z.",
    )(function)


class _RunsGroup(click.Group):
    """``penstock runs last``, or an id of a run, is short for ``penstock runs show last``."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        is_run = args[0] not in self.commands and not args[0].startswith("-")
        return super().resolve_command(ctx, ["show", *args] if is_run else args)


@click.group(
    "runs",
    cls=_RunsGroup,
    short_help="List past runs, or show one.",
    invoke_without_command=True,
    epilog="""\b
Examples:
  penstock runs
  penstock runs --failed --since 24h
  penstock runs --model clean/flights --limit 5
  penstock runs last
  penstock runs show 01a20f9c-6494 --json""",
)
@click.option("--failed", is_flag=True, help="Only runs that failed or were killed.")
@since_option
@click.option(
    "--model",
    metavar="MODEL",
    shell_complete=complete_model,
    help="Only runs that made slices of this model, or tried to.",
)
@click.option(
    "--all-environments",
    is_flag=True,
    help="Also runs of environments that make other tables in these lakes.",
)
@limit_option(LAST_RUNS, "runs, the newest")
@common_options
@click.pass_context
def command(
    ctx: click.Context,
    *,
    failed: bool,
    since: str | None,
    model: str | None,
    limit: int,
    all_environments: bool,
    project_dir: Path | None,
    as_json: bool,
) -> None:
    """List the last runs, newest first. Starts no Spark.

    A run is running, done, waiting (all is done but what waits for an input), failed, cancelled, or
    interrupted: its process was killed. Slices are counted by how they ended. A run that had
    nothing to do is not recorded. Runs of environments that make other tables, by their
    schema_suffix, are left out without --all-environments. `penstock runs RUN` shows one.
    """
    ctx.obj = project_dir
    if ctx.invoked_subcommand is not None:
        return
    with load_project(project_dir) as project:
        runs = project.runs(
            model, failed=failed, since=since, limit=limit, all_environments=all_environments
        )
    if as_json:
        print_json({"runs": runs})
        return
    columns = {**runs.columns, **({"environment": "environment"} if all_environments else {})}
    print_answers(columns, runs, look=_RUNS, empty="No such run is recorded.")


@command.command(
    "show",
    short_help="Show a run: plan, steps, tests, errors.",
    epilog="""\b
Examples:
  penstock runs show last
  penstock runs show 01a20f9c-6494
  penstock runs show last --json""",
)
@click.argument("run")
@common_options
@click.pass_context
def show(ctx: click.Context, *, run: str, project_dir: Path | None, as_json: bool) -> None:
    """Show RUN: an id, a part that only one begins or ends with, or `last`.

    When it ran, who started it and how, what was asked for and planned, with the reasons, what
    became of each slice, what was written and read, tests that failed with some of their rows, and
    errors.
    """
    with load_project(project_dir or ctx.obj) as project:
        detail = project.past_run(run)
    if as_json:
        print_json(detail)
    else:
        print_run(detail)


def print_run(detail: RunDetail) -> None:
    for name, value in _facts(detail):
        if value not in (None, ""):
            say(f"{name:<10} {value}")
    say_section("plan", list(_plan(detail)))
    if detail.steps:
        say("\nslices")
        print_answers(detail.steps[0].columns, detail.steps, look=_STEPS)
    if detail.inputs:
        say("\nread")
        print_answers(detail.inputs[0].columns, detail.inputs)
    say_section("time by phase", list(_phases(detail)))
    for step in detail.steps:
        _print_failure(step)
    if detail.log is not None:
        say(f"\nlog: {local(detail.log)}")


def _facts(detail: RunDetail) -> Iterator[tuple[str, object]]:
    run = detail.run
    yield "run", run.run_id
    yield "state", run.state if run.exit_code is None else f"{run.state}, exit code {run.exit_code}"
    yield "started", clock(run.started_at)
    yield "took", seconds(run.seconds)
    yield "who", f"{run.user or 'unknown user'} on {run.host}, pid {run.pid}"
    yield "how", run.trigger
    yield "retry of", run.retry_of
    yield "in", run.environment and f"environment {run.environment}"
    yield "asked", detail.command
    yield "for", detail.fire_time and clock(detail.fire_time)
    yield "partition", run.partition
    yield "arguments", ", ".join(f"{name}={value}" for name, value in detail.arguments.items())
    yield "payload", detail.payload and json.dumps(detail.payload, ensure_ascii=False)
    yield "lakes", ", ".join(run.lakes)
    yield "slices", step_counts(run.steps)


def _plan(detail: RunDetail) -> Iterator[str]:
    for each in detail.plan:
        number = f" ({each.count:,})" if each.count > 1 else ""
        why = f" ({each.why})" if each.why else ""
        slices = f" {each.slices}" if each.slices else ""
        yield f"{each.step}{slices}: {each.reason}{why}{number}"


def _phases(detail: RunDetail) -> Iterator[str]:
    for step, phases in detail.phases.items():
        said = ", ".join(f"{phase} {seconds(took)}" for phase, took in phases.items())
        yield f"{step}: {said}"


def _print_failure(step: PastStep) -> None:
    """Print why a slice ended badly, with the rows that its data tests found."""
    failed = [test for test in step.tests if not test.passed]
    is_bad = step.state not in PUBLISHED | {StepState.RUNNING}
    if not is_bad and not failed:
        return
    named = f"{step.step} {step.slice}" if step.slice else step.step
    say(f"\n{named}: {slice_state(step.state)}")
    for each in local(step.reason or "").splitlines():
        say(f"  {each}".rstrip())
    for test in failed:
        say(f"  test {test.name} {test.outcome}: {count(test.failures, 'row')}")
        print_samples(test)
