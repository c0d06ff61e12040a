"""``penstock drop``: a model's table, or a slice of it, away; earlier snapshots keep it."""

from __future__ import annotations

from pathlib import Path

import click

from penstock.cli.options import (
    common_options,
    complete_model,
    confirm,
    load_project,
    partition_option,
)
from penstock.cli.output import print_json
from penstock.rendering.text import count


@click.command(
    "drop",
    short_help="Drop a model's table, or one slice of it.",
    epilog="""\b
Examples:
  penstock drop marts/delays_daily
  penstock drop raw/flights --partition 2013-01-02 --yes
  penstock drop marts/delays_by_day --partition 2013-01-02""",
)
@click.argument("model", shell_complete=complete_model)
@partition_option("Drop this slice only, such as 2013-01-02.", "value")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@common_options
def command(
    model: str, *, value: str | None, yes: bool, project_dir: Path | None, as_json: bool
) -> None:
    """Drop the table that MODEL makes, with what is recorded of its slices, as a new snapshot.

    The script stays: the next run makes the table, or the slice, again. Earlier snapshots keep the
    rows until they expire. --partition takes the name that `penstock status MODEL` shows, also of a
    slice that only failed. Of a model that is gone MODEL is its name, or that of its table. Asks
    before it drops.
    """
    with load_project(project_dir) as project:
        if not yes:
            what = f"slice {value} of {model}" if value is not None else f"the table of {model}"
            confirm("drop", f"Drop {what}? Earlier snapshots keep it.", "to drop it: --yes")
        dropped = project.drop(model, value)
    if as_json:
        print_json(dropped)
        return
    whole = dropped.table if value is None else f"slice {value} of {dropped.table}"
    if dropped.files:
        click.echo(f"forgot {whole}: the files stay, and the next run writes them again")
        return
    at = f" at snapshot {dropped.snapshot_id}" if dropped.snapshot_id is not None else ""
    click.echo(f"dropped {whole}{at}: {count(dropped.rows, 'row')}")
