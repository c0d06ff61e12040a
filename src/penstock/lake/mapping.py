"""Name mappings: reading files that carry no field ids by the names their columns have."""

from __future__ import annotations

from dataclasses import replace

from penstock.errors import UnsupportedFeature
from penstock.lake.files import NameMapping
from penstock.lake.schema import Column, TableSchema

# Names that a mapping gives to the children of lists and maps, which have none in a schema.
_UNNAMED = {"list": ("list",), "map": ("key", "value")}


def by_names(schema: TableSchema, mapping: NameMapping, table: str) -> TableSchema:
    """``schema`` with each column called what it is called in the files of this mapping.

    A column that the mapping does not know is not in those files: its stand-in is a name that no
    file has, so that it reads as NULL.
    """
    sources = {field_id: path for path, field_id in mapping.fields.items()}
    return TableSchema(tuple(_renamed(column, sources, table) for column in schema.columns))


def _renamed(column: Column, sources: dict[int, tuple[str, ...]], table: str) -> Column:
    path = None if column.id is None else sources.get(column.id)
    name = path[-1] if path else f"_penstock_absent_{column.id}"
    if path is None and column.initial_default is not None:
        raise UnsupportedFeature(
            f"{table} has files added by name that lack column {column.name!r}, "
            "which has a default",
            data={"table": table, "column": column.name},
        )
    if column.type in _UNNAMED:
        children = tuple(_inside(child, sources, table) for child in column.children)
    else:
        children = tuple(_renamed(child, sources, table) for child in column.children)
    return replace(column, name=name, children=children)


def _inside(child: Column, sources: dict[int, tuple[str, ...]], table: str) -> Column:
    """An element, key or value: Spark finds it by its place; only what is inside has names."""
    renamed = _renamed(child, sources, table)
    return replace(renamed, name=child.name)
