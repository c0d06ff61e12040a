"""Other names of commands and options: those that users of similar tools type first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import click

# Command of another tool, or a plain word for the task, to the command of Penstock.
COMMANDS: Mapping[str, str] = MappingProxyType(
    {
        "add": "penstock init",
        "apply": "penstock run",
        "audit": "penstock show MODEL --tests",
        "build": "penstock run",
        "clean": "penstock maintain",
        "compact": "penstock maintain",
        "compare": "penstock diff A B",
        "compile": "penstock render MODEL",
        "console": "penstock sql SQL",
        "create": "penstock init",
        "dag": "penstock plan --explain",
        "debug": "penstock check",
        "delete": "penstock drop MODEL",
        "deploy": "penstock run --changed",
        "deps": "penstock lineage MODEL",
        "describe": "penstock show MODEL",
        "env": "penstock environments",
        "evaluate": "penstock preview MODEL",
        "exec": "penstock run",
        "execute": "penstock run",
        "explain": "penstock plan --explain",
        "freshness": "penstock status --fail-on behind",
        "graph": "penstock plan --explain",
        "help": "penstock --help",
        "info": "penstock show MODEL",
        "inspect": "penstock show MODEL",
        "jobs": "penstock runs",
        "lint": "penstock check",
        "list": "penstock status",
        "log": "penstock logs RUN|MODEL",
        "ls": "penstock status",
        "migrate": "penstock run --changed",
        "models": "penstock status",
        "new": "penstock init",
        "optimize": "penstock maintain",
        "parse": "penstock check",
        "promote": "penstock run --changed",
        "query": "penstock sql SQL",
        "rebuild": "penstock restate MODEL",
        "refresh": "penstock restate MODEL",
        "remove": "penstock drop MODEL",
        "repair": "penstock retry RUN",
        "rerun": "penstock retry RUN",
        "revert": "penstock rollback MODEL --to POINT",
        "scheduler": "penstock serve",
        "seed": "penstock run",
        "select": "penstock sql SQL",
        "table-diff": "penstock diff A B",
        "table_diff": "penstock diff A B",
        "tables": "penstock status",
        "tests": "penstock show MODEL --tests",
        "undo": "penstock rollback MODEL --to POINT",
        "vacuum": "penstock maintain",
        "validate": "penstock check",
        "verify": "penstock check",
        "version": "penstock --version",
    }
)

# Options of other tools. An option is suggested only where the command has it.
OPTIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "--concurrency": ("--jobs",),
        "--date": ("--partition", "--from"),
        "--day": ("--partition", "--from"),
        "--environment": ("--env",),
        "--full": ("--full-refresh",),
        "--model": ("--select",),
        "--models": ("--select",),
        "--rerun": ("--force",),
        "--state": ("--failed", "--fail-on"),
        "--target": ("--env",),
        "--threads": ("--jobs",),
        "--until": ("--to",),
        "--vars": ("--arg",),
        "--verbose": ("--debug",),
    }
)

# Options of other commands, by the command that users type them with.
ELSEWHERE: Mapping[tuple[str | None, str], str] = MappingProxyType(
    {
        ("restate", "--changed"): "penstock run --changed",
        ("diff", "--failed"): "penstock diff --run RUN",
        ("check", "--changed"): "penstock plan --changed",
    }
)


def options_meant(name: str, command: click.Command) -> list[str]:
    """Return the options of a command that an unknown one may mean, the likeliest first."""
    names = {text for parameter in command.params for text in parameter.opts}
    return [option for option in OPTIONS.get(name, ()) if option in names]


class AliasedOption(click.Option):
    """An option with aliases that its help does not list."""

    def __init__(self, *args: Any, aliases: Iterable[str], **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._aliases = tuple(aliases)

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Add the aliases to the parser."""
        names = self.opts
        self.opts = [*names, *self._aliases]
        try:
            super().add_to_parser(parser, ctx)
        finally:
            self.opts = names
