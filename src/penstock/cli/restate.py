"""``penstock restate``: rebuild the slices of a range."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.cli.options import (
    common_options,
    complete_model,
    confirm,
    load_project,
    no_wait_option,
    range_options,
    warm_option,
)
from penstock.cli.output import print_json, print_table, watch
from penstock.cli.run_ending import print_ending, what_is_left
from penstock.cli.tables import Look

if TYPE_CHECKING:
    from penstock.engine.planning.restate import Restated


@click.command(
    "restate",
    short_help="Rebuild the slices of a range, with what reads them.",
    epilog="""\b
Examples:
  penstock restate marts/sales --from 2013-01-01 --to 2013-01-31 --dry-run
  penstock restate marts/sales --from 2013-01-01 --to 2013-01-31 --downstream --yes
  penstock restate marts/customers --dry-run""",
)
@click.argument("model", shell_complete=complete_model)
@range_options("make again")
@click.option(
    "--downstream",
    is_flag=True,
    help="Also rebuild the models that read it, directly or indirectly.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@warm_option
@no_wait_option
@common_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    model: str,
    *,
    from_: str | None,
    to: str | None,
    downstream: bool,
    dry_run: bool,
    yes: bool,
    no_wait: bool,
    project_dir: Path | None,
    as_json: bool,
) -> None:
    """Rebuild the slices of MODEL from --from to --to, inclusive, even if they are up to date.

    Shows the slices and their current rows, and asks. Rows that the query no longer returns are
    removed; a slice without rows ends empty. A model by time is restated in one commit. Earlier
    snapshots keep the rows of before.

    A model without ranges is rebuilt as a whole, without --from and --to: a merge, an
    INCREMENTAL_BY_PARTITION, an INCREMENTAL_UNMANAGED, a CUSTOM or a history from an empty table.

    With --downstream also the existing slices of the models that read it. MODEL may then be a table
    that others write, as external_models.yaml describes it.

    A slice that another run is making is waited for, or left out with --no-wait.

    Models with disable_restatement are refused, or with --downstream left out, and so are those
    whose rows are only ever added.
    """
    with load_project(project_dir) as project:
        found = project.restatement(model, from_, to, downstream=downstream)
        nothing = all(each.skipped for each in found)
        if dry_run or nothing or not as_json:
            _show(found, as_json=as_json)
        if dry_run or nothing:
            return
        if not yes:
            confirm(
                "restate",
                "Rebuild these?",
                "to do it: --yes; to see only what it would do: --dry-run",
            )
        with watch(as_json=as_json) as sink:
            result = project.restate(
                model, from_, to, downstream=downstream, wait=not no_wait, on_event=sink
            )
        left = what_is_left(project, result)
    print_ending(result, left, as_json=as_json)
    ctx.exit(result.exit_code)


def _show(found: Sequence[Restated], *, as_json: bool) -> None:
    if as_json:
        print_json({"models": found})
        return
    rows = [(each.model, each.table, *_what(each)) for each in found]
    print_table(("model", "table", "slices", "rows now", ""), rows, look=Look(("table",)))


def _what(restated: Restated) -> tuple[str, str, str]:
    if restated.skipped:
        return "", "", restated.skipped
    rows = "" if restated.rows is None else f"{restated.rows:,}"
    what = "rebuilt from an empty table" if restated.anew else "rebuilt"
    return restated.slice or "whole table", rows, what
