"""The current versions of a history: the rows that tests look at, and the view ``<table>_current``.

The view is made with the table, in one commit, and made again only where it is not there
(seeds/materialization.md, "SCD2 history").
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.destinations.values import Rows
from penstock.engine.inputs.pinned_tables import Readable, table_name, types_of
from penstock.errors import DefinitionChanged
from penstock.model.definition.model import Model
from penstock.model.values.history import SUFFIX, History, current_view
from penstock.sql.identifiers import quote_identifier, quoted

if TYPE_CHECKING:
    from pyspark.sql.types import StructField

    from penstock.destinations.destination import StagedTable, Transaction
    from penstock.model.values.asset import TableName


def candidate_of_current(table: StagedTable, history: History) -> Readable:
    """The open versions of the table as it will be."""
    is_open = f"{quoted(history.valid_to)} IS NULL"
    return Readable(
        types_of(table.schema),
        lambda file_filter: Rows(table.to_df(file_filter).where(is_open)),
        lambda _: None,
    )


def stage_view(tx: Transaction, model: Model, *, begins: bool) -> None:
    """Make the view, unless it is there.

    Raises DefinitionChanged where its name is that of something else when the table ``begins``;
    from then on the name is the model's.
    """
    view = current_view(model.target, model.history)
    if view is None:
        return
    name, text = table_name(view), text_of(model)
    kind = tx.kind_of(name)
    there = tx.view(name) if kind == "view" else None
    if there is not None and text in {each.sql for each in (there.base, there.new) if each}:
        return
    if kind == "table" or (kind == "view" and begins):
        raise DefinitionChanged(
            f"{view} is a {kind}, and {model.name} keeps the current versions of {model.target} "
            f"under that name: the suffix {SUFFIX} is reserved for that",
            hint=f"drop the {kind}, or give it another name",
            location=model.place("target"),
        )
    said = f"the current versions of {model.target.qualified}"
    tx.create_view(name, text, or_replace=True, comment=said)


def text_of(model: Model) -> str:
    """The view's query, in SQL that DuckDB and Spark read alike but for the quotes."""
    history = model.history
    assert history is not None, "asked of others"
    assert history.is_current is not None, "only then there is a view"
    where = quote_identifier(history.is_current)
    return f"SELECT * FROM {table_name(model.target)} WHERE {where}"


def managed_fields(history: History) -> list[StructField]:
    """The columns that the engine writes, as Spark has them."""
    from pyspark.sql.types import (
        BooleanType,
        DateType,
        StructField,
        TimestampNTZType,
        TimestampType,
    )

    kinds = {"TIMESTAMP_NTZ": TimestampNTZType(), "TIMESTAMP": TimestampType(), "DATE": DateType()}
    kind = kinds[history.time_type]
    return [
        StructField(name, BooleanType() if name == history.is_current else kind)
        for name in history.managed
    ]


def drop_view(tx: Transaction, target: TableName, history: History | None) -> None:
    """Drop the view with its table."""
    view = current_view(target, history)
    if view is not None and tx.kind_of(table_name(view)) == "view":
        tx.drop_view(table_name(view))
