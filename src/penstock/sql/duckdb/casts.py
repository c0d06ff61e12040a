"""Casts of DuckDB as Spark's: which round, which look different as text; texts of geometries."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Mapping
from typing import Any

from penstock.lazy import exp
from penstock.sql.duckdb import guards
from penstock.sql.duckdb.guards import NOT_AS_TEXT, is_condition, refused, spark, text_of, unless
from penstock.sql.duckdb.rules import Rule
from penstock.sql.literals import LETTERED, PARTIAL
from penstock.sql.types import CHECKED, spark_type

_T = exp.DType if hasattr(exp, "DType") else exp.DataType.Type
_INTEGERS = {_T.TINYINT: "TINYINT", _T.SMALLINT: "SMALLINT", _T.INT: "INT", _T.BIGINT: "BIGINT"}
_SAME = {
    _T.DOUBLE: "DOUBLE",
    _T.FLOAT: "FLOAT",
    _T.BOOLEAN: "BOOLEAN",
    _T.DATE: "DATE",
    _T.TIMESTAMP: "TIMESTAMP_NTZ",
    _T.TIMESTAMPNTZ: "TIMESTAMP_NTZ",
    _T.TIMESTAMPTZ: "TIMESTAMP",
}
_CHECKED = {
    _T.UTINYINT: "UTINYINT", _T.USMALLINT: "USMALLINT", _T.UINT: "UINTEGER",
    _T.UBIGINT: "UBIGINT", _T.INT128: "HUGEINT", _T.UINT128: "UHUGEINT", _T.UUID: "UUID",
}  # fmt: skip
# What may hold a UUID, which is a text to Spark: no letter of it is compared or taken out.
_HOLDS_UUID = (
    exp.Alias, exp.AnyValue, exp.Cast, exp.Count, exp.Distinct, exp.Group, exp.Is, exp.Max, exp.Min,
    exp.Order, exp.Ordered, exp.Select, exp.Window,
)  # fmt: skip
_TEXTS = {_T.VARCHAR, _T.TEXT, _T.CHAR}
_ITEMS: Mapping[Any, str] = {**_SAME, **_INTEGERS, **dict.fromkeys(_TEXTS, "STRING")}  # of lists


# What the value of a cast is known as.
_KINDS = {
    _T.DOUBLE: guards.DOUBLE,
    **dict.fromkeys((_T.TEXT, _T.VARCHAR), guards.TEXT),
    _T.UUID: guards.UUID,
    _T.DATE: guards.DATE,
    **dict.fromkeys((_T.TIMESTAMP, _T.TIMESTAMPNTZ), guards.MOMENT),
    _T.TIMESTAMPTZ: guards.ZONED,
}


def _cast(node: exp.Expr) -> exp.Expr:
    kind, value = _KINDS.get(node.args["to"].this), _cast_value(node)
    return value if kind is None else guards.known_as(kind, value)


def _cast_value(node: exp.Expr) -> exp.Expr:
    operand, to = node.this, node.args["to"]
    kind = to.this
    if isinstance(node, exp.TryCast):
        return _try_cast(operand, kind, to)
    if isinstance(operand, exp.Null) and kind not in _CHECKED:
        return _of_null(to)
    if kind in _INTEGERS:
        return _to_integer(operand, _INTEGERS[kind])
    if kind == _T.UUID:
        return _to_uuid(node, operand)
    if kind in _CHECKED:  # a type that Spark lacks: of a wider type, each value checked
        name = _CHECKED[kind]
        if is_condition(operand):
            raise refused(f"the cast of a condition to {name}", "it::INTEGER")
        return unless(f"cast to {name}", "boolean", spark(CHECKED[name], x=operand), operand)
    return _OTHERS.get(kind, _as_it_is)(operand, to)


def _to_text(operand: exp.Expr, _: exp.DataType) -> exp.Expr:
    text = spark("CAST(:x AS STRING)", x=operand)
    return text if guards.is_uuid(operand) else unless("text", NOT_AS_TEXT, text, operand)


def _to_decimal(operand: exp.Expr, to: exp.DataType) -> exp.Expr:
    """Of a DOUBLE, so many times the smallest step, rounded away from zero."""
    sizes = [part.name for part in to.expressions] or ["18", "3"]
    name, scale = f"DECIMAL({', '.join(sizes)})", int(sizes[1]) if len(sizes) > 1 else 0
    plain = spark(f"CAST(:x AS {name})", x=operand)
    if isinstance(operand, exp.Literal):
        return plain
    large = "RAISE_ERROR('a DOUBLE that large as DECIMAL')"
    steps = f"CAST(:x AS DOUBLE) * 1E{scale}D"  # what is a text has no product
    of_double = (
        f"CAST(CAST(IF(ABS({steps}) < 9E15D, ROUND({steps}), IF(:x IS NULL, NULL, {large})) "
        f"AS DECIMAL(38, 0)) / {10**scale} AS {name})"
    )
    text = f"IF(TYPEOF(:x) LIKE 'double', {of_double}, CAST(:x AS {name}))"
    return unless("cast to DECIMAL", "float", spark(text, x=operand), operand)


def _of_null(to: exp.DataType) -> exp.Expr:
    try:
        kind = spark_type(to.sql("duckdb"))
    except ValueError:
        raise refused(f"the cast to {to.sql('duckdb')}") from None
    return spark(f"CAST(NULL AS {kind})")


_ESCAPED = re.compile(r"\\x([0-9a-fA-F]{2})|([\x00-\x5b\x5d-\x7f])")


def _to_blob(operand: exp.Expr, _: exp.DataType) -> exp.Expr:
    """ASCII, in which ``\\xAB`` is a byte."""
    written = text_of(operand)
    if written is not None:
        parts = _ESCAPED.findall(written)
        if _ESCAPED.sub("", written):
            raise refused(f"the text {written!r} as a BLOB", "encode(text) for its UTF-8")
        data = "".join(byte or f"{ord(letter):02X}" for byte, letter in parts)
        return spark(f"X'{data.upper()}'")
    text = (
        "IF(TYPEOF(:x) LIKE 'string' AND CAST(:x AS STRING) RLIKE :odd, "
        "RAISE_ERROR('a text with a backslash or beyond ASCII as a BLOB: write encode(text)'), "
        "CAST(:x AS BINARY))"
    )
    odd = exp.Literal.string(r"[^\x00-\x7f]|\\")
    kinds = "%int|float|double|decimal%|boolean|date|timestamp%|struct%|map%|array%"
    return unless("cast to BLOB", kinds, spark(text, x=operand, odd=odd), operand)


def _to_list(operand: exp.Expr, to: exp.DataType) -> exp.Expr:
    """Of lists whose items are cast as Spark casts them."""
    (element,) = to.expressions if len(to.expressions) == 1 else (None,)
    item = None if element is None else element.this
    kind = _ITEMS.get(item)
    if kind is None or isinstance(operand, exp.Placeholder):
        return _as_it_is(operand, to)
    odd = "string|map%|struct%|array<struct%|array<array%|array<map%|array<binary>"
    if item in _TEXTS:
        odd += "|array<float>|array<double>|array<timestamp>|array<variant>|array<decimal%"
    else:
        odd += "|array<string>"
    if item in _INTEGERS:
        odd += "|array<float>|array<double>|array<decimal%"
    text = spark(f"CAST(:x AS ARRAY<{kind}>)", x=operand)
    return unless(f"the cast to {to.sql('duckdb')}", odd, text, operand)


def _to_json(operand: exp.Expr, _: exp.DataType) -> exp.Expr:
    """The text itself, once it is known to be JSON."""
    if text_of(operand) is None and guards.whole_number(operand) is not None:
        raise refused("a number as JSON", "a text in quotes")
    text = spark("IF(PARSE_JSON(:j) IS NULL, NULL, CAST(:j AS STRING))", j=operand)
    return guards.known_as(guards.TEXT, guards.of_text("a cast to JSON", text, operand))


def _to_variant(operand: exp.Expr, _: exp.DataType) -> exp.Expr:
    """Structs and maps need another function, which the form tells."""
    if isinstance(operand, exp.Struct | exp.Map) or operand.name.upper() in {"MAP", "STRUCT"}:
        return spark("TO_VARIANT_OBJECT(:x)", x=operand)
    kinds = "struct%|map%|array<struct%|array<map%|interval%"
    return unless("cast to VARIANT", kinds, spark("CAST(:x AS VARIANT)", x=operand), operand)


def _to_geometry(operand: exp.Expr, _: exp.DataType) -> exp.Expr:
    """A text that is written out; Spark reads well-known bytes."""
    written = text_of(operand)
    data = None if written is None else well_known_bytes(written)
    if data is None:
        raise refused("the cast to GEOMETRY", "'POINT (1 2)'::GEOMETRY, of a text written out")
    return spark(f"ST_GEOMFROMWKB(X'{data.hex().upper()}')")


def _to_double(operand: exp.Expr, to: exp.DataType) -> exp.Expr:
    written, kind = text_of(operand), _SAME[to.this]
    if written is not None and re.fullmatch(LETTERED, written):
        raise refused(f"the text {written!r} as a {kind}")
    if written is not None or isinstance(operand, exp.Literal | exp.Placeholder):
        return spark(f"CAST(:x AS {kind})", x=operand)
    text = (
        "IF(TYPEOF(:x) LIKE 'string' AND CAST(:x AS STRING) RLIKE :odd, RAISE_ERROR(CONCAT("
        "'Could not convert string \\'', CAST(:x AS STRING), "
        f"'\\' to {kind}')), CAST(:x AS {kind}))"
    )
    return spark(text, x=operand, odd=exp.Literal.string(rf"\A{LETTERED}\z"))


def _to_moment(operand: exp.Expr, to: exp.DataType) -> exp.Expr:
    written = text_of(operand)
    if written is not None and re.fullmatch(PARTIAL, written):
        raise refused(f"the text {written!r} as a {to.sql('duckdb')}", "a whole date")
    return _as_it_is(operand, to)


_OTHERS: Mapping[Any, Callable[[exp.Expr, exp.DataType], exp.Expr]] = {
    _T.ARRAY: _to_list,
    _T.LIST: _to_list,
    _T.DECIMAL: _to_decimal,
    _T.GEOMETRY: _to_geometry,
    **dict.fromkeys((_T.DOUBLE, _T.FLOAT), _to_double),
    **dict.fromkeys((_T.DATE, _T.TIMESTAMP, _T.TIMESTAMPNTZ, _T.TIMESTAMPTZ), _to_moment),
    _T.JSON: _to_json,
    **dict.fromkeys(_TEXTS, _to_text),
    _T.VARBINARY: _to_blob,
    _T.VARIANT: _to_variant,
}


def _as_it_is(operand: exp.Expr, to: exp.DataType) -> exp.Expr:
    """A cast that is the same in Spark: also of what is bound as a list, or an interval's text."""
    kind = _SAME.get(to.this)
    if isinstance(operand, exp.Placeholder) and to.this == _T.INTERVAL:
        kind = "INTERVAL"
    elif isinstance(operand, exp.Placeholder) and to.this in {_T.ARRAY, _T.LIST}:
        (element,) = to.expressions
        inner = _ITEMS.get(element.this)
        kind = inner and f"ARRAY<{inner}>"
    if kind is None:
        raise refused(f"the cast to {to.sql('duckdb')}")
    return spark(f"CAST(:x AS {kind})", x=operand)


def _to_integer(operand: exp.Expr, kind: str) -> exp.Expr:
    """Fractions are rounded, those of decimals half away from zero, of doubles half to even."""
    written = text_of(operand)
    if written is not None and not re.fullmatch(_WHOLE, written):
        raise refused(f"the text {written!r} as a whole number")
    if isinstance(operand, exp.Literal) and operand.name.isdigit():
        return spark(f"CAST(:x AS {kind})", x=operand)
    # By way of a text: ROUND takes no BOOLEAN, whatever branch is meant.
    return spark(
        "CASE WHEN TYPEOF(:x) LIKE 'decimal%' "
        f"THEN CAST(CAST(CAST(:x AS STRING) AS DECIMAL(38, 0)) AS {kind}) "
        f"WHEN TYPEOF(:x) IN ('float', 'double') THEN CAST(BROUND(CAST(:x AS DOUBLE)) AS {kind}) "
        f"ELSE CAST(:x AS {kind}) END",
        x=operand,
    )


def _to_uuid(node: exp.Expr, operand: exp.Expr) -> exp.Expr:
    written = text_of(operand)
    if written is not None and not re.fullmatch(_UUID, written):
        raise refused(f"the text {written!r} as a UUID")
    holder = node.parent
    while isinstance(holder, exp.Paren):
        holder = holder.parent
    sides = isinstance(holder, exp.EQ | exp.NEQ | exp.NullSafeEQ | exp.NullSafeNEQ) and all(
        _is_uuid(side) for side in (holder.this, holder.expression)
    )
    if holder is not None and not sides and not isinstance(holder, _HOLDS_UUID):
        advice = "x::UUID on both sides of =, or x::UUID::VARCHAR"
        raise refused(f"a UUID in {holder.sql('duckdb')[:60]}", advice)
    return spark(CHECKED["UUID"], x=operand)


def _is_uuid(node: exp.Expr) -> bool:
    node = node.unnest()
    text = text_of(node)
    if text is not None:
        return re.fullmatch(_UUID, text) is not None and text == text.lower()
    return guards.is_uuid(node) or (isinstance(node, exp.Cast) and node.args["to"].this == _T.UUID)


_UUID = r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
# Texts that both read alike; those that may be more to DuckDB (1e3, 1_000, 0x1F, infinity).
_WHOLE = r"\s*[+-]?[0-9]+\s*"
_FRACTION = r"\s*[+-]?[0-9]+\.[0-9]+\s*"
_MAYBE = r"(?s)\s*[+-]?([0-9_.]+([eE][+-]?[0-9_]*)?|0[xXbBoO].*|(?i:inf(inity)?|nan))\s*"
_TEXT_TYPES: Mapping[Any, tuple[str, str, str]] = {
    _T.DOUBLE: (rf"{_WHOLE}|{_FRACTION}", _MAYBE, "TRY_CAST(TRIM(:x) AS DOUBLE)"),
    _T.DATE: (r"[0-9]{4}-[0-9]{2}-[0-9]{2}", r"(?s).*[0-9].*|.*i.*|epoch", "TRY_CAST(:x AS DATE)"),
    **{
        kind: (
            rf"{_WHOLE}|{_FRACTION}",
            _MAYBE,
            f"TRY_CAST(ROUND(TRY_CAST(TRIM(:x) AS DECIMAL(38, 10))) AS {name})",
        )
        for kind, name in _INTEGERS.items()
    },
}


def _try_cast(operand: exp.Expr, kind: Any, to: exp.DataType) -> exp.Expr:
    """Of texts: what both read, NULL for what no number can be, an error for what is between."""
    if kind not in _TEXT_TYPES:
        raise refused(f"TRY_CAST to {to.sql('duckdb')}")
    plain, doubtful, value = _TEXT_TYPES[kind]
    text = (
        f"CASE WHEN :x RLIKE :plain THEN {value} "
        "WHEN :x RLIKE :doubtful THEN RAISE_ERROR('TRY_CAST of a text of unusual form') END"
    )
    parts = {
        name: exp.Literal.string(rf"\A(?:{pattern})\z")
        for name, pattern in (("plain", plain), ("doubtful", doubtful))
    }
    kinds = "%int|decimal%|double|float|date|timestamp%|boolean|binary"
    return unless("TRY_CAST", kinds, spark(text, x=operand, **parts), operand)


def _field(node: exp.Expr) -> exp.Expr:
    """A field of a STRUCT type, for the cast."""
    if not isinstance(node.parent, exp.DataType):
        raise refused(node.sql("duckdb")[:60])
    return node


CASTS: Mapping[type[exp.Expr], Rule] = {exp.Cast: _cast, exp.TryCast: _cast, exp.ColumnDef: _field}


_SHAPES = ("POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON")
_WRITTEN = re.compile(r"\s*([A-Za-z]+)\s*(\([-+.,()\dEe\s]*\))\s*")
_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
_POSITION = re.compile(rf"({_NUMBER})\s+({_NUMBER})")


def well_known_bytes(text: str) -> bytes | None:
    """Return the bytes of a geometry of two dimensions that is not empty; ``None`` for others."""
    written = _WRITTEN.fullmatch(text)
    shape = "" if written is None else written[1].upper()
    if written is None or shape not in _SHAPES or re.search(r"\(\s*\)", text):
        return None
    # As JSON: lists of positions, each the text of its bytes.
    lists = re.sub(r"\s+", " ", written[2]).replace("(", "[").replace(")", "]")
    try:
        return _shape_bytes(shape, json.loads(_POSITION.sub(_position, lists)))
    except (TypeError, ValueError):
        return None


def _position(match: re.Match[str]) -> str:
    return f'"{struct.pack("<dd", float(match[1]), float(match[2])).hex()}"'


def _shape_bytes(shape: str, items: Any) -> bytes:
    """Return the bytes of a shape. Raises ValueError or TypeError for a text of another form."""
    if shape == "POINT":
        (position,) = items
        content = bytes.fromhex(position)
    elif shape == "LINESTRING":
        content = _counted([bytes.fromhex(position) for position in items])
    elif shape == "POLYGON":
        content = _counted([_shape_bytes("LINESTRING", ring)[_HEAD:] for ring in items])
    else:
        part = shape.removeprefix("MULTI")
        lists = ([item] if isinstance(item, str) else item for item in items)
        content = _counted([_shape_bytes(part, item) for item in lists])
    return struct.pack("<BI", 1, _SHAPES.index(shape) + 1) + content


_HEAD = struct.calcsize("<BI")


def _counted(parts: list[bytes]) -> bytes:
    return struct.pack("<I", len(parts)) + b"".join(parts)
