"""``penstock maintain``: the maintenance of a lake, without Spark unless it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.options import common_options, find_project, lake_settings, read_settings
from penstock.cli.output import print_json, print_table, say
from penstock.errors import ArgumentError
from penstock.rendering.text import count

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.lakes.lake import Lake
    from penstock.lakes.maintenance.calls import Done


@dataclass(frozen=True, slots=True)
class _On:
    """The options of every subcommand: which lake, of which project, and how to print."""

    lake: str | None
    project_dir: Path | None
    as_json: bool


def _opened(on: _On, *, spark: bool = False) -> Lake:
    from penstock.lakes.lake import Lake

    _, wanted = lake_settings(on.project_dir, on.lake)

    def session() -> SparkSession:
        from penstock.engine.session.spark import start_session

        settings = read_settings(on.project_dir or find_project())
        return start_session(settings.spark, settings.name)

    return Lake.attach(
        wanted.catalog,
        spark=session if spark else None,
        data_path=wanted.data_path,
        override_data_path=wanted.override_data_path,
        metadata_schema=wanted.metadata_schema,
        storage=wanted.storage or None,
        create_if_not_exists=False,
    )


def _shared(function: Callable[..., None]) -> Callable[..., None]:
    """Adds the options of every subcommand, which receives them as one value."""

    @wraps(function)
    def bundled(
        lake: str | None, project_dir: Path | None, as_json: bool, **arguments: Any
    ) -> None:
        function(_On(lake, project_dir, as_json), **arguments)

    option = click.option(
        "--lake", metavar="NAME", help="A lake of penstock.toml [default: the only one]."
    )
    return option(common_options(bundled))


_dry_run = click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
_table = click.option("--table", metavar="NAME", help="This table only [default: all].")
_schema = click.option("--schema", metavar="NAME", help="The tables of this schema only.")
_spark = click.option(
    "--spark", is_flag=True, help="Let Spark write large tables; it starts only if there are any."
)
_older_than = click.option(
    "--older-than", metavar="AGE|TIME", help="Such as '7 days', or 2026-11-01T00:00:00+00:00."
)
_every_age = click.option(
    "--cleanup-all",
    is_flag=True,
    help="Remove files of any age. Only while nothing writes to the lake.",
)


@click.group(
    "maintain",
    short_help="Merge, expire and clean up the files of a lake.",
    invoke_without_command=True,
    epilog="""\b
Examples:
  penstock maintain --all
  penstock maintain --all --table main.orders --dry-run
  penstock maintain merge-adjacent-files --table main.orders
  penstock maintain expire-snapshots --older-than "30 days"
  penstock maintain cleanup-old-files --older-than "7 days" --json""",
)
@click.option(
    "--all", "everything", is_flag=True, help="Run all functions, as the options of the lake say."
)
@_table
@_schema
@_dry_run
@_spark
@_shared
@click.pass_context
def command(
    ctx: click.Context, on: _On, /, everything: bool, spark: bool, **arguments: Any
) -> None:
    """Maintain a lake: each function by its name, or with --all what CHECKPOINT does.

    With --all snapshots expire by the lake's option expire_older_than (none without it), and files
    are removed by delete_older_than, or after two days. Of one table only its files are compacted.
    """
    if ctx.invoked_subcommand is not None:
        if everything:
            raise ArgumentError("--all does not go with a function", hint="give one of the two")
        return
    if not everything and on.as_json:
        raise click.UsageError("name a function, or give --all")
    if not everything:
        click.echo(ctx.get_help())
        ctx.exit(2)
    from penstock.lakes.maintenance.calls import run_checkpoint as checkpoint

    say = None if on.as_json else _say
    with _opened(on, spark=spark) as lake:
        done = checkpoint(lake, on_done=say, **arguments)
    if on.as_json:
        print_json({task.name: task.rows for task in done})


def _say(task: Done) -> None:
    say(f"{task.name}: {_summary(task.rows)}")


def _summary(rows: Sequence[Any]) -> str:
    if rows and hasattr(rows[0], "files_processed"):
        went = count(sum(row.files_processed for row in rows), "file")
        return f"{went} became {sum(row.files_created for row in rows):,}"
    left = sum(getattr(row, "left", None) is not None for row in rows)
    done = f"{len(rows) - left:,}" if len(rows) > left else "nothing to do"
    return f"{done} ({left:,} left)" if left else done


def _run(name: str, on: _On, arguments: Mapping[str, Any], *, spark: bool = False) -> None:
    from penstock.lakes.maintenance.calls import CALLS

    call = CALLS[name]
    with _opened(on, spark=spark) as lake:
        rows = call.function(lake, **arguments)
    if on.as_json:
        print_json({name: rows})
        return
    columns = [field.name for field in fields(call.returns)]
    listed = [[getattr(row, column) for column in columns] for row in rows]
    print_table(columns, listed, empty="Nothing to do.")


def _moment(text: str | None) -> datetime | None:
    """An age before now, or a time with its zone."""
    from datetime import UTC

    from penstock.lakes.format.values.duck_text import parse_interval

    if text is None:
        return None
    age = parse_interval(text)
    if age is not None:
        return age.before(datetime.now(UTC))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ArgumentError(
            f"--older-than does not take {text!r}",
            hint="give an age such as '7 days', or a time such as 2026-11-01T00:00:00+00:00",
        ) from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


@command.command("flush-inlined-data", short_help="Write inlined rows to data files.")
@_table
@_schema
@_shared
def _flush(on: _On, **arguments: Any) -> None:
    """Flush inlined rows, which the catalog holds, to data files; history stays."""
    _run("flush_inlined_data", on, arguments)


@command.command("merge-adjacent-files", short_help="Merge small files.")
@click.option(
    "--max-compacted-files", type=int, help="Write at most this many new files of a table."
)
@click.option("--min-file-size", type=int, metavar="BYTES", help="Skip smaller files.")
@click.option(
    "--max-file-size", type=int, metavar="BYTES", help="Skip files of this size and larger."
)
@_table
@_schema
@_dry_run
@_spark
@_shared
def _merge(on: _On, spark: bool, **arguments: Any) -> None:
    """Merge files of one partition; time travel, row ids and the feed of changes stay."""
    _run("merge_adjacent_files", on, arguments, spark=spark)


@command.command("rewrite-data-files", short_help="Rewrite files with many deleted rows.")
@click.option("--delete-threshold", type=float, metavar="SHARE", help="0 to 1 [default: 0.95].")
@_table
@_schema
@_dry_run
@_spark
@_shared
def _rewrite(on: _On, spark: bool, **arguments: Any) -> None:
    """Rewrite files of which a share of the rows or more is deleted."""
    _run("rewrite_data_files", on, arguments, spark=spark)


@command.command("expire-snapshots", short_help="Expire snapshots, never the latest.")
@click.option(
    "--version",
    "versions",
    type=int,
    multiple=True,
    help="The id of a snapshot; may be given several times.",
)
@_older_than
@_dry_run
@_shared
def _expire(on: _On, versions: tuple[int, ...], **arguments: Any) -> None:
    """Expire snapshots; what only they could see is scheduled for cleanup-old-files."""
    options = {
        "versions": versions or None,
        "older_than": _moment(arguments["older_than"]),
        "dry_run": arguments["dry_run"],
    }
    _run("expire_snapshots", on, options)


@command.command("cleanup-old-files", short_help="Remove files that are no longer needed.")
@_older_than
@_every_age
@click.option(
    "--outside-data-path",
    is_flag=True,
    help="Also remove Parquet files that were added from outside the data path.",
)
@_dry_run
@_shared
def _cleanup(on: _On, older_than: str | None, **arguments: Any) -> None:
    """Remove files that were merged, rewritten or expired [default: two days ago or more]."""
    _run("cleanup_old_files", on, {"older_than": _moment(older_than), **arguments})


@command.command(
    "delete-orphaned-files", short_help="Remove files that the catalog does not reference."
)
@_older_than
@_every_age
@_dry_run
@_shared
def _orphans(on: _On, older_than: str | None, **arguments: Any) -> None:
    """Remove what killed or rolled back writes left [default: two days old or more]."""
    _run("delete_orphaned_files", on, {"older_than": _moment(older_than), **arguments})
