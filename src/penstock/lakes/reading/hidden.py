"""Hidden columns of a table, under the names that DuckDB gives them.

A query reads them by name, and ``*`` leaves them out. DuckDB 1.5.5 has one more, ``file_index``,
which is not a property of a row: it counts the files that one query reads, after pruning.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from penstock.errors import ArgumentError, UnsupportedFeature
from penstock.lakes.format.naming import fold
from penstock.lakes.reading import scan
from penstock.spark.functions import fn
from penstock.sql.identifiers import quoted
from penstock.sql.tokens import NAME, WORD, loose_words, unquoted

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

    from penstock.lakes.format.schema import TableSchema

ROWID = "rowid"
FILENAME = "filename"
FILE_ROW_NUMBER = "file_row_number"
FILE_INDEX = "file_index"
COLUMNS = (ROWID, "snapshot_id", FILENAME, FILE_ROW_NUMBER)
NAMES = frozenset({*COLUMNS, FILE_INDEX})


def known(names: Collection[str]) -> frozenset[str]:
    """The names, folded. Raises ArgumentError for one that is not a hidden column."""
    folded = frozenset(map(fold, names))
    for name in sorted(folded.difference(COLUMNS)):
        raise ArgumentError(
            f"{name!r} is not a hidden column", hint=f"they are {', '.join(COLUMNS)}"
        )
    return folded


def read(spark: SparkSession, source: scan.Scan, names: Collection[str]) -> DataFrame:
    """The rows of a scan with these hidden columns after the table's own; those that it has as
    columns are these.
    """
    names = lacking(names, source.schema)
    places, paths = FILE_ROW_NUMBER in names, FILENAME in names
    rows = scan.read(spark, source, positions=places, row_ids=True, paths=paths)
    return rows.select(*map(quoted, source.schema.names), *columns(names))


def columns(names: Collection[str]) -> list[SparkColumn]:
    """These hidden columns, from those that a scan adds.

    As in DuckDB a row in the catalog has its row id for its place, and the name of the catalog's
    table for its file.
    """
    sources = {
        ROWID: [scan.ROW_ID],
        "snapshot_id": [scan.BEGIN],
        FILENAME: [scan.PATH],
        FILE_ROW_NUMBER: [scan.POSITION, scan.ROW_ID],
    }
    return [fn.coalesce(*sources[name]).alias(name) for name in COLUMNS if name in names]


def named_in(text: str, schema: TableSchema) -> frozenset[str]:
    """The hidden columns that an expression over the columns of one table names."""
    tokens = loose_words(text)
    after_dot = {at + 1 for at, token in enumerate(tokens) if token.text == "."}
    said = {
        fold(unquoted(token) if token.kind == NAME else token.text)
        for at, token in enumerate(tokens)
        if token.kind in {NAME, WORD} and at not in after_dot
    }
    return lacking(NAMES & said, schema)


def lacking(names: Collection[str], schema: TableSchema) -> frozenset[str]:
    """The names that no column of the table has."""
    return frozenset(name for name in names if schema.find(name) is None)


def refusals(names: Collection[str], changed: str | None = None) -> dict[str, UnsupportedFeature]:
    """Explain why hidden columns cannot be read, those that cannot. ``changed`` is the table's
    name where a transaction has changed it.
    """
    refused: dict[str, UnsupportedFeature] = {}
    for name in sorted(names):
        if name == FILE_INDEX:
            refused[name] = UnsupportedFeature(
                f"{name} is not supported: it counts the files that a query reads, so that each "
                "condition changes it",
                hint=f"use {FILENAME}, which tells files apart",
            )
        elif changed is not None:
            refused[name] = UnsupportedFeature(
                f"{name} of {changed}, which this transaction has changed, is known after COMMIT "
                "only",
                hint="COMMIT first, or read a snapshot: AT (VERSION => ...)",
            )
    return refused
