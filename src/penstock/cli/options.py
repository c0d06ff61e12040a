"""Options that several commands share, and the project they all act on."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from penstock.cli import paths
from penstock.cli.guesses import AliasedOption
from penstock.errors import ArgumentError, ConfigError
from penstock.events import EventSink, ignore

if TYPE_CHECKING:
    from penstock.project.project import Project
    from penstock.settings.config import LakeSettings, Settings

F = TypeVar("F", bound=Callable[..., Any])

CONFIG_NAME = "penstock.toml"


def complete_model(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """The names of models that begin with a text, for the shell; none of a project with errors.

    What stands before the last name of a selection stays, and tags follow ``tag:``.
    """
    cut = max(incomplete.rfind(sign) for sign in "+@,&|^( ") + 1
    before, word = incomplete[:cut], incomplete[cut:]
    with (
        suppress(Exception),
        ctx.scope(cleanup=False),
        load_project(ctx.params.get("project_dir")) as project,
    ):
        names = [model.name for model in project.models]
        if word.startswith("tag:"):
            names = [f"tag:{tag}" for model in project.models for tag in model.tags]
        return sorted({f"{before}{name}" for name in names if name.startswith(word)})
    return []


def read_time(text: str, *, hint: str) -> datetime:
    """Return a time that a user gave with its zone.

    Args:
        text: The time, in ISO 8601.
        hint: What to write instead of a text that is none.

    Returns:
        The time in UTC.

    Raises:
        ArgumentError: The text is no time, or has no zone.
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ArgumentError(f"{text!r} is not a time", hint=hint) from None
    if time.tzinfo is None:
        raise ArgumentError(f"{text!r} has no time zone", hint=hint)
    return time.astimezone(UTC)


_ENVIRONMENT = "penstock.environment"  # where the context has the value of --env


def project_option(function: F) -> F:
    """``--project DIR`` and ``--env NAME``; the command receives ``project_dir``."""
    project = click.option(
        "--project",
        "project_dir",
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="The project's directory [default: the nearest penstock.toml upwards].",
    )
    return project(_env_option(function))


def _remembered(name: str, *flags: str, **attributes: Any) -> Callable[[F], F]:
    """Return an option whose value the context keeps under a name, for whatever reads it there."""

    def remember(ctx: click.Context, _: click.Parameter, value: Any) -> None:
        if value is not None:  # a group may have been given it, too
            ctx.meta[name] = value

    return click.option(*flags, expose_value=False, callback=remember, **attributes)


_env_option = _remembered(
    _ENVIRONMENT,
    "--env",
    metavar="NAME",
    help="Use the settings of [environments.NAME] [default: what PENSTOCK_ENV names, or none].",
)
# Whatever prints a table reads this.
markdown_option = _remembered(
    "penstock.markdown",
    "--markdown",
    is_flag=True,
    help="Print Markdown, for a comment on a pull request.",
)
# Whatever reports an error reads this.
debug_option = _remembered(
    "penstock.debug", "--debug", is_flag=True, help="Show the traceback of an error."
)
# `load_project` reads this.
warm_option = _remembered(
    "penstock.warm",
    "--warm/--no-warm",
    default=None,
    help="Whether to use Spark of earlier commands and leave it to later ones [default: on a "
    "terminal].",
)


def read_settings(root: Path) -> Settings:
    """The settings of a project in the environment that ``--env`` names."""
    from penstock.settings.config import load_settings

    return load_settings(root, environment=_environment())


def _environment() -> str | None:
    ctx = click.get_current_context(silent=True)
    return None if ctx is None else ctx.meta.get(_ENVIRONMENT)


def json_option(function: F) -> F:
    """``--json``; the command receives ``as_json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")(
        function
    )


def format_option(function: F) -> F:
    """``--format``, with ``--json`` for short; the command receives ``form``."""
    json = click.option("--json", "form", flag_value="json", help="The same as --format json.")
    form = click.option(
        "--format",
        "form",
        type=click.Choice(("table", "csv", "json", "markdown")),
        default="table",
        show_default=True,
        help="How rows are printed.",
    )
    return form(json(function))


def as_option(function: F) -> F:
    """``--as``; the command receives ``form``."""
    return click.option(
        "--as",
        "form",
        type=click.Choice(("annotations", "model")),
        help="The form of the script: a header of annotations, or MODEL (...).",
    )(function)


def spark_option(function: F) -> F:
    """``--spark``; the command receives ``spark``."""
    return click.option(
        "--spark", is_flag=True, help="Let Spark answer, even if it is not needed."
    )(function)


def common_options(function: F) -> F:
    """``--project``, ``--env``, ``--json`` and ``--debug``, which nearly every command has."""
    return project_option(json_option(debug_option(function)))


def partition_option(text: str, name: str = "partition") -> Callable[[F], F]:
    """``--partition VALUE``, or ``--slice``; the command receives it as ``name``."""
    return click.option(
        "--partition", name, cls=AliasedOption, aliases=["--slice"], metavar="VALUE", help=text
    )


def _from_option(verb: str) -> Callable[[Any], Any]:
    return click.option(
        "--from",
        "from_",
        cls=AliasedOption,
        aliases=["--start"],
        metavar="A",
        help=f"The first slice to {verb}: a partition, date or datetime.",
    )


def range_options(verb: str) -> Callable[[F], F]:
    """``--from`` and ``--to``; the command receives ``from_`` and ``to``."""

    def add(function: F) -> F:
        to = click.option(
            "--to",
            cls=AliasedOption,
            aliases=["--end"],
            metavar="B",
            help=f"The last slice to {verb}, included [default: the last that is over].",
        )
        return _all_of((_from_option(verb), to))(function)

    return add


def _all_of(options: Sequence[Callable[[Any], Any]]) -> Callable[[F], F]:
    def add(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return add


def _select_options() -> tuple[Callable[[Any], Any], ...]:
    return (
        click.option(
            "--select",
            "-s",
            multiple=True,
            metavar="MODEL",
            shell_complete=complete_model,
            help="Select models, as MODEL does: names, tables, files, folders/, patterns, tag:, "
            "state:; +MODEL with what it needs, MODEL+ with what reads it (docs/selecting.md).",
        ),
        click.option(
            "--exclude",
            multiple=True,
            metavar="MODEL",
            shell_complete=complete_model,
            help="Leave models out; selected in the same way.",
        ),
    )


def selected_range_options(verb: str) -> Callable[[F], F]:
    """``MODEL...``, ``--select`` and ``--exclude``, ``--from`` and ``--to``, which names models
    too; the command receives ``models``, ``select``, ``exclude``, ``from_`` and ``to``.
    """
    return _all_of(
        (
            click.argument("models", nargs=-1, metavar="[MODEL]...", shell_complete=complete_model),
            _from_option(verb),
            click.option(
                "--to",
                cls=AliasedOption,
                aliases=["--end"],
                multiple=True,
                metavar="B|MODEL",
                shell_complete=complete_model,
                help=f"The last slice to {verb}, included [default: the last that is over]; or a "
                "model: only that and what it needs. May be given for both.",
            ),
            *_select_options(),
        )
    )


def selection_options(function: F) -> F:
    """``--select``, ``--exclude`` and ``--to`` of models."""
    to = click.option(
        "--to",
        multiple=True,
        metavar="MODEL",
        shell_complete=complete_model,
        help="Only this model and what it needs.",
    )
    return _all_of((*_select_options(), to))(function)


def _input_options() -> tuple[Callable[[Any], Any], ...]:
    """Return the options of a run that say what becomes of slices by the state of their inputs."""
    return (
        click.option(
            "--upstream",
            is_flag=True,
            help="Also make what the models need of others and is missing, first.",
        ),
        click.option(
            "--allow-missing",
            is_flag=True,
            help="Do not wait for slices of inputs that are missing or have failed.",
        ),
        click.option(
            "--behind/--no-behind",
            default=None,
            help="Whether slices whose input has changed since are made again. By default those of "
            "the request are; with --behind all of the selected models, and those with late rows.",
        ),
        click.option(
            "--force", is_flag=True, help="Also make what is up to date: nothing says it changed."
        ),
    )


def request_options(function: F) -> F:
    """The request of a run; the command passes the values on to `read_request`."""
    options = (
        selected_range_options("make"),
        partition_option("The partition to build, such as 2013-01-02."),
        click.option(
            "--all",
            "all_",
            is_flag=True,
            help="With a range: also rebuild existing slices.",
        ),
        click.option(
            "--arg",
            "-a",
            "args",
            multiple=True,
            metavar="NAME=VALUE",
            help="The value of a declared argument; may be given several times.",
        ),
        click.option(
            "--payload",
            metavar="JSON",
            help="A JSON object with the values of arguments and of dynamic partitions.",
        ),
        click.option(
            "--fire-time",
            metavar="TIME",
            help="The time that the run is for, such as 2026-01-31T02:30:00Z [default: now].",
        ),
        click.option(
            "--full-refresh",
            is_flag=True,
            help="Rebuild the tables of the named models; their existing rows are dropped.",
        ),
        click.option(
            "--changed",
            is_flag=True,
            help="Rebuild slices that other definitions of the models made, and what reads them.",
        ),
        *_input_options(),
    )
    return _all_of(options)(function)


def no_wait_option(function: F) -> F:
    """``--no-wait``; the command receives ``no_wait``."""
    return click.option(
        "--no-wait",
        is_flag=True,
        help="Leave out slices that another run is making, instead of waiting for it.",
    )(function)


def read_request(
    *, models: Sequence[str], select: Sequence[str], args: tuple[str, ...], **others: Any
) -> dict[str, Any]:
    """The options of `request_options` as arguments of `Project.run` and `Project.plan`."""
    given = {**others, "select": (*models, *select), "args": parse_pairs(args)}
    return given | {"payload": parse_payload(others["payload"])}


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
    current = Path.cwd()
    for candidate in (current, *current.parents):
        if (candidate / CONFIG_NAME).is_file():
            return candidate
    # Late: a project has no need of it.
    from penstock.settings.refused_settings import start_hint

    raise ConfigError(
        f"there is no {CONFIG_NAME} in {current} or in any directory above it",
        hint=start_hint(current)
        or "start a project with `penstock init`, or name one with --project DIR",
    )


def load_project(directory: Path | None, on_event: EventSink = ignore) -> Project:
    """The project a command acts on: the one named, or the nearest upwards.

    ``on_event`` hears that Spark starts, where a command needs it to read rows.
    """
    root = directory or find_project()
    paths.remember(root)
    from penstock.project.project import Project

    ctx = click.get_current_context(silent=True)
    warm = ctx.meta.get("penstock.warm") if ctx else None
    project = Project.load(root, environment=_environment(), warm=warm)
    project.on_event = on_event
    return project


def confirm(command: str, question: str, hint: str) -> None:
    """Ask before a command changes tables.

    Args:
        command: The command.
        question: The question, to be answered by yes or no.
        hint: The next step where nobody is there to answer.

    Raises:
        ArgumentError: There is no terminal.
    """
    if not sys.stdin.isatty():
        message = f"{command} asks for confirmation, and there is no terminal to ask on"
        raise ArgumentError(message, hint=hint)
    click.confirm(question, abort=True, err=True)


def parse_pairs(texts: tuple[str, ...]) -> dict[str, str]:
    """``name=value`` of repeated ``--arg``; scripts declare their types.

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


def parse_payload(text: str | None) -> Mapping[str, Any] | None:
    """:raises ArgumentError: not a JSON object; says where"""
    if text is None:
        return None
    try:
        payload = json.loads(text)
    except json.JSONDecodeError as error:
        raise ArgumentError(
            f"--payload is not JSON: {error.msg} at character {error.pos + 1}",
            hint="""for example: --payload '{"region": "eu"}'""",
        ) from None
    if not isinstance(payload, dict):
        raise ArgumentError(
            "--payload must be a JSON object", hint="""for example: --payload '{"region": "eu"}'"""
        )
    return payload


def lake_settings(project_dir: Path | None, name: str | None) -> tuple[str, LakeSettings]:
    """A lake of penstock.toml and its name; without a name, the only lake. Reads no script.

    :raises ArgumentError: there is no such lake, or there are several and none is named
    """
    root = project_dir or find_project()
    paths.remember(root)
    settings = read_settings(root)
    if name in settings.delta_roots:
        raise ArgumentError(
            f"{name} is a Delta root, and this is for lakes",
            hint="tables of Delta are maintained and copied by engines of Delta; its index is made "
            "again from their logs",
        )
    lakes = {key: lake for key, lake in settings.lakes.items() if key not in settings.delta_roots}
    known = ", ".join(lakes)
    if name is None:
        if len(lakes) > 1:
            raise ArgumentError(f"there are several lakes: {known}", hint="name one with --lake")
        name = next(iter(lakes))
    if name not in lakes:
        raise ArgumentError(f"lake {name!r} does not exist", hint=f"penstock.toml has {known}")
    return name, lakes[name]
