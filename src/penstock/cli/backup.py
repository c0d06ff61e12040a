"""``penstock backup``: a copy of a lake's catalog, without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.cli.options import common_options, lake_settings
from penstock.cli.output import EXIT_FAILED, counting, print_json, say

if TYPE_CHECKING:
    from penstock.lakes.recovery.backup import FileCheck

_SHOWN = 10  # missing files that are listed


@click.command(
    "backup",
    short_help="Copy the catalog of a lake to a file.",
    epilog="""\b
Examples:
  penstock backup backups/monday.bak
  penstock backup backups/monday.bak --lake main --check --json""",
)
@click.argument("target", type=click.Path(path_type=Path), metavar="FILE")
@click.option("--lake", metavar="NAME", help="A lake of penstock.toml [default: the only one].")
@click.option("--check", is_flag=True, help="Also check that every data file exists.")
@common_options
def command(
    target: Path, lake: str | None, check: bool, project_dir: Path | None, as_json: bool
) -> None:
    """Copy the catalog to FILE, in one state, whoever writes meanwhile.

    The catalog only: data files stay where they are, and a backup is of use as long as they do.
    So keep what expiry and cleanup would remove, or back the files up as well. With --check the
    exit code is 1 when a file is missing.
    """
    from penstock.lakes.catalog.catalog import Catalog
    from penstock.lakes.recovery.backup import backup

    name, wanted = lake_settings(project_dir, lake)
    opened = Catalog.open(wanted.catalog, read_only=True, metadata_schema=wanted.metadata_schema)
    with opened as catalog, counting(f"backup of {name}") as progress:
        made = backup(catalog, target, check=check, progress=progress)
    said = (
        f"{made.path}: lake {name} at snapshot {made.snapshot}, {made.size_bytes:,} bytes.\n"
        f"Data files are not in it; they stay in {made.data_path}"
    )
    conclude({"lake": name, "backup": made}, said, made.files, as_json=as_json)


def conclude(made: object, said: str, files: FileCheck | None, *, as_json: bool) -> None:
    """Print what `backup` or `restore` made; the exit code is 1 when a file is missing."""
    if as_json:
        print_json(made)
    else:
        say(said)
        _say_files(files)
    if files is not None and files.missing:
        click.get_current_context().exit(EXIT_FAILED)


def _say_files(files: FileCheck | None) -> None:
    """Print which data files are missing; nothing when they were not checked."""
    if files is None:
        return
    if not files.missing:
        say(f"Missing files: none of {files.files:,}.")
        return
    say(f"Missing files: {len(files.missing):,} of {files.files:,}:", err=True)
    for path in files.missing[:_SHOWN]:
        say(f"  {path}", err=True)
    if len(files.missing) > _SHOWN:
        say(f"  and {len(files.missing) - _SHOWN:,} more", err=True)
