"""The ``penstock`` command: which commands there are, and how any of them ends."""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import pairwise

import click

from penstock.cli import guesses
from penstock.cli.output import EXIT_INTERRUPTED, fail, fail_as_json
from penstock.distribution import VERSION
from penstock.sql.identifiers import nearest

# Name to module, in the order of the help. A module is imported when its command is called.
COMMANDS = {
    "init": "penstock.cli.init",
    "check": "penstock.cli.check",
    "test": "penstock.cli.test",
    "plan": "penstock.cli.plan",
    "run": "penstock.cli.run",
    "retry": "penstock.cli.retry",
    "serve": "penstock.cli.serve",
    "backfill": "penstock.cli.backfill",
    "backfills": "penstock.cli.backfills",
    "pause": "penstock.cli.pause",
    "resume": "penstock.cli.resume",
    "events": "penstock.cli.events",
    "restate": "penstock.cli.restate",
    "adopt": "penstock.cli.adopt",
    "drop": "penstock.cli.drop",
    "rollback": "penstock.cli.rollback",
    "status": "penstock.cli.status",
    "show": "penstock.cli.show",
    "why": "penstock.cli.why",
    "runs": "penstock.cli.runs",
    "environments": "penstock.cli.environments",
    "logs": "penstock.cli.logs",
    "diff": "penstock.cli.diff",
    "history": "penstock.cli.history",
    "reproduce": "penstock.cli.reproduce",
    "lineage": "penstock.cli.lineage",
    "format": "penstock.cli.format",
    "create-external": "penstock.cli.create_external",
    "preview": "penstock.cli.preview",
    "render": "penstock.cli.render",
    "snapshots": "penstock.cli.snapshots",
    "sql": "penstock.cli.sql",
    "spark": "penstock.cli.spark",
    "maintain": "penstock.cli.maintain",
    "state": "penstock.cli.state",
    "backup": "penstock.cli.backup",
    "restore": "penstock.cli.restore",
    "import": "penstock.cli.import_project",
    "s3-jars": "penstock.cli.s3_jars",
}


class LazyGroup(click.Group):
    """Loads the module of a command when that command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        cmd_name: str,
    ) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(COMMANDS[cmd_name]).command
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Remember whether JSON is asked for, also where the rest cannot be understood."""
        given = args[: args.index("--")] if "--" in args else args
        is_flag = bool({"--json", "--format=json"} & set(given))
        ctx.meta["penstock.json"] = is_flag or ("--format", "json") in pairwise(given)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = str(args[0])
        if name in COMMANDS or name.startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        meant = guesses.COMMANDS.get(name.lower())
        if meant:
            hint = f" Write `{meant}`."
        else:
            guess = nearest(name, COMMANDS)
            hint = f" Did you mean {guess!r}?" if guess else ""
        raise click.UsageError(f"No such command {name!r}.{hint}", ctx)

    def invoke(self, ctx: click.Context) -> None:
        """Run the command; any error that is not click's own ends as one message."""
        try:
            with seldom_collected():
                super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            ctx.exit(EXIT_INTERRUPTED)
        except (click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except click.ClickException as error:
            shown = _narrowed(error) if isinstance(error, click.NoSuchOption) else error
            if ctx.meta["penstock.json"]:
                fail_as_json(shown)
            raise shown from None
        except Exception as error:  # the last place: a fault is one message too
            if ctx.meta["penstock.json"]:
                fail_as_json(error)
            ctx.exit(fail(error, debug=ctx.meta.get("penstock.debug", False)))


def _narrowed(error: click.NoSuchOption) -> click.NoSuchOption:
    """Return the error with the option of the same meaning, or else the nearest name alone."""
    name, command = error.option_name, error.ctx.command if error.ctx else None
    elsewhere = guesses.ELSEWHERE.get((command.name, name)) if command else None
    meant = guesses.options_meant(name, command) if command else []
    near = [*meant, *(error.possibilities or ())][:1]
    hint = f" Did you mean {near[0]!r}?" if near else ""
    if elsewhere:
        hint = f" Write `{elsewhere}`."
    return click.NoSuchOption(name, f"{error.message}{hint}", ctx=error.ctx)


# Trees of a thousand queries are garbage in cycles: by default a tenth of a cold check is spent on
# looking for it among the objects that stay. So many objects are some 10 MB.
_OBJECTS_BEFORE_COLLECTION = 50_000


@contextmanager
def seldom_collected() -> Iterator[None]:
    """The garbage collector of the process runs less often meanwhile."""
    first, *others = gc.get_threshold()
    gc.set_threshold(first and max(first, _OBJECTS_BEFORE_COLLECTION), *others)
    try:
        yield
    finally:
        gc.set_threshold(first, *others)


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=True,
)
@click.version_option(VERSION, message="penstock %(version)s")
def main() -> None:
    """Managed data pipelines on Spark: you write the SELECT, Penstock owns the write.

    Exit codes: 0 all is done, 1 something failed, 2 the input is wrong, 3 nothing failed but
    something waits, 4 a saved plan is out of date, 130 interrupted.
    """
    # Interrupted in a call to Spark, or when a server goes away, these log tracebacks on their own;
    # without a handler that lands on the terminal. Whoever configures logging still gets it.
    for name in ("py4j", "psycopg", "sqlalchemy"):
        logging.getLogger(name).addHandler(logging.NullHandler())
