"""``penstock import dbt``: a project of another tool's as a project of Penstock's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.cli.options import debug_option
from penstock.cli.output import print_json, say
from penstock.errors import ArgumentError
from penstock.rendering.text import count

if TYPE_CHECKING:
    from penstock.dbt_import.project import Imported


@click.group(
    "import",
    short_help="Import a project of another tool.",
    epilog="""\b
Examples:
  penstock import dbt ../shop --into shop""",
)
def command() -> None:
    """Write a project that makes the tables of another tool's project."""


@command.command(
    "dbt",
    short_help="Import a dbt project, from its manifest.",
    epilog="""\b
Examples:
  penstock import dbt ../shop --into shop
  penstock import dbt ../shop/target/manifest.json --into shop --dry-run --json""",
)
@click.argument("directory", type=click.Path(path_type=Path), metavar="DIR")
@click.option(
    "--into",
    type=click.Path(path_type=Path),
    default=Path(),
    metavar="DIR",
    help="Write the project there (default: the current directory).",
)
@click.option("--dry-run", is_flag=True, help="Write nothing; say what would be written.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
@debug_option
def dbt(directory: Path, into: Path, *, dry_run: bool, as_json: bool) -> None:
    """Write the models, seeds, snapshots, tests and unit tests of the dbt project in DIR.

    They are read from target/manifest.json, which `dbt compile` of any version writes. Compile
    before the tables exist, or into a schema without them: then queries of incremental models read
    all their inputs. What is not taken, or means something else, is listed. Files that exist are
    never overwritten.
    """
    from penstock.dbt_import.manifest import read_manifest
    from penstock.dbt_import.project import imported

    found = imported(read_manifest(directory))
    if not dry_run:
        _write(found, into)
    if as_json:
        print_json(
            {
                "project": into.absolute(),
                "written": not dry_run,
                "files": sorted(found.files),
                "left": [{"what": left.what, "reason": left.reason} for left in found.left],
                "notes": [{"what": note.what, "reason": note.reason} for note in found.notes],
            }
        )
        return
    _say(found, into, dry_run=dry_run)


def _write(found: Imported, into: Path) -> None:
    """Write the files, or none where one of them exists."""
    taken = [path for path in sorted(found.files) if (into / path).exists()]
    if taken:
        more = f", and {count(len(taken) - 1, 'other file')} of the project" if taken[1:] else ""
        raise ArgumentError(
            f"{into / taken[0]} exists{more}", hint="import into an empty directory: --into DIR"
        )
    for path in found.files:
        if not (into / path).resolve().is_relative_to(into.resolve()):
            raise ArgumentError(
                f"{path} would be written outside of {into}",
                hint="correct the schema or the name in the manifest",
            )
    for path, content in found.files.items():
        target = into / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content, encoding="utf-8")


def _say(found: Imported, into: Path, *, dry_run: bool) -> None:
    for title, entries in (("not taken", found.left), ("taken, with a difference", found.notes)):
        if entries:
            say(f"{title}:")
            for entry in entries:
                say(f"  {entry.what}: {entry.reason}")
    verb = "would write" if dry_run else "wrote"
    say(f"{verb} {count(len(found.files), 'file')} in {into}")
    if not dry_run:
        say("Next:")
        if into != Path():
            say(f"  cd {into}")
        say("  penstock check")
        say("  penstock run")
