"""What ``dbt docs generate`` shows, from the lake's catalog: columns, comments, rows and bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from dbt.adapters.penstock.types import type_name
from penstock.lakes.format.naming import fold
from penstock.lakes.lake import Lake
from penstock.sql.identifiers import quoted

if TYPE_CHECKING:
    import agate

    from dbt.adapters.penstock.relation import PenstockRelation

Wanted = Callable[[str, str], bool]  # by schema and name
_COLUMNS = (
    *("table_database", "table_schema", "table_name", "table_type", "table_comment"),
    *("table_owner", "column_name", "column_index", "column_type", "column_comment"),
)
_STATS = (
    ("rows", "Rows", "how many rows the table has"),
    ("bytes", "Bytes", "how many bytes its data files have"),
)
_PARTS = ("label", "value", "description", "include")


def table(lake: Lake, wanted: Wanted) -> agate.Table:
    """A row for each column of each table and view that is wanted."""
    from dbt_common.clients.agate_helper import table_from_data_flat

    names = [*_COLUMNS, *(f"stats:{stat}:{part}" for stat, *_ in _STATS for part in _PARTS)]
    rows = [dict(zip(names, row, strict=True)) for row in _rows(lake, wanted)]
    return table_from_data_flat(rows, names)


def _rows(lake: Lake, wanted: Wanted) -> Iterator[tuple[Any, ...]]:
    comments = {(view.schema_name, view.name): view.comment for view in lake.views()}
    entries = [(table.schema_name, table.name, "BASE TABLE") for table in lake.tables()]
    entries += [(schema, name, "VIEW") for schema, name in comments]
    for schema, name, kind in entries:
        if not wanted(schema, name):
            continue
        full = f"{quoted(schema)}.{quoted(name)}"
        is_view = kind == "VIEW"
        comment = comments[schema, name] if is_view else lake.table(full).describe().comment
        stats = _stats(None if is_view else _size(lake, schema, name))
        for index, column in enumerate(lake.sql(f"DESCRIBE {full}").collect()):
            about = (lake.name, schema, name, kind, comment, None)
            of = (column.column_name, index + 1, type_name(column.column_type), column.comment)
            yield (*about, *of, *stats)


def _size(lake: Lake, schema: str, name: str) -> tuple[int | None, int]:
    """How many rows a table has, and how many bytes its data files."""
    files = lake.list_files(f"{quoted(schema)}.{quoted(name)}")
    sizes = {file.data_file: file.data_file_size_bytes for file in files}
    rows = lake.catalog.count_rows(schema, name, lake.snapshots()[-1].id)
    return rows, sum(sizes.values())


def _stats(size: tuple[int | None, int] | None) -> tuple[Any, ...]:
    """The parts of each figure; a view has none."""
    parts: list[Any] = []
    for (_, label, description), value in zip(_STATS, size or (None, None), strict=True):
        parts += [label, value, description, value is not None]
    return tuple(parts)


def of_relation(lake: Lake, relation: PenstockRelation) -> Any:
    """The entry of one relation in the catalog of dbt, or None."""
    from dbt_common.contracts.metadata import CatalogTable, ColumnMetadata, StatsItem, TableMetadata

    schema, name = fold(relation.schema or ""), fold(relation.identifier or "")
    rows = list(_rows(lake, lambda s, n: (fold(s), fold(n)) == (schema, name)))
    if not rows:
        return None
    database, schema_name, table_name, kind, comment, owner = rows[0][:6]
    about = TableMetadata(
        type=kind,
        schema=schema_name,
        name=table_name,
        database=database,
        comment=comment,
        owner=owner,
    )
    columns = {
        row[6]: ColumnMetadata(name=row[6], index=row[7], type=row[8], comment=row[9])
        for row in rows
    }
    stats = {}
    for at, (key, label, description) in enumerate(_STATS):
        value = rows[0][len(_COLUMNS) + at * len(_PARTS) + 1]
        if value is not None:
            stats[key] = StatsItem(
                id=key, label=label, value=value, include=True, description=description
            )
    return CatalogTable(metadata=about, columns=columns, stats=stats)
