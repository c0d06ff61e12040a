"""Types of columns as DuckDB and Spark spell them, as types of the format.

Where the two mean different things by one word, DuckDB's meaning holds, which is the format's own:
``TIMESTAMP`` has no zone, ``DECIMAL`` alone is ``DECIMAL(18,3)``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from penstock.lake.format.naming import fold
from penstock.lake.format.schema import Column
from penstock.sql.statement import Reader

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
        _no_collation(reader)
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


def _no_collation(reader: Reader) -> None:
    if reader.sees("COLLATE"):
        raise reader.unsupported("COLLATE", "leave it out: text compares by its bytes")


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
    fields = [_field(reader)]
    while reader.accept(","):
        fields.append(_field(reader))
    reader.expect(close)
    names = [fold(field.name) for field in fields]
    for at, field_name in enumerate(names):
        if field_name in names[:at]:
            raise reader.wrong(f"the struct {name} has two fields named {fields[at].name!r}")
    return Column(name, "struct", children=tuple(fields))


def _field(reader: Reader) -> Column:
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
