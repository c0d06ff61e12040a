"""``penstock backfills``: how far backfills are; pause, resume or cancel one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.cli.options import common_options, load_project
from penstock.cli.output import clock, print_json, print_table
from penstock.errors import ArgumentError

if TYPE_CHECKING:
    from penstock.server.agenda_store import AgendaStore
    from penstock.server.backfill_store import BackfillProgress

_COLUMNS = ("backfill", "model", "from", "to", "state", "slices", "user", "created")


@click.command(
    "backfills",
    short_help="List backfills; pause, resume or cancel one.",
    epilog="""\b
Examples:
  penstock backfills
  penstock backfills --pause 8d3f21c07a11
  penstock backfills --cancel 8d3f21c07a11""",
)
@click.argument("backfill", required=False)
@click.option("--pause", "action", flag_value="paused", help="Start no further slice.")
@click.option("--resume", "action", flag_value="active", help="Continue the backfill.")
@click.option("--cancel", "action", flag_value="cancelled", help="Drop unpublished slices.")
@common_options
def command(
    *, backfill: str | None, action: str | None, project_dir: Path | None, as_json: bool
) -> None:
    """List the backfills of `penstock serve`, the newest first, or change BACKFILL.

    BACKFILL is an id, or the end of an id.
    """
    from penstock.server.backfill_store import BackfillState
    from penstock.server.opening import open_agenda

    if action is not None and backfill is None:
        raise ArgumentError("which backfill is meant", hint="penstock backfills lists their ids")
    with load_project(project_dir) as project:
        store = open_agenda(project.context)
        if backfill is not None and action is not None:
            chosen = find_backfill(store, backfill)
            if not store.set_backfill_state(chosen.backfill.id, BackfillState(action)):
                state = chosen.backfill.state.value
                raise ArgumentError(
                    f"backfill {backfill} is {state}", hint="penstock backfill starts another"
                )
        listed = store.backfills() if backfill is None else [find_backfill(store, backfill)]
    if as_json:
        print_json({"backfills": listed})
        return
    print_table(_COLUMNS, [_cells(item) for item in listed], empty="There are no backfills.")


def find_backfill(store: AgendaStore, text: str) -> BackfillProgress:
    """Return the backfill that a user names.

    Args:
        store: The agenda.
        text: Its id, or the end of it.

    Returns:
        The backfill.

    Raises:
        ArgumentError: No backfill is called so, or several are.
    """
    matches = [item for item in store.backfills() if item.backfill.id.endswith(text)]
    if len(matches) == 1:
        return matches[0]
    problem = f"{len(matches)} backfills end with" if matches else "no backfill ends with"
    raise ArgumentError(f"{problem} {text}", hint="penstock backfills lists their ids")


def _cells(progress: BackfillProgress) -> tuple[object, ...]:
    backfill, firings = progress.backfill, progress.firings
    total = sum(firings.values())
    ended = sum(number for state, number in firings.items() if not state.is_open)
    failed = sum(number for state, number in firings.items() if state.value == "failed")
    slices = f"{ended} of {total}" + (f", {failed} failed" if failed else "")
    return (
        backfill.id[-12:],
        backfill.model,
        backfill.start,
        backfill.end,
        backfill.state.value,
        slices,
        backfill.user,
        clock(backfill.created_at),
    )
