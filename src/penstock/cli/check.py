"""``penstock check``: read every script and say what is wrong, without Spark."""

from __future__ import annotations

from pathlib import Path

import click

from penstock.cli.options import common_options, load_project, warm_option
from penstock.cli.output import print_json, say
from penstock.cli.paths import local
from penstock.errors import ModelError
from penstock.rendering.text import count


@click.command(
    "check",
    short_help="Read all models and report what is wrong.",
    epilog="""\b
Examples:
  penstock check
  penstock check --spark
  penstock check --project examples/flights --json""",
)
@click.option("--spark", is_flag=True, help="Let Spark analyse every query, without running any.")
@warm_option
@common_options
@click.pass_context
def command(ctx: click.Context, *, spark: bool, project_dir: Path | None, as_json: bool) -> None:
    """Read penstock.toml and every model: headers, queries, references, cycles.

    Findings are `file:line:column: severity: message`. Exit code 2 when one is an error. Starts
    no Spark, so it answers at once. With --spark, each query is analysed against the schemas of
    the tables that it reads: as the models before it make them, or as their lakes have them.
    """
    try:
        with load_project(project_dir) as project:
            findings = project.check(spark=spark)
    except ModelError as error:
        if not as_json:
            raise
        print_json({"models": [], "diagnostics": error.diagnostics})
        ctx.exit(error.exit_code)
    errors = sum(finding.severity == "error" for finding in findings)
    if as_json:
        print_json({"models": [model.name for model in project.models], "diagnostics": findings})
    else:
        for finding in findings:
            say(local(str(finding)), err=True)
        say(f"{count(len(project.models), 'model')}, {_summary(errors, len(findings))}")
    if errors:
        ctx.exit(ModelError.exit_code)


def _summary(errors: int, findings: int) -> str:
    warnings = findings - errors
    said = [count(errors, "error") if errors else "no errors"]
    return ", ".join([*said, *([count(warnings, "warning")] if warnings else [])])
