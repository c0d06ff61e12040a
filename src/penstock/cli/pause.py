"""``penstock pause``: models that do not fire for some time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.cli.options import common_options, complete_model, load_project, read_time
from penstock.cli.output import clock, print_json, print_table, say
from penstock.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.project.context import ProjectContext
    from penstock.scheduler.values import Pause

_COLUMNS = ("paused", "since", "until", "user", "reason")


@click.command(
    "pause",
    short_help="Keep models from firing under penstock serve.",
    epilog="""\b
Examples:
  penstock pause
  penstock pause marts/revenue --until 2h --reason "the source is being repaired"
  penstock pause tag:finance --until 2026-12-24T06:00Z""",
)
@click.argument("model", required=False, metavar="[MODEL|tag:TAG]", shell_complete=complete_model)
@click.option("--until", metavar="TIME", help="The end: a time, or a length such as 2h.")
@click.option("--reason", metavar="TEXT", help="The reason, for the list of pauses.")
@common_options
def command(
    *,
    model: str | None,
    until: str | None,
    reason: str | None,
    project_dir: Path | None,
    as_json: bool,
) -> None:
    """Keep MODEL from firing, or all models with a tag. Without MODEL, list the pauses.

    The events of a paused model are kept. When the pause ends, the model runs for them. A run that
    has started continues. `penstock run` ignores pauses.
    """
    from penstock.engine.state.claims import user_name
    from penstock.scheduler.values import Pause
    from penstock.server.opening import open_agenda

    with load_project(project_dir) as project:
        store = open_agenda(project.context)
        if model is None:
            _show(store.pauses(), as_json=as_json)
            return
        since = datetime.now(UTC)
        selector = _require_selector(project.context, model)
        pause = Pause(selector, since, read_end(until, since), reason, user_name())
        store.pause(pause)
    if as_json:
        print_json(pause)
        return
    end = "penstock resume" if pause.until is None else clock(pause.until)
    say(f"{selector} is paused until {end}; its events are kept")


def read_end(until: str | None, since: datetime) -> datetime | None:
    """Return when a pause ends.

    Args:
        until: A time with its zone, a length such as ``2h``, or None.
        since: When the pause begins.

    Returns:
        The time in UTC; None for no end.

    Raises:
        ArgumentError: The text is neither, or the time has passed.
    """
    from penstock.settings.quantities import is_duration, seconds_of

    if until is None:
        return None
    if is_duration(until):
        return since + timedelta(seconds=seconds_of(until))
    end = read_time(until, hint="write a time as 2026-12-24T06:00Z, or a length as 2h")
    if end <= since:
        raise ArgumentError(f"{until} has passed", hint="give a later time, or a length such as 2h")
    return end


def _require_selector(context: ProjectContext, model: str) -> str:
    if not model.startswith("tag:"):
        return context.model(model).name
    tag = model.removeprefix("tag:")
    tags = sorted({item for each_model in context.models for item in each_model.tags})
    if tag not in tags:
        raise ArgumentError(
            f"no model has the tag {tag!r}",
            hint=f"tags are {', '.join(tags)}"
            if tags
            else "a model names its tags as `-- tag finance`",
        )
    return model


def _show(pauses: Sequence[Pause], *, as_json: bool) -> None:
    if as_json:
        print_json({"pauses": list(pauses)})
        return
    rows = [
        (item.selector, clock(item.since), clock(item.until), item.user, item.reason)
        for item in pauses
    ]
    print_table(_COLUMNS, rows, empty="Nothing is paused.")
