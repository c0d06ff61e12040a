"""Read definitions of CREATE and ALTER TABLE: columns and their types, defaults, partitions, order.

Types of columns as DuckDB and Spark spell them, as types of the format.

Where the two mean different things by one word, DuckDB's meaning holds, which is the format's own:
``TIMESTAMP`` has no zone, ``DECIMAL`` alone is ``DECIMAL(18,3)``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from penstock.errors import SchemaMismatch
from penstock.lakes.format.files import PartitionField
from penstock.lakes.format.naming import fold
from penstock.lakes.format.objects import SortKey
from penstock.lakes.format.schema import Column
from penstock.lakes.format.values.bounds import base_type
from penstock.lakes.reading.conversions.align import NOW
from penstock.lakes.statements.values import as_text, fitted
from penstock.sql.literals import Literal, NoLiteral, literal
from penstock.sql.statement import Reader, StatementText
from penstock.sql.text import Unreadable, parse_expression

_NAMES: Mapping[str, tuple[str, ...]] = {
    "boolean": ("BOOLEAN", "BOOL", "LOGICAL"),
    "int8": ("TINYINT", "INT1", "BYTE"),
    "int16": ("SMALLINT", "INT2", "INT16", "SHORT"),
    "int32": ("INTEGER", "INT", "INT4", "INT32", "SIGNED", "INTEGRAL"),
    "int64": ("BIGINT", "INT8", "INT64", "LONG", "OID"),
    "int128": ("HUGEINT", "INT128"),
    "uint8": ("UTINYINT", "UINT8"),
    "uint16": ("USMALLINT", "UINT16"),
    "uint32": ("UINTEGER", "UINT32"),
    "uint64": ("UBIGINT", "UINT64"),
    "uint128": ("UHUGEINT", "UINT128"),
    "float32": ("FLOAT", "FLOAT4", "REAL", "FLOAT32"),
    "float64": ("DOUBLE", "FLOAT8", "FLOAT64"),
    "varchar": ("VARCHAR", "STRING", "TEXT", "CHAR", "BPCHAR", "NVARCHAR", "CHARACTER"),
    "blob": ("BLOB", "BINARY", "VARBINARY", "BYTEA"),
    "date": ("DATE",),
    "time": ("TIME",),
    "time_ns": ("TIME_NS",),
    "timetz": ("TIMETZ",),
    "timestamp": ("TIMESTAMP", "DATETIME", "TIMESTAMP_NTZ", "TIMESTAMP_US"),
    "timestamptz": ("TIMESTAMPTZ", "TIMESTAMP_LTZ"),
    "timestamp_s": ("TIMESTAMP_S",),
    "timestamp_ms": ("TIMESTAMP_MS",),
    "timestamp_ns": ("TIMESTAMP_NS",),
    "interval": ("INTERVAL",),
    "uuid": ("UUID", "GUID"),
    "json": ("JSON",),
    "geometry": ("GEOMETRY",),
    "variant": ("VARIANT",),
}
_PLAIN = {name: kind for kind, names in _NAMES.items() for name in names}
_NEAREST = {
    "ENUM": "VARCHAR",
    "UNION": "STRUCT",
    "BIT": "BLOB",
    "BITSTRING": "BLOB",
    "BIGNUM": "DECIMAL(38,0) or VARCHAR",
    "VARINT": "DECIMAL(38,0) or VARCHAR",
    "VOID": "the type that the column is to have",
    "GEOGRAPHY": "GEOMETRY",
}
_SECONDS = {0: "timestamp_s", 3: "timestamp_ms", 6: "timestamp", 9: "timestamp_ns"}


def column_type(reader: Reader, name: str) -> Column:
    """The column of this name with the type that comes next, ids unset.

    Raises QueryFailed, and UnsupportedFeature for types that the format does not have.
    """
    at = reader.token.start
    word = fold(reader.name("a type")).upper()
    read = _NESTED.get(word)
    if read is not None:
        column = read(reader, name)
    elif word in {"DECIMAL", "NUMERIC", "DEC"}:
        column = Column(name, _decimal(reader))
    elif word in _PLAIN:
        column = Column(name, _narrowed(reader, _PLAIN[word]))
    elif word in _NEAREST:
        raise reader.unsupported(f"the type {word}", f"use {_NEAREST[word]}", at)
    else:
        raise reader.wrong(f"type {word} does not exist", "docs/types.md lists them", at)
    return _lists(reader, column)


def _lists(reader: Reader, column: Column) -> Column:
    """``[]`` after a type, DuckDB's spelling of lists."""
    while reader.accept("["):
        if not reader.sees("]"):
            raise reader.unsupported("a list of fixed length", "leave the number out: INT[]")
        reader.expect("]")
        column = Column(column.name, "list", children=(replace(column, name="element"),))
    return column


def _decimal(reader: Reader) -> str:
    precision, scale = 18, 3
    if reader.accept("("):
        precision, scale = reader.whole_number(), 0
        if reader.accept(","):
            scale = reader.whole_number()
        if not (1 <= precision <= 38 and scale <= precision):
            raise reader.wrong(f"DECIMAL({precision},{scale}) does not exist", "38 digits at most")
        reader.expect(")")
    return f"decimal({precision},{scale})"


def _narrowed(reader: Reader, kind: str) -> str:
    """Return what may follow a type's first word: lengths, ``PRECISION``, ``WITH TIME ZONE``."""
    if kind == "float64":
        reader.accept("PRECISION")
    elif kind == "varchar":
        reader.accept("VARYING")
        if reader.accept("("):
            reader.whole_number()
            reader.expect(")")
        if reader.sees("COLLATE"):
            raise reader.unsupported("COLLATE", "leave it out: text compares by its bytes")
    elif kind in {"time", "timestamp"}:
        return _timely(reader, kind)
    elif kind == "interval" and reader.token.upper in {"YEAR", "MONTH", "DAY", "HOUR", "MINUTE"}:
        raise reader.unsupported("an interval of certain units", "use INTERVAL alone")
    elif reader.sees("("):
        raise reader.wrong(f"{kind} takes nothing in brackets")
    return kind


def _timely(reader: Reader, kind: str) -> str:
    digits = 6
    if reader.accept("("):
        digits = reader.whole_number()
        if kind == "timestamp" and digits not in _SECONDS:
            raise reader.wrong(f"TIMESTAMP({digits}) does not exist", "there are 0, 3, 6 and 9")
        reader.expect(")")
    if reader.accept("WITHOUT", "TIME", "ZONE"):
        return kind
    if reader.accept("WITH", "TIME", "ZONE") or reader.accept("WITH", "LOCAL", "TIME", "ZONE"):
        return f"{kind}tz"
    return _SECONDS[digits] if kind == "timestamp" else kind


def _array(reader: Reader, name: str) -> Column:
    reader.expect("<")
    element = column_type(reader, "element")
    reader.expect(">")
    return Column(name, "list", children=(element,))


def _map(reader: Reader, name: str) -> Column:
    close = ">" if reader.accept("<") else ")"
    if close == ")":
        reader.expect("(")
    key = column_type(reader, "key")
    reader.expect(",")
    value = column_type(reader, "value")
    reader.expect(close)
    return Column(name, "map", children=(key, value))


def _struct(reader: Reader, name: str) -> Column:
    close = ">" if reader.accept("<") else ")"
    if close == ")":
        reader.expect("(")
    fields = [_struct_field(reader)]
    while reader.accept(","):
        fields.append(_struct_field(reader))
    reader.expect(close)
    names = [fold(field.name) for field in fields]
    for at, field_name in enumerate(names):
        if field_name in names[:at]:
            raise reader.wrong(f"the struct {name} has two fields named {fields[at].name!r}")
    return Column(name, "struct", children=tuple(fields))


def _struct_field(reader: Reader) -> Column:
    """``a INT`` or ``a: INT``, which may be NOT NULL or have a comment only in Spark."""
    name = reader.name("a field")
    reader.accept(":")
    field = column_type(reader, name)
    if reader.sees("NOT", "NULL"):
        raise reader.unsupported(
            "NOT NULL of a field", "leave it out: the format has it of columns"
        )
    if reader.sees("COMMENT"):
        raise reader.unsupported("a comment on a field", "put it into the column's comment")
    return field


_NESTED: Mapping[str, Callable[[Reader, str], Column]] = {
    "ARRAY": _array,
    "LIST": _array,
    "MAP": _map,
    "STRUCT": _struct,
    "ROW": _struct,
}


_SHOWN = {kind: names[0] for kind, names in _NAMES.items()} | {
    "timetz": "TIME WITH TIME ZONE",
    "timestamptz": "TIMESTAMP WITH TIME ZONE",
}


def duckdb_type(column: Column) -> str:
    """The type in DuckDB's SQL: ``STRUCT(a INTEGER)[]``."""
    if column.type == "list":
        return f"{duckdb_type(column.children[0])}[]"
    if column.type == "map":
        key, value = column.children
        return f"MAP({duckdb_type(key)}, {duckdb_type(value)})"
    if column.type == "struct":
        fields = (f"{_shown_name(child.name)} {duckdb_type(child)}" for child in column.children)
        return f"STRUCT({', '.join(fields)})"
    return _SHOWN.get(column.type, column.type.upper())


def _shown_name(name: str) -> str:
    plain = name.isidentifier() and name == name.lower()
    return name if plain else '"' + name.replace('"', '""') + '"'


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
_NEAREST_TRANSFORM = {
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
        after = reader.token
        if after.kind in {"end", "word"} or after.text in {",", ")", ";"}:
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
    fields = [_partition_field(reader)]
    while reader.accept(","):
        fields.append(_partition_field(reader))
    reader.expect(")")
    return tuple(fields)


def _partition_field(reader: Reader) -> PartitionField:
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
            _NEAREST_TRANSFORM.get(
                word, "use year, month, day, hour, bucket(N, column) or a column"
            ),
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
