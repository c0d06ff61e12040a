"""``penstock serve``: a project that runs itself."""

from __future__ import annotations

import json
import logging
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.options import common_options, load_project, read_time, warm_option
from penstock.cli.output import clock, print_json, print_table, say
from penstock.errors import ArgumentError
from penstock.rendering.text import count

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

    from penstock.project.context import ProjectContext
    from penstock.server.serving import Server
    from penstock.settings.serve_settings import ServeSettings

_COLUMNS = ("time", "model", "partition", "cause")
_STANDARD_FIELDS = frozenset(vars(logging.makeLogRecord({})))


@click.command(
    "serve",
    short_help="Run models when inputs change, schedules are due and messages arrive.",
    epilog="""\b
Examples:
  penstock serve
  penstock serve --port 8700 --slots 4
  penstock serve --until-idle --no-http
  penstock serve --simulate --from 2026-12-01 --to 2026-12-08""",
)
@click.option("--host", metavar="HOST", help="The address to listen on [default: 127.0.0.1].")
@click.option(
    "--port", type=click.IntRange(0, 65535), metavar="N", help="The port [default: 8600]."
)
@click.option("--no-http", is_flag=True, help="Do not answer HTTP.")
@click.option(
    "--slots", type=click.IntRange(min=1), metavar="N", help="Run up to N models at once."
)
@click.option("--until-idle", is_flag=True, help="End when nothing is left to run.")
@click.option("--simulate", is_flag=True, help="Show what schedules would run; run nothing.")
@click.option("--from", "start", metavar="TIME", help="The start of a simulation [default: now].")
@click.option("--to", "end", metavar="TIME", help="The end of a simulation.")
@click.option(
    "--log-format",
    type=click.Choice(("text", "json")),
    default="text",
    show_default=True,
    help="The format of the log.",
)
@warm_option
@common_options
def command(
    *,
    simulate: bool,
    log_format: str,
    start: str | None,
    end: str | None,
    project_dir: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Run the models of a project by the triggers in their headers, until it is stopped.

    A model runs when a table or file after `on` changes, when its schedule is due, when a message
    arrives, and when its table is older than its `freshness`. Several processes may serve one
    project: one of them is the leader, which decides and runs.

    SIGTERM and Ctrl-C stop the process. It waits for its runs up to `drain_timeout` of [serve].
    Then it stops them, and the next process retries them.

    `penstock run` of the project on this machine uses its Spark. --no-warm of either command and
    `share = false` in [serve] prevent that. --simulate prints when models would run.
    """
    with load_project(project_dir) as project:
        if simulate:
            _simulate(project.context, start, end, as_json=as_json)
            return
        if start is not None or end is not None:
            raise ArgumentError("--from and --to are of --simulate", hint="add --simulate")
        _serve(project.context, log_format, **options)


def _serve(
    context: ProjectContext,
    log_format: str,
    *,
    host: str | None,
    port: int | None,
    slots: int | None,
    no_http: bool,
    until_idle: bool,
) -> None:
    from dataclasses import replace

    from penstock.server.serving import ServeOptions, Server

    serve = context.settings.serve
    serve = replace(
        serve,
        host=host or serve.host,
        port=serve.port if port is None else port,
        slots=slots or serve.slots,
    )
    context = replace(context, settings=replace(context.settings, serve=serve))
    _configure_log(log_format)
    server = Server(context, ServeOptions(has_http=not no_http, is_once=until_idle))
    _stop_at_signals(server)

    def announce(url: str | None) -> None:
        _announce(context, serve, url)

    server.run(announce)


def _announce(context: ProjectContext, serve: ServeSettings, url: str | None) -> None:
    from penstock.engine.session.open_session import why_alone

    address, log = f" on {url}" if url else "", logging.getLogger("penstock.serve")
    log.info(
        "serves %s%s: %d models, %d slots",
        context.settings.name,
        address,
        len(context.models),
        serve.slots,
    )
    if context.connections.is_shared and (reason := why_alone(context.settings)) is not None:
        log.info("`penstock run` beside it starts Spark of its own: %s", reason)


def _stop_at_signals(server: Server) -> None:
    def stop(_signal: int, _frame: FrameType | None) -> None:
        server.stop()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)


class JsonFormatter(logging.Formatter):
    """Formats a record of the log as a JSON object on one line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as JSON.

        Args:
            record: The record.

        Returns:
            The time, level, logger and message, and the fields that its caller added.
        """
        values: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        extra = {key: value for key, value in vars(record).items() if key not in _STANDARD_FIELDS}
        if record.exc_info:
            extra["traceback"] = self.formatException(record.exc_info)
        return json.dumps({**extra, **values}, default=str)


def _configure_log(log_format: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    text = logging.Formatter("%(asctime)s %(message)s", "%Y-%m-%d %H:%M:%S")
    handler.setFormatter(JsonFormatter() if log_format == "json" else text)
    logger = logging.getLogger("penstock")
    logger.handlers[:] = [handler]
    logger.setLevel(logging.INFO)
    logger.propagate = False


def _simulate(
    context: ProjectContext, start_text: str | None, end_text: str | None, *, as_json: bool
) -> None:
    from penstock.scheduler.simulation import World, explain, simulate
    from penstock.scheduler.subscription import subscriptions_of

    if end_text is None:
        raise ArgumentError(
            "a simulation needs its end", hint="add --to, as in --to 2026-12-08T00:00Z"
        )
    start = datetime.now(UTC) if start_text is None else _read_bound(start_text)
    end = _read_bound(end_text)
    if end <= start:
        raise ArgumentError(
            f"the end {end_text} is not after the start", hint="swap --from and --to"
        )
    subscriptions = subscriptions_of(context.models, context.settings.serve)
    rows = explain(simulate(subscriptions, World(), start, end))
    if as_json:
        print_json({"firings": list(rows)})
        return
    cells: Sequence[tuple[object, ...]] = [
        (clock(row.time), row.model, row.partition, row.cause) for row in rows
    ]
    print_table(_COLUMNS, cells, empty="Nothing would run.")
    say(f"{count(len(cells), 'run')} from {clock(start)} to {clock(end)}")


def _read_bound(text: str) -> datetime:
    """Return a time; a date is its midnight in UTC."""
    is_date = len(text) == len("2026-12-01")
    hint = "write a day as 2026-12-01, or a time as 2026-12-01T06:00Z"
    return read_time(f"{text}T00:00:00Z" if is_date else text, hint=hint)
