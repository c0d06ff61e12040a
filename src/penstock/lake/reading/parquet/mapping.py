"""Name mappings: reading files that carry no field ids by the names their columns have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from penstock.errors import UnsupportedFeature
from penstock.lake.format.files import NameMapping
from penstock.lake.format.naming import fold
from penstock.lake.format.schema import Column, TableSchema

# Names that a mapping gives to the children of lists and maps, which have none in a schema.
_UNNAMED = {"list": ("list",), "map": ("key", "value")}


def in_force(
    mapping: NameMapping | None,
    schema: TableSchema,
    path: str,
    *,
    has_ids: bool,
    names: Iterable[str],
) -> NameMapping | None:
    """The mapping by which the file at ``path`` is read, whose top-level columns are ``names``.

    Raises UnsupportedFeature where the names that columns had are no longer on record.
    """
    if mapping is None or not mapping.unless_ids:
        return mapping
    if has_ids:
        return None
    known = {fold(field[0]) for field in mapping.fields}
    unknown = [name for name in names if fold(name) not in known]
    mapped = set(mapping.fields.values())
    if unknown and any(column.id not in mapped for column in schema.columns):
        raise UnsupportedFeature(
            f"{path} has no field ids and no name mapping, and which column its {unknown[0]!r} is "
            "is no longer on record",
            hint="read the table with DuckDB, and write it anew there",
            data={"path": path, "columns": unknown},
        )
    return mapping


def by_names(schema: TableSchema, mapping: NameMapping) -> TableSchema:
    """``schema`` with each column called what it is called in the files of this mapping.

    A column that the mapping does not know is not in those files: its stand-in is a name that no
    file has, so that it reads as NULL.
    """
    sources = {field_id: path for path, field_id in mapping.fields.items()}
    return TableSchema(tuple(_renamed(column, sources) for column in schema.columns))


def by_ids(schema: TableSchema) -> TableSchema:
    """``schema`` with names that no file has, so that Spark finds its fields by their ids alone.

    Spark finds values by id, but takes the type to read them as from the requested field that is
    called what the file's is, which may be another since columns were renamed (measured, 4.3).
    """
    return TableSchema(tuple(_by_id(column) for column in schema.columns))


def _by_id(column: Column) -> Column:
    children = tuple(_by_id(child) for child in column.children)
    if column.type in _UNNAMED:
        inside = zip(children, column.children, strict=True)
        children = tuple(replace(child, name=old.name) for child, old in inside)
    return replace(column, name=f"_penstock_{column.id}", children=children)


def folded_paths(mapping: NameMapping) -> Mapping[tuple[str, ...], int]:
    """The ids of the mapping's fields by their paths, letter case aside."""
    return {tuple(fold(name) for name in path): found for path, found in mapping.fields.items()}


def _renamed(column: Column, sources: dict[int, tuple[str, ...]]) -> Column:
    path = None if column.id is None else sources.get(column.id)
    name = path[-1] if path else f"_penstock_absent_{column.id}"
    if column.type in _UNNAMED:
        children = tuple(_inside(child, sources) for child in column.children)
    else:
        children = tuple(_renamed(child, sources) for child in column.children)
    return replace(column, name=name, children=children)


def _inside(child: Column, sources: dict[int, tuple[str, ...]]) -> Column:
    """An element, key or value: Spark finds it by its place; only what is inside has names."""
    renamed = _renamed(child, sources)
    return replace(renamed, name=child.name)
