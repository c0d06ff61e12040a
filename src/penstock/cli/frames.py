"""A DataFrame on the screen: at most ``limit`` rows leave Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from penstock.cli.output import print_json, print_table
from penstock.lake.failures import explained

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def print_frame(frame: DataFrame, limit: int, *, as_json: bool) -> None:
    """A table, or ``{"columns": [...], "rows": [...], "more": bool}``.

    One row more than ``limit`` is asked for, to say honestly whether there are more. Raises
    QueryFailed: most of what Spark refuses it refuses only now.
    """
    with explained():
        rows = [tuple(row) for row in frame.limit(limit + 1).collect()]
    more, rows = len(rows) > limit, rows[:limit]
    if as_json:
        types = dict(frame.dtypes)
        columns = [{"name": name, "type": types[name]} for name in frame.columns]
        print_json({"columns": columns, "rows": rows, "more": more})
        return
    if not frame.columns:
        click.echo("done", err=True)
        return
    print_table(frame.columns, rows)
    if more:
        click.echo(f"(the first {limit} rows; --limit N for more)", err=True)
