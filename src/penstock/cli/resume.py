"""``penstock resume``: paused models fire again."""

from __future__ import annotations

from pathlib import Path

import click

from penstock.cli.options import common_options, complete_model, load_project
from penstock.cli.output import print_json, say
from penstock.errors import ArgumentError


@click.command(
    "resume",
    short_help="Let paused models fire again.",
    epilog="""\b
Examples:
  penstock resume marts/revenue
  penstock resume tag:finance""",
)
@click.argument("model", metavar="MODEL|tag:TAG", shell_complete=complete_model)
@common_options
def command(*, model: str, project_dir: Path | None, as_json: bool) -> None:
    """End the pause of MODEL, or of a tag. The models run for the events of the pause."""
    from penstock.server.opening import open_agenda

    with load_project(project_dir) as project:
        store = open_agenda(project.context)
        paused = [pause.selector for pause in store.pauses()]
        is_selector = model in paused or model.startswith("tag:")  # the model may be gone
        selector = model if is_selector else project.context.model(model).name
        if not store.resume(selector):
            listed = f"paused: {', '.join(paused)}" if paused else "nothing is paused"
            raise ArgumentError(f"{selector} is not paused", hint=listed)
    if as_json:
        print_json({"resumed": selector})
    else:
        say(f"{selector} fires again")
