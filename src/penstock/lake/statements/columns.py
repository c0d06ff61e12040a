"""Read definitions of CREATE and ALTER TABLE: columns, defaults, PARTITIONED BY, SORTED BY."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from penstock.errors import SchemaMismatch
from penstock.lake.format.files import PartitionField
from penstock.lake.format.naming import fold
from penstock.lake.format.objects import SortKey
from penstock.lake.format.schema import Column
from penstock.lake.format.values.bounds import base_type
from penstock.lake.reading.conversions.align import NOW
from penstock.lake.statements.types import column_type
from penstock.lake.statements.values import as_text, fitted
from penstock.sql.literals import Literal, NoLiteral, literal
from penstock.sql.statement import Reader, StatementText
from penstock.sql.text import Unreadable, parse_expression

_ENDS = (",", ("NOT", "NULL"), "NULL", "DEFAULT", "COMMENT", "CHECK", "PRIMARY", "UNIQUE", "FIRST")
_KEYS = ("PRIMARY", "UNIQUE", "CHECK", "REFERENCES", "FOREIGN", "CONSTRAINT")
_UNSUPPORTED: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(_KEYS, ("a key or a check", "test the rows in a model (not_null, unique)")),
    "GENERATED": ("a generated column", "compute it in the SELECT or in a view"),
    "AS": ("a generated column", "compute it in the SELECT or in a view"),
    "COLLATE": ("COLLATE", "leave it out: text compares by its bytes"),
}

# Stored as the value's own text: files that are older than the column are read with it.
_EXACT = frozenset({"decimal", "timestamp", "date"})
_TIMES: Mapping[str, str] = {
    **{f"{unit}{s}".upper(): unit for unit in ("year", "month", "day", "hour") for s in ("", "s")},
    "DATE": "day",
    "DATE_HOUR": "hour",
}
_NEAREST = {
    "TRUNCATE": "use a bucket(N, column), or a column that holds the value",
    "VOID": "leave it out",
}


@dataclass(frozen=True, slots=True)
class Defined:
    """A column with the comment that its definition gives it."""

    column: Column
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class Default:
    """A default: a literal, or else an expression in DuckDB's SQL."""

    literal: Literal | None
    expression: str
    at: int


def definitions(reader: Reader) -> tuple[Defined, ...]:
    """``(a INT NOT NULL DEFAULT 5 COMMENT 'x', ...)``; names differ, letter case aside."""
    reader.expect("(")
    columns: list[Defined] = []
    while True:
        if reader.token.upper in {"PRIMARY", "UNIQUE", "CHECK", "FOREIGN", "CONSTRAINT"}:
            raise reader.unsupported(*_UNSUPPORTED[reader.token.upper])
        at = reader.token.start
        defined = definition(reader, reader.name("a column"))
        if fold(defined.column.name) in {fold(other.column.name) for other in columns}:
            raise reader.wrong(
                f"there are two columns named {defined.column.name!r}",
                "give one another name: letter case does not count",
                at,
            )
        columns.append(defined)
        if not reader.accept(",") or reader.token.text == ")":  # as in DuckDB, a comma may be last
            break
    reader.expect(")")
    return tuple(columns)


def definition(reader: Reader, name: str) -> Defined:
    """Return what follows a column's name."""
    column = column_type(reader, name)
    comment: str | None = None
    while True:
        if reader.accept("NOT", "NULL"):
            column = replace(column, nullable=False)
        elif reader.accept("NULL"):
            pass
        elif reader.accept("DEFAULT"):
            column = with_default(reader.statement, column, default(reader))
        elif reader.accept("COMMENT"):
            comment = reader.string("a comment")
        elif reader.token.upper in _UNSUPPORTED:
            raise reader.unsupported(*_UNSUPPORTED[reader.token.upper])
        else:
            return Defined(column, comment)


def default(reader: Reader) -> Default:
    """The default that comes next: a literal, or an expression that DuckDB can read."""
    at, start = reader.at, reader.token.start
    try:
        value = literal(reader, reader.args)
        if _ends_default(reader):
            return Default(value, "", start)
    except NoLiteral:
        pass
    reader.at = at
    return Default(None, _duckdb_expression(reader, start), start)


def with_default(statement: StatementText, column: Column, new: Default) -> Column:
    """The column with a default. A literal is stored as the text of its value, checked against the
    column's type.
    """
    value = new.literal
    if value is not None and value.value is None:
        return replace(column, default=None, default_kind="literal")
    if column.children:
        raise statement.unsupported("a default of a nested column", "leave it out", new.at)
    if value is None:
        return replace(column, default=new.expression, default_kind="expression")
    try:
        typed = fitted(value, column)
    except NoLiteral:
        typed = value.value
    except SchemaMismatch as error:
        message = (
            f"the default {value.value!r} of column {column.name!r} is not a valid {column.type}"
        )
        raise statement.wrong(message, new.at) from error
    exact = base_type(column.type) in _EXACT or column.type.startswith(("int", "uint"))
    text = as_text(Literal(typed) if exact else value)
    return replace(column, default=text, default_kind="literal")


def _ends_default(reader: Reader) -> bool:
    token = reader.token
    return token.kind == "end" or token.text in {",", ")", ";"} or token.kind == "word"


def _duckdb_expression(reader: Reader, at: int) -> str:
    """A default expression as DuckDB's SQL, which DuckDB must be able to parse."""
    text = reader.written(reader.until(*_ENDS), "a default")
    try:
        read = parse_expression(text, "duckdb").sql("duckdb")
    except Unreadable as error:
        message = f"the default {text} is not understood{error}"
        raise reader.wrong(message, at=at + error.at) from error
    return NOW if read.upper() == "CURRENT_TIMESTAMP" else read  # as DuckDB stores it


def accept_partitioned_by(reader: Reader) -> tuple[PartitionField, ...] | None:
    """``PARTITIONED BY (a, year(b), bucket(8, c))``, if that comes next."""
    if not (reader.accept("PARTITIONED", "BY") or reader.accept("PARTITION", "BY")):
        return None
    return partition_fields(reader)


def partition_fields(reader: Reader) -> tuple[PartitionField, ...]:
    """``(a, year(b), bucket(8, c))``"""
    reader.expect("(")
    fields = [_field(reader)]
    while reader.accept(","):
        fields.append(_field(reader))
    reader.expect(")")
    return tuple(fields)


def _field(reader: Reader) -> PartitionField:
    at = reader.token.start
    name = reader.name("a column")
    word = name.upper()
    if not reader.accept("("):
        if reader.token.upper not in {",", ")"}:
            raise reader.unsupported(
                "a column defined in PARTITIONED BY", "define it with the other columns"
            )
        return PartitionField(name)
    if word == "BUCKET":
        return _bucket(reader)
    if word not in _TIMES:
        raise reader.unsupported(
            f"partitioning by {name}()",
            _NEAREST.get(word, "use year, month, day, hour, bucket(N, column) or a column"),
            at,
        )
    column = reader.name("a column")
    reader.expect(")")
    return PartitionField(column, _TIMES[word])


def _bucket(reader: Reader) -> PartitionField:
    """``bucket(8, c)``"""
    number = reader.whole_number()
    reader.expect(",")
    column = reader.name("a column")
    reader.expect(")")
    if number < 1:
        raise reader.wrong("bucket() needs one bucket at least")
    return PartitionField(column, f"bucket({number})")


def accept_sorted_by(reader: Reader) -> tuple[SortKey, ...] | None:
    """``SORTED BY (a DESC NULLS FIRST, lower(b))``, if that comes next."""
    if reader.sees("CLUSTERED", "BY") or reader.sees("CLUSTER", "BY"):
        raise reader.unsupported("CLUSTER BY", "use SORTED BY")
    if not reader.accept("SORTED", "BY"):
        return None
    return sort_keys(reader)


def sort_keys(reader: Reader) -> tuple[SortKey, ...]:
    reader.expect("(")
    keys = [_key(reader)]
    while reader.accept(","):
        keys.append(_key(reader))
    reader.expect(")")
    return tuple(keys)


def _key(reader: Reader) -> SortKey:
    """A sort key, an expression in DuckDB's SQL; NULLs are last unless the text says otherwise."""
    span = reader.until(",", "ASC", "DESC", "NULLS")
    expression = _in_duckdb(reader, reader.written(span), span[0])
    direction = reader.accept_any("ASC", "DESC") or "ASC"
    nulls = "NULLS_LAST"
    if reader.accept("NULLS"):
        nulls = f"NULLS_{reader.one_of({'FIRST', 'LAST'}, 'FIRST or LAST')}"
    return SortKey(expression, "duckdb", direction, nulls)


def _in_duckdb(reader: Reader, text: str, at: int) -> str:
    """The expression in DuckDB's SQL, names in its quotes."""
    try:
        return parse_expression(text).sql("duckdb")
    except Unreadable as error:
        raise reader.wrong(f"{text} is not understood{error}", at=at + error.at) from error
