"""A VIEW model: its query, kept as a view of the lake, which DuckDB reads where it can.

The text is kept in the script's dialect; one in Spark's is kept in DuckDB's where that means the
same (`penstock.lakes.statements.create_view`). No rows are read or written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.destinations.values import Rows
from penstock.engine.inputs.pinned_tables import Readable, table_name
from penstock.engine.inputs.resolve import query_start
from penstock.engine.state.records import SliceRecord
from penstock.errors import PenstockError, SchemaMismatch
from penstock.lakes.reading.conversions.spark_types import schema_of
from penstock.model.definition.model import Model
from penstock.model.script.sources import QuerySource, TableSource
from penstock.model.values.asset import ColumnType
from penstock.spark.struct_casts import reordered
from penstock.sql.dialect import DUCKDB
from penstock.sql.identifiers import fold, quote_identifier
from penstock.sql.types import spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.destinations.destination import Transaction
    from penstock.destinations.values import TableSchema


_ONLY_SPARK = (
    "DuckDB cannot read this view: its query is not known to mean the same there; "
    "write it with `dialect duckdb` if DuckDB is to read it"
)


def stage(
    tx: Transaction, model: Model, df: DataFrame, known: SliceRecord | None
) -> tuple[TableSchema, str | None]:
    """Stage the view, unless it is there as the last run made it.

    ``df`` are its rows. Returns its columns, and a notice of who cannot read it. Raises
    UnsupportedFeature and QueryFailed for what no view can have.
    """
    name = table_name(model.target)
    if _is_there(tx, name, model, known):
        return schema_of(df), None
    tx.create_schema(model.target.schema)
    try:
        _create(tx, name, model, df)
    except PenstockError as error:
        error.location = error.location or query_start(model.query)
        raise
    made = tx.view(name)
    if made is None or made.new is None or made.new.dialect == DUCKDB:
        return schema_of(df), None
    return schema_of(df), _ONLY_SPARK


def _is_there(tx: Transaction, name: str, model: Model, known: SliceRecord | None) -> bool:
    view = tx.view(name)
    return (
        view is not None
        and view.base is not None
        and known is not None
        and known.definition_hash == model.definition_hash
        and known.made_in == view.base.begin_snapshot
        and view.base.comment == model.about.description
    )


def _create(tx: Transaction, name: str, model: Model, df: DataFrame) -> None:
    query, comment = model.query, model.about.description
    names: dict[QuerySource, str] = {
        source: table_name(source.table)
        for source in query.sources
        if isinstance(source, TableSource)
    }
    text = _cast(query.render_statements(names)[-1].sql, model, df)
    if query.dialect == DUCKDB:
        tx.create_view(name, text, or_replace=True, comment=comment)
        return
    tx.sql(f"CREATE OR REPLACE VIEW {name} AS {text}")
    if comment is not None:
        tx.comment_on_view(name, comment)


def _cast(text: str, model: Model, df: DataFrame) -> str:
    """The query with its declared columns, in their order and cast where their types are others."""
    types, made = dict(df.dtypes), {fold(name): name for name in df.columns}
    names = [(made[fold(column.name)], column) for column in model.columns]
    others = [_spark(column) != types[name] for name, column in names]
    _refuse_reordered(df, model)
    if not any(others) and [name for name, _ in names] in ([], df.columns):
        return text
    mark = '"' if model.query.dialect == DUCKDB else "`"
    items = []
    for (name, column), other in zip(names, others, strict=True):
        value = quote_identifier(name, mark=mark)
        kind = column.type if column.dialect == DUCKDB else _spark(column)
        cast = f"CAST({value} AS {kind})" if other else value
        items.append(f"{cast} AS {quote_identifier(column.name, mark=mark)}")
    return f"SELECT {', '.join(items)} FROM ({text}) AS query"


def _refuse_reordered(df: DataFrame, model: Model) -> None:
    """Raise SchemaMismatch for a struct that the text of the view would cast by position."""
    odd = reordered(df, {column.name: _spark(column) for column in model.columns})
    if odd:
        column = next(column for column in model.columns if column.name == odd[0])
        raise SchemaMismatch(
            f"column {odd[0]} is declared with the fields of its struct in another order",
            hint=f"the query makes {dict(df.dtypes).get(odd[0], 'another')}: declare that order",
            location=column.location,
        )


def _spark(column: ColumnType) -> str:
    return spark_type(column.type, column.dialect).lower()


def candidate(df: DataFrame) -> Readable:
    """The rows that the view will give."""
    return Readable(dict(df.dtypes), lambda _: Rows(df), lambda _: None)
