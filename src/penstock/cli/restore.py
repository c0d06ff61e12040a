"""``penstock restore``: restore a catalog from a backup, without Spark."""

from __future__ import annotations

from pathlib import Path

import click

from penstock.cli.backup import conclude
from penstock.cli.options import common_options, lake_settings
from penstock.cli.output import clock, counting


@click.command(
    "restore",
    short_help="Restore the catalog of a lake from a backup.",
    epilog="""\b
Examples:
  penstock restore backups/monday.bak
  penstock restore backups/monday.bak --to sqlite:lake/monday.sqlite --check
  penstock restore backups/monday.bak --to "postgres:dbname=lake host=db" """,
)
@click.argument("source", type=click.Path(path_type=Path), metavar="FILE")
@click.option("--lake", metavar="NAME", help="A lake of penstock.toml [default: the only one].")
@click.option(
    "--to",
    "uri",
    metavar="CATALOG",
    help="Restore to this catalog instead, written as in penstock.toml.",
)
@click.option("--metadata-schema", metavar="NAME", help="With --to: the schema of its tables.")
@click.option(
    "--data-path", metavar="DIR", help="The directory of the data files, if they were moved."
)
@click.option("--check", is_flag=True, help="Check that every data file exists.")
@common_options
def command(
    source: Path,
    *,
    lake: str | None,
    uri: str | None,
    metadata_schema: str | None,
    data_path: str | None,
    check: bool,
    project_dir: Path | None,
    as_json: bool,
) -> None:
    """Make a catalog from FILE, on the kind of database that it is a backup of or on another.

    There must be no catalog yet where it goes: move the old one away first. Data files are looked
    for where they were. What was committed after the backup is not in it, though its files are
    there still. With --check the exit code is 1 when a file is missing.
    """
    from penstock.lakes.recovery.backup import restore

    if uri is None:
        _, wanted = lake_settings(project_dir, lake)
        uri, metadata_schema = wanted.catalog, metadata_schema or wanted.metadata_schema
    with counting("restore") as progress:
        made = restore(
            source,
            uri,
            metadata_schema=metadata_schema,
            data_path=data_path,
            check=check,
            progress=progress,
        )
    said = (
        f"{made.catalog} is at snapshot {made.snapshot} of {clock(made.snapshot_time)}.\n"
        f"Its data files are in {made.data_path}"
    )
    conclude(made, said, made.files, as_json=as_json)
