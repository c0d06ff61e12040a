"""Options that several commands share, and the project they all act on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from penstock.errors import ArgumentError, ConfigError

if TYPE_CHECKING:
    from penstock.project import Project

F = TypeVar("F", bound=Callable[..., Any])

CONFIG_NAME = "penstock.toml"


def project_option(function: F) -> F:
    """``--project DIR``; the command receives ``project_dir``."""
    return click.option(
        "--project",
        "project_dir",
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="The project's directory [default: the nearest penstock.toml upwards].",
    )(function)


def json_option(function: F) -> F:
    """``--json``; the command receives ``as_json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")(
        function
    )


def debug_option(function: F) -> F:
    """``--debug``; kept in the context for whoever reports an error."""

    def remember(ctx: click.Context, _: click.Parameter, value: bool) -> None:
        ctx.meta["penstock.debug"] = value

    return click.option(
        "--debug",
        is_flag=True,
        expose_value=False,
        callback=remember,
        help="Show the traceback of an error.",
    )(function)


def limit_option(default: int, what: str) -> Callable[[F], F]:
    """``--limit N``; the command receives ``limit``."""
    return click.option(
        "--limit",
        type=click.IntRange(min=0),
        default=default,
        show_default=True,
        metavar="N",
        help=f"At most this many {what}.",
    )


def find_project() -> Path:
    """The nearest directory with penstock.toml, from the current one upwards.

    :raises ConfigError: there is none
    """
    here = Path.cwd()
    for candidate in (here, *here.parents):
        if (candidate / CONFIG_NAME).is_file():
            return candidate
    raise ConfigError(
        f"there is no {CONFIG_NAME} in {here} or in any directory above it",
        hint="start a project with `penstock init`, or name one with --project DIR",
    )


def load_project(directory: Path | None) -> Project:
    """The project a command acts on: the one named, or the nearest upwards."""
    root = directory or find_project()
    from penstock.project import Project

    return Project.load(root)


def parse_pairs(texts: tuple[str, ...]) -> dict[str, str]:
    """``name=value`` of repeated ``--arg``; types are the scripts' own business.

    :raises ArgumentError: no ``=``, no name, or one name twice
    """
    pairs: dict[str, str] = {}
    for text in texts:
        name, mark, value = text.partition("=")
        if not mark or not name:
            raise ArgumentError(
                f"--arg takes name=value, not {text!r}", hint="for example: --arg carrier=UA"
            )
        if name in pairs:
            raise ArgumentError(f"--arg {name} is given twice", hint="leave one of the two out")
        pairs[name] = value
    return pairs
