"""Table schemas (``ducklake_column``): evolution, promotion, and field ids, which are assigned to
columns in order, parents first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from penstock.errors import SchemaMismatch
from penstock.lakes.format.naming import fold


@dataclass(frozen=True, slots=True)
class Column:
    """One column or nested field: ``Column("price", "decimal(10,2)", nullable=False)``.

    ``type`` is the format's text (``int32``, ``decimal(10,2)``, ``list``, ``struct``, ``map``).
    A list has one child ``element``; a map two, ``key`` and ``value``; a struct its fields.
    ``id`` is the Parquet field id; ``None`` until a commit assigns it. ``versions`` are the
    snapshots and the types of the column's versions up to this one, oldest first; none when the
    column does not come from a catalog.
    """

    name: str
    type: str
    id: int | None = None
    nullable: bool = True
    children: tuple[Column, ...] = ()
    initial_default: str | None = None
    default: str | None = None
    default_kind: str = "literal"  # or "expression", which only DuckDB can evaluate
    versions: tuple[tuple[int, str], ...] = field(default=(), compare=False, repr=False)

    @property
    def has_plain_default(self) -> bool:
        """Return whether its default is a text that means the same to DuckDB and to Spark."""
        return self.default_kind == "literal" and self.type not in {"geometry", "variant"}

    def walk(self) -> Iterator[Column]:
        """This column and its descendants, parents first: the order of field ids."""
        yield self
        for child in self.children:
            yield from child.walk()

    def types_since(self, snapshot_id: int | None) -> frozenset[str]:
        """The types that a file begun in that snapshot may hold the column in.

        More than one, since files may be merged later. Empty: the file is older than the column.
        """
        if snapshot_id is None or not self.versions:
            return frozenset({self.type})
        if snapshot_id < self.versions[0][0]:
            return frozenset()
        ends = [begin for begin, _ in self.versions[1:]]
        past = zip(self.versions[:-1], ends, strict=True)
        return frozenset({self.type, *(kind for (_, kind), end in past if end > snapshot_id)})


@dataclass(frozen=True, slots=True)
class TableSchema:
    """The columns of a table: ``TableSchema((Column("id", "int32", nullable=False),))``."""

    columns: tuple[Column, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def computes_defaults(self) -> bool:
        return any(column.default_kind == "expression" for column in self.columns)

    def walk(self) -> Iterator[Column]:
        for column in self.columns:
            yield from column.walk()

    def find(self, name: str) -> Column | None:
        """The top-level column of this name, letter case aside."""
        folded = fold(name)
        return next((column for column in self.columns if fold(column.name) == folded), None)


_SIGNED = ("int8", "int16", "int32", "int64")
_UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
_FLOATS = ("float32", "float64")
# Lossless promotions (the format's "Type Promotion"): from each type to those after it in its row.
_WIDER: Mapping[str, frozenset[str]] = {
    narrow: frozenset(row[at + 1 :])
    for row in (_SIGNED, _UNSIGNED, _FLOATS)
    for at, narrow in enumerate(row)
}


def can_widen(narrow: str, wide: str) -> bool:
    """Return whether every value of ``narrow`` is one of ``wide`` by the format's promotions."""
    return wide in _WIDER.get(narrow, frozenset())


def wider_types(narrow: str) -> tuple[str, ...]:
    """The types that the format's promotions lead to, narrowest first."""
    return tuple(
        wide
        for row in (_SIGNED, _UNSIGNED, _FLOATS)
        for wide in row
        if wide in _WIDER.get(narrow, frozenset())
    )


def same_columns(a: TableSchema, b: TableSchema) -> bool:
    """Return whether names (letter case aside), types and order agree; ids and defaults do not
    count.
    """
    return _alike(a.columns, b.columns)


def _alike(a: Sequence[Column], b: Sequence[Column]) -> bool:
    return len(a) == len(b) and all(
        fold(x.name) == fold(y.name) and x.type == y.type and _alike(x.children, y.children)
        for x, y in zip(a, b, strict=True)
    )


def type_text(column: Column) -> str:
    """The type with what is inside: ``list<struct<a: int32>>``."""
    if not column.children:
        return column.type
    if column.type == "struct":
        inside = ", ".join(f"{child.name}: {type_text(child)}" for child in column.children)
    else:
        inside = ", ".join(type_text(child) for child in column.children)
    return f"{column.type}<{inside}>"


def without_columns(schema: TableSchema, names: Sequence[str]) -> TableSchema:
    """``schema`` without these columns, and fields (``addr.zip``); letter case does not count."""
    return TableSchema(_without(schema.columns, {fold(name) for name in names}, ""))


def _without(columns: Sequence[Column], gone: Collection[str], path: str) -> tuple[Column, ...]:
    return tuple(
        replace(column, children=_without(column.children, gone, f"{path}{fold(column.name)}."))
        for column in columns
        if path + fold(column.name) not in gone
    )


def evolve(current: TableSchema, wanted: TableSchema) -> TableSchema:
    """``current`` extended to hold ``wanted``: columns added at the end, types widened.

    Columns that ``wanted`` lacks stay; a narrower type in ``wanted`` changes nothing. New columns
    have no id yet (`assign_missing_ids`). Raises SchemaMismatch when a type cannot be widened.
    """
    return TableSchema(_evolve(current.columns, wanted.columns, ""))


def _evolve(current: Sequence[Column], wanted: Sequence[Column], path: str) -> tuple[Column, ...]:
    news = {fold(column.name): column for column in wanted}
    columns = [
        _widened(column, news[fold(column.name)], path) if fold(column.name) in news else column
        for column in current
    ]
    known = {fold(column.name) for column in current}
    return (*columns, *(column for column in wanted if fold(column.name) not in known))


def _widened(old: Column, new: Column, path: str) -> Column:
    full_name = f"{path}{old.name}"
    if old.children and old.type == new.type:
        return replace(old, children=_evolve(old.children, new.children, f"{full_name}."))
    if old.type == new.type or can_widen(new.type, old.type):
        return old
    if can_widen(old.type, new.type):
        return replace(old, type=new.type)
    raise SchemaMismatch(
        f"column {full_name!r} is {type_text(old)} and cannot become {type_text(new)} without loss",
        hint="cast the column in the SELECT, or give it another name",
        data={"column": full_name, "old": type_text(old), "new": type_text(new)},
    )


EMBEDDED_ROW_ID = "_ducklake_internal_row_id"
SNAPSHOT_ID = "_ducklake_internal_snapshot_id"
ROW_ID_FIELD = 2147483540
SNAPSHOT_FIELD = 2147483539
# Under a name mapping the real extension looks for the field's number as the column's name.
MAPPED_ROW_ID = str(ROW_ID_FIELD)
EMBEDDED: Mapping[str, int] = {EMBEDDED_ROW_ID: ROW_ID_FIELD, SNAPSHOT_ID: SNAPSHOT_FIELD}
OF_DELETES: Mapping[str, int] = {
    "file_path": 2147483646,
    "pos": 2147483645,
    SNAPSHOT_ID: SNAPSHOT_FIELD,
}


def assign_ids(schema: TableSchema, start: int = 1) -> TableSchema:
    """Renumber every column from ``start``, parents first: as the format does on creation."""
    numbers = count(start)
    return TableSchema(tuple(_number(column, numbers, True) for column in schema.columns))


def assign_missing_ids(schema: TableSchema, start: int) -> TableSchema:
    """Number from ``start`` the columns without an id. ``start`` was never used by the table."""
    numbers = count(start)
    return TableSchema(tuple(_number(column, numbers, False) for column in schema.columns))


def _number(column: Column, numbers: Iterator[int], renumber: bool) -> Column:
    own = next(numbers) if renumber or column.id is None else column.id
    children = tuple(_number(child, numbers, renumber) for child in column.children)
    return replace(column, id=own, children=children)
