"""``penstock spark``: the Spark servers of warm sessions, which stay for the next command."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.cli import paths
from penstock.cli.options import (
    common_options,
    debug_option,
    find_project,
    json_option,
    read_settings,
)
from penstock.cli.output import local_cells, print_json, print_table, say
from penstock.cli.prepare import prepare
from penstock.cli.tables import Look
from penstock.rendering.columns import read_columns

if TYPE_CHECKING:
    from penstock.engine.session.warm_servers import WarmServer


@click.group(
    "spark",
    short_help="Start, list and stop Spark that stays for the next command.",
    epilog="""\b
Examples:
  penstock spark status
  penstock spark start
  penstock spark stop""",
)
def command() -> None:
    """Start, list and stop the Spark servers of warm sessions.

    The first command at a terminal that needs Spark starts a server; later ones with the same
    settings join it. It ends when it is idle for as long as [spark] warm in penstock.toml says.
    """


command.add_command(prepare)


@command.command(
    "start",
    epilog="""\b
Examples:
  penstock spark start
  penstock spark start --json""",
)
@common_options
def start(*, project_dir: Path | None, as_json: bool) -> None:
    """Start the server of this project, if it does not run already."""
    from penstock.engine.session.open_session import stays
    from penstock.engine.session.warm_servers import start as start_server

    root = project_dir or find_project()
    paths.remember(root)
    settings = read_settings(root)
    server, new = start_server(settings)
    if as_json:
        print_json({"servers": [server], "new": new})
    elif new:
        assert settings.spark.warm is not None, "there is a server"
        say(f"Spark {server.spark} runs on {server.master}, process {server.pid}")
        say(stays(settings.spark.warm))
    else:
        say(f"Spark {server.spark} runs already, process {server.pid}")


@command.command(
    "status",
    epilog="""\b
Examples:
  penstock spark status
  penstock spark status --json""",
)
@json_option
@debug_option
def status(*, as_json: bool) -> None:
    """List the servers that run for you, of all projects."""
    from penstock.engine.session.warm_servers import servers

    found = servers()
    if as_json:
        print_json({"servers": found})
    else:
        _print(found)


def _print(servers: Sequence[WarmServer]) -> None:
    from penstock.engine.session.open_session import lasting

    columns = read_columns("server=key state process=pid master memory spark started")
    rows = [
        (*values, server.idle and f"{lasting(server.idle)} idle")
        for server, values in zip(servers, local_cells(columns, servers), strict=True)
    ]
    look = Look(("spark", "started"))
    print_table((*columns, "ends after"), rows, look=look, empty="No Spark server runs.")


@command.command(
    "stop",
    epilog="""\b
Examples:
  penstock spark stop
  penstock spark stop --force""",
)
@click.option("--force", is_flag=True, help="Also end servers that other commands use.")
@json_option
@debug_option
def stop(*, force: bool, as_json: bool) -> None:
    """End the servers that run for you, of all projects; those in use only with --force."""
    from penstock.engine.session.warm_servers import stop as stop_servers

    ended = stop_servers(force=force)
    if as_json:
        print_json({"servers": ended})
    elif ended:
        for each in ended:
            say(f"ended Spark {each.spark} on {each.master}, process {each.pid}")
    else:
        say("No Spark server runs.")
