"""Name mappings: how the fields of files without field ids are found, by path.

Files that other tools wrote, and that were added before lakes had name mappings, have neither
field ids nor a mapping: their columns are found by the names that they had then. DuckDB
1.5.5 takes their columns by place, which comes to the same until a column is dropped
(`DuckLakeMultiFileReader::CreateMapping`, "legacy external file"). Whether a file lacks ids only
its footer tells, so only files that neither DuckDB nor Penstock has named are in question.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, select

from penstock.errors import UnsupportedFeature
from penstock.lake.catalog.database import metadata
from penstock.lake.catalog.database.rows import Record
from penstock.lake.catalog.inlined.columns import Schemas
from penstock.lake.catalog.work import Ids
from penstock.lake.format.files import DataFile, NameMapping, Table
from penstock.lake.format.schema import Column, TableSchema

_INNER_NAMES = {"list": ("list",), "map": ("key", "value")}


def load_mappings(connection: Connection, table_id: int) -> dict[int, NameMapping]:
    """All name mappings of a table, by id.

    Rows are numbered within their mapping and name their parent by that number; a list's child is
    called ``list``, a map's ``key`` and ``value``.
    """
    t = metadata.of(connection)
    m, n = t.column_mapping.c, t.name_mapping.c
    query = (
        select(
            m.mapping_id,
            m.type,
            n.column_id,
            n.source_name,
            n.target_field_id,
            n.parent_column,
            n.is_partition,
        )
        .join_from(t.column_mapping, t.name_mapping, m.mapping_id == n.mapping_id)
        .where(m.table_id == table_id)
        .order_by(m.mapping_id, n.column_id)
    )
    grouped: dict[int, list[Record]] = defaultdict(list)
    for row in connection.execute(query):
        grouped[row.mapping_id].append(row)
    return {key: _mapping(key, rows) for key, rows in grouped.items()}


def _mapping(mapping_id: int, rows: Sequence[Record]) -> NameMapping:
    for row in rows:
        if row.type != "map_by_name":
            raise UnsupportedFeature(
                f"name mapping {mapping_id} takes columns by {row.type!r}",
                hint="read the table with DuckDB, or rewrite it there",
            )
    by_number = {row.column_id: row for row in rows}

    def path(row: Record) -> tuple[str, ...]:
        parent = by_number.get(row.parent_column)
        return (*(path(parent) if parent is not None else ()), row.source_name)

    return NameMapping(
        mapping_id,
        {path(row): row.target_field_id for row in rows if not row.is_partition},
        {row.target_field_id: row.source_name for row in rows if row.is_partition},
    )


def mapping_for(connection: Connection, ids: Ids, table_id: int, schema: TableSchema) -> int:
    """The name mapping of the table's columns as they are now, made when there is none alike."""
    wanted = NameMapping(None, dict(mapping_paths(schema.columns)))
    return mappings_for(connection, ids, table_id, [wanted])[0]


def mappings_for(
    connection: Connection, ids: Ids, table_id: int, wanted: Sequence[NameMapping]
) -> list[int]:
    """Ids of these mappings, in their order; those that the table has not are made.

    Two are alike when they give the same names to the same fields, in whatever order.
    """
    known = {_content(one): key for key, one in load_mappings(connection, table_id).items()}
    found: list[int] = []
    for one in wanted:
        if _content(one) not in known:
            known[_content(one)] = _insert(connection, ids, table_id, one)
        found.append(known[_content(one)])
    return found


def _content(mapping: NameMapping) -> tuple[frozenset[Any], frozenset[Any]]:
    return frozenset(mapping.fields.items()), frozenset(mapping.partitions.items())


def _insert(connection: Connection, ids: Ids, table_id: int, mapping: NameMapping) -> int:
    mapping_id, wanted = ids.file(), mapping.fields
    connection.execute(
        metadata.column_mapping.insert().values(
            mapping_id=mapping_id, table_id=table_id, type="map_by_name"
        )
    )
    numbers = {path: number for number, path in enumerate(wanted)}
    connection.execute(
        metadata.name_mapping.insert(),
        [
            {
                "mapping_id": mapping_id,
                "column_id": number,
                "source_name": path[-1],
                "target_field_id": wanted[path],
                "parent_column": numbers.get(path[:-1]),
                "is_partition": False,
            }
            for path, number in numbers.items()
        ]
        + [
            {
                "mapping_id": mapping_id,
                "column_id": number,
                "source_name": name,
                "target_field_id": field_id,
                "parent_column": None,
                "is_partition": True,
            }
            for number, (field_id, name) in enumerate(mapping.partitions.items(), len(numbers))
        ],
    )
    return mapping_id


def mapping_paths(
    columns: Sequence[Column], parent: tuple[str, ...] = (), names: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], int]]:
    """Pairs of a field's path in the file and its id; a list's child is called ``list``."""
    for index, column in enumerate(columns):
        path = (*parent, names[index] if names else column.name)
        yield path, column.id or 0
        yield from mapping_paths(column.children, path, _INNER_NAMES.get(column.type, ()))


_NAMES = ("/ducklake-", "/penstock-")
_UUID = re.compile("/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}[/.]")  # Spark's writes are below one
_FIRST = -1_000_000_000  # no commit, and no transaction, numbers mappings from here


def mapped_by_history(
    connection: Connection, table: Table, files: Iterable[DataFile]
) -> tuple[list[DataFile], Mapping[int, NameMapping]]:
    """The files, those in question under mappings of their own, and these by id."""
    listed = list(files)
    odd = [file for file in listed if file.mapping_id is None and not _is_ours(file.path)]
    if not odd:
        return listed, {}
    schemas = Schemas(connection, table)
    found: dict[int, NameMapping] = {}
    for begin in {file.begin_snapshot or 0 for file in odd}:
        paths = dict(mapping_paths(schemas.in_force(begin).columns))
        found[_FIRST - begin] = NameMapping(_FIRST - begin, paths, unless_ids=True)
    ids = {file.id for file in odd}
    return [_mapped(file, found) if file.id in ids else file for file in listed], found


def _mapped(file: DataFile, mappings: Mapping[int, NameMapping]) -> DataFile:
    own = mappings[_FIRST - (file.begin_snapshot or 0)]
    # A copy of the file (`rollback`) is registered under it.
    return replace(file, mapping_id=own.id, mapping=replace(own, id=None, unless_ids=False))


def _is_ours(path: str) -> bool:
    return any(name in path for name in _NAMES) or _UUID.search(path) is not None
