"""``penstock create-external``: describe the tables that others write."""

from __future__ import annotations

from pathlib import Path

import click

from penstock.cli.options import common_options, load_project
from penstock.cli.output import print_json, say
from penstock.cli.paths import local
from penstock.rendering.text import count


@click.command(
    "create-external",
    short_help="Describe tables that models read and no model makes.",
    epilog="""\b
Examples:
  penstock create-external
  penstock create-external --json""",
)
@common_options
def command(*, project_dir: Path | None, as_json: bool) -> None:
    """Add what models read and none makes to external_models.yaml, with the types of its columns.

    What the file has stays as it is written. Types are those of the table in its lake; of a table
    that is not there, the entry has none. Starts no Spark.
    """
    with load_project(project_dir) as project:
        created = project.create_external()
    if as_json:
        print_json(created)
        return
    say(f"{count(len(created.added), 'table')} added to {local(str(created.path))}")
    for name in created.added:
        say(f"  {name}{': not there, so no columns' if name in created.unknown else ''}")
    for name in created.unread:
        say(f"no query reads {name} any more: take its entry away")
