"""Altering the columns of a table, as a function from one schema to the next.

A path names a column or a field inside one: the names through structs, with ``element`` for a
list's element and ``key`` or ``value`` for a map's. Letter case does not count. New columns have no
id yet; the transaction numbers them. The rules are the format's ("Schema Evolution"), and further
refusals of the real extension: a table needs a column, and a struct a field, as it could not read
the table any more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from penstock.errors import ColumnNotFound, SchemaMismatch, UnsupportedFeature
from penstock.lakes.format.naming import fold
from penstock.lakes.format.schema import Column, TableSchema, type_text
from penstock.lakes.reading.conversions.widening import can_become, can_become_text

Path = Sequence[str]
Columns = tuple[Column, ...]


def add_column(
    schema: TableSchema, into: Path, column: Column, *, if_not_exists: bool = False
) -> TableSchema:
    """``column`` added at the end of the table (``into`` is ``()``) or of the struct at ``into``.

    Existing rows get its default. Raises SchemaMismatch when a column of this name exists.
    """
    new = replace(column, initial_default=column.default) if _is_value(column) else column
    _refuse_required(new)

    def add(siblings: Columns) -> Columns:
        if _find(siblings, column.name) is None:
            return (*siblings, _without_ids(new))
        if if_not_exists:
            return siblings
        raise SchemaMismatch(
            f"there is a column {_text((*into, column.name))!r} already",
            hint="give it another name, or leave it out",
            data={"column": _text((*into, column.name))},
        )

    if not into:
        return TableSchema(add(schema.columns))
    return _changed(schema, into, lambda parent: replace(parent, children=add(_fields(parent))))


def drop_column(schema: TableSchema, path: Path, *, if_exists: bool = False) -> TableSchema:
    """Without the column at ``path``. Files and older snapshots still have it."""
    if if_exists and find(schema, path) is None:
        return schema
    gone = column_at(schema, path)

    def drop(siblings: Columns) -> Columns:
        if len(siblings) == 1:
            of = f"struct {_text(path[:-1])!r}" if path[1:] else "the table"
            raise SchemaMismatch(
                f"{_text(path)!r} is the only column of {of}, which cannot be without one",
                hint="add another before, or drop the whole",
                data={"column": _text(path)},
            )
        return tuple(sibling for sibling in siblings if sibling is not gone)

    return _siblings(schema, path, drop)


def rename_column(schema: TableSchema, path: Path, new_name: str) -> TableSchema:
    """The column at ``path`` under another name, with its values, id and position."""
    old = column_at(schema, path)

    def rename(siblings: Columns) -> Columns:
        taken = _find(siblings, new_name)
        if taken is not None and taken is not old:
            raise SchemaMismatch(
                f"there is a column {_text((*path[:-1], new_name))!r} already",
                hint="give it another name",
                data={"column": _text((*path[:-1], new_name))},
            )
        return tuple(
            replace(sibling, name=new_name) if sibling is old else sibling for sibling in siblings
        )

    return _siblings(schema, path, rename)


def set_type(schema: TableSchema, path: Path, new: Column) -> TableSchema:
    """The column at ``path`` with the type of ``new``; nothing else of ``new`` counts.

    A struct takes the fields that ``new`` has, matched by name; fields it lacks are dropped.
    Raises UnsupportedFeature for what is not a lossless promotion, naming those that are.
    """
    return _changed(schema, path, lambda old: _promoted(old, new, tuple(path)))


def set_default(
    schema: TableSchema, path: Path, default: str | None, kind: str = "literal"
) -> TableSchema:
    """The value that later inserts use where none is given; ``None`` for NULL.

    ``default`` is a value as DuckDB's text, or with kind ``expression`` DuckDB's SQL.
    """

    def change(column: Column) -> Column:
        if column.children and default is not None:
            raise UnsupportedFeature(
                f"column {_text(path)!r} is a {column.type}, which has no default but NULL",
                hint="give the value in each INSERT",
                data={"column": _text(path)},
            )
        return replace(column, default=default, default_kind=kind)

    return _changed(schema, path, change)


def set_nullable(schema: TableSchema, path: Path, nullable: bool) -> TableSchema:
    """NOT NULL set or dropped. The transaction checks whether there are NULLs."""
    if path[1:] and not nullable:
        raise UnsupportedFeature(
            f"{_text(path)!r} is inside a column, where NOT NULL is not supported",
            hint=f"set it on {path[0]!r}",
            data={"column": _text(path)},
        )
    return _changed(schema, path, lambda column: replace(column, nullable=nullable))


def find(schema: TableSchema, path: Path) -> Column | None:
    """The column at ``path``, or ``None``."""
    siblings, column = schema.columns, None
    for name in path:
        column = _find(siblings, name)
        if column is None:
            return None
        siblings = column.children
    return column


def column_at(schema: TableSchema, path: Path) -> Column:
    """The column at ``path``. Raises ColumnNotFound naming the columns that exist."""
    siblings = schema.columns
    for depth, name in enumerate(path):
        column = _find(siblings, name)
        if column is None:
            raise ColumnNotFound(
                f"column {_text(path[: depth + 1])!r} does not exist",
                hint=f"there are {', '.join(near.name for near in siblings) or 'none inside it'}",
                data={"column": _text(path[: depth + 1])},
            )
        if depth + 1 == len(path):
            return column
        siblings = column.children
    raise ColumnNotFound("a path to a column needs a name", hint="name the column")


def _changed(schema: TableSchema, path: Path, change: Callable[[Column], Column]) -> TableSchema:
    old = column_at(schema, path)
    return _beside(schema, path, lambda all_: tuple(change(c) if c is old else c for c in all_))


def _siblings(schema: TableSchema, path: Path, change: Callable[[Columns], Columns]) -> TableSchema:
    """`_beside` where names and number of columns may change."""
    if len(path) > 1:
        _fields(column_at(schema, path[:-1]))
    return _beside(schema, path, change)


def _beside(schema: TableSchema, path: Path, change: Callable[[Columns], Columns]) -> TableSchema:
    """``schema`` with the columns beside ``path``, itself among them, changed."""
    if len(path) == 1:
        return TableSchema(change(schema.columns))
    return _changed(
        schema, path[:-1], lambda parent: replace(parent, children=change(parent.children))
    )


def _fields(parent: Column) -> Columns:
    if parent.type != "struct":
        inside = " or ".join(child.name for child in parent.children)
        raise UnsupportedFeature(
            f"column {parent.name!r} is {type_text(parent)}, whose fields are fixed",
            hint=f"name what is inside it: {inside}" if inside else "only a struct has fields",
            data={"column": parent.name},
        )
    return parent.children


def _promoted(old: Column, new: Column, path: tuple[str, ...]) -> Column:
    if old.type == new.type and old.type != "struct":
        pairs = zip(old.children, new.children, strict=True)
        inside = tuple(_promoted(a, b, (*path, a.name)) for a, b in pairs)
        return replace(old, children=inside)
    if old.type == new.type:
        return replace(old, children=_fields_of(old, new, path))
    if not (old.children or new.children) and can_become(old.type, new.type):
        _refuse_moved_default(old, new.type, path)
        return replace(old, type=new.type)
    allowed = can_become_text(old.type)
    raise UnsupportedFeature(
        f"column {_text(path)!r} is {type_text(old)} and cannot become {type_text(new)}",
        hint=(
            f"without loss it can become {allowed}"
            if allowed
            else f"no type is wider than {type_text(old)} in the format: add a column, fill it, "
            "drop this one"
        ),
        data={"column": _text(path), "old": type_text(old), "new": type_text(new)},
    )


def _refuse_moved_default(old: Column, new: str, path: tuple[str, ...]) -> None:
    """Refuse a default without a zone: its meaning would depend on the reader's zone."""
    default = old.initial_default if old.initial_default is not None else old.default
    if new == "timestamptz" and default is not None:
        raise UnsupportedFeature(
            f"column {_text(path)!r} has the default {default!r}, which says no time zone, and "
            f"cannot become {new}",
            hint="add a column, fill it, drop this one",
            data={"column": _text(path), "old": old.type, "new": new},
        )


def _fields_of(old: Column, new: Column, path: tuple[str, ...]) -> Columns:
    remaining = [
        _promoted(child, wanted, (*path, child.name))
        for child in old.children
        if (wanted := _find(new.children, child.name)) is not None
    ]
    added = [
        _without_ids(child) for child in new.children if _find(old.children, child.name) is None
    ]
    if not (remaining or added):
        raise SchemaMismatch(f"struct {_text(path)!r} needs a field", hint="leave it one")
    return (*remaining, *added)


def _is_value(column: Column) -> bool:
    """Refuse a default that is not a value, as existing rows need a value."""
    if column.default is None:
        return False
    if column.default_kind == "literal" and not column.children:
        return True
    raise UnsupportedFeature(
        f"column {column.name!r} cannot be added with the default {column.default}, "
        "which is not a plain value",
        hint="add the column without it, then set the default, which new rows get",
        data={"column": column.name, "default": column.default},
    )


def _refuse_required(column: Column) -> None:
    if not column.nullable and column.initial_default is None:
        raise UnsupportedFeature(
            f"column {column.name!r} cannot be added as NOT NULL without a default: "
            "the rows there are would have none",
            hint="give it a default, or add it, fill it, and set NOT NULL",
            data={"column": column.name},
        )


def _without_ids(column: Column) -> Column:
    return replace(column, id=None, children=tuple(map(_without_ids, column.children)))


def _find(siblings: Sequence[Column], name: str) -> Column | None:
    folded = fold(name)
    return next((sibling for sibling in siblings if fold(sibling.name) == folded), None)


def _text(path: Sequence[str]) -> str:
    return ".".join(path)
