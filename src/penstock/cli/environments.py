"""``penstock environments``: the environments of penstock.toml."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.options import CONFIG_NAME, common_options, find_project, read_settings
from penstock.cli.output import print_json, print_table

if TYPE_CHECKING:
    from penstock.settings.settings_file import Values


@click.command(
    "environments",
    short_help="List the environments of penstock.toml.",
    epilog="""\b
Examples:
  penstock environments
  penstock environments --json""",
)
@common_options
def command(*, project_dir: Path | None, as_json: bool) -> None:
    """List the environments that --env can name, with what each overrides. Starts no Spark.

    A `*` marks the environment of this command. `default` is the settings outside of
    [environments]. An environment with a schema suffix has its own tables, and reads all others
    from the environment that `reads` names.
    """
    root = project_dir or find_project()
    found = list(_environments(root, read_settings(root).environment))
    if as_json:
        print_json({"environments": found})
        return
    rows = [
        (
            "*" if each["current"] else "",
            each["name"],
            each["schema_suffix"],
            each["reads"],
            ", ".join(each["overrides"]),
        )
        for each in found
    ]
    print_table(("", "environment", "schema suffix", "reads", "overrides"), rows)


def _environments(root: Path, current: str | None) -> Iterator[dict[str, Any]]:
    from penstock.settings.settings_file import DEFAULT_ENVIRONMENT, read_settings_file

    file = read_settings_file(root / CONFIG_NAME)
    yield _row(DEFAULT_ENVIRONMENT, {}, current)
    for name, values in file.environments.items():
        yield _row(name, values, current)


def _row(name: str, values: Values, current: str | None) -> dict[str, Any]:
    from penstock.settings.keys import ENVIRONMENT, SECTIONS
    from penstock.settings.settings_file import DEFAULT_ENVIRONMENT

    overridden = (key for key in values if not key.startswith(f"{ENVIRONMENT}."))
    tables = {key: values.get(f"{ENVIRONMENT}.{key}") for key in SECTIONS[ENVIRONMENT]}
    return {
        "name": name,
        "current": name == (current or DEFAULT_ENVIRONMENT),
        **{key: None if setting is None else setting.value for key, setting in tables.items()},
        # the sections of dotted keys: `lakes.main`, `run`
        "overrides": list(dict.fromkeys(key.rpartition(".")[0] for key in overridden)),
    }
