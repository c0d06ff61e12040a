"""Values of a statement: literals, read without Spark and cast as DuckDB does; rows of VALUES."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from penstock.errors import QueryFailed, SchemaMismatch, UnsupportedFeature
from penstock.lakes.format.naming import fold
from penstock.lakes.format.schema import Column, TableSchema
from penstock.lakes.format.values import duck_text
from penstock.lakes.format.values.bounds import base_type, parse
from penstock.lakes.format.values.precision import rounded
from penstock.lakes.statements.assignments import value_or_default
from penstock.sql.literals import NULL, Literal, NoLiteral, literal
from penstock.sql.statement import Reader, StatementText, begun
from penstock.sql.text import Composed, SqlExpression

Sized = TypeVar("Sized", bound=tuple[Any, ...])


class _Default:
    """The word DEFAULT among values."""


DEFAULT = _Default()


Literals = tuple[tuple[Literal | _Default, ...], ...]


def literal_rows(reader: Reader) -> Literals:
    """``VALUES (1, 'a'), (2, DEFAULT)``, to the end. Raises NoLiteral for anything else in it."""
    reader.expect("VALUES")
    rows = [_literals(reader)]
    while not reader.done:
        if not reader.accept(","):
            raise NoLiteral
        rows.append(_literals(reader))
    return tuple(_even(rows))


def _literals(reader: Reader) -> tuple[Literal | _Default, ...]:
    """A row, in brackets unless it is one value (as Spark has it)."""
    if not reader.accept("("):
        return (_literal(reader),)
    row = [_literal(reader)]
    while reader.accept(","):
        row.append(_literal(reader))
    if not reader.accept(")"):
        raise NoLiteral
    return tuple(row)


def _literal(reader: Reader) -> Literal | _Default:
    return DEFAULT if reader.accept("DEFAULT") else literal(reader, reader.args)


def typed(
    literals: Sequence[Sequence[Literal | _Default]],
    columns: Sequence[Column],
    schema: TableSchema,
    zone: Zone,
) -> list[dict[str, Any]]:
    """The rows by the names of all columns; missing values become defaults.

    Raises NoLiteral where only Spark can read a value, SchemaMismatch for what does not fit.
    """
    others = {fold(column.name) for column in columns}
    missing = [column for column in schema.columns if fold(column.name) not in others]
    rest = {column.name: default_of(column, zone) for column in missing}
    rows: list[dict[str, Any]] = []
    for row in literals:
        pairs = zip(columns, row, strict=True)
        rows.append({column.name: _fitted(value, column, zone) for column, value in pairs} | rest)
    return rows


def _fitted(value: Literal | _Default, column: Column, zone: Zone) -> Any:
    if isinstance(value, _Default):
        return default_of(column, zone)
    return fitted(value, column, zone)


def default_of(column: Column, zone: Zone) -> Any:
    """The value of a column that a row lacks."""
    if column.default is None:
        return None
    if not column.has_plain_default:
        raise UnsupportedFeature(
            f"column {column.name!r} has the default {column.default}, which only DuckDB evaluates",
            hint=f"give {column.name} a value in the INSERT",
            data={"column": column.name, "default": column.default},
        )
    return fitted(Literal(column.default), column, zone)


# Values as spans of the text, one SELECT for each row
Row = tuple[SqlExpression | None, ...]  # None: DEFAULT

_UNKNOWN_TO_VALUES = frozenset({"DEFAULT", "RAISE_ERROR"})
_QUERIES = frozenset({"SELECT", "WITH", "VALUES", "FROM", "TABLE"})


@dataclass(frozen=True, slots=True)
class ComputedRows:
    """The rows of a VALUES, each value as a span of the text.

    ``by_select``: they have subqueries or DEFAULT, which Spark accepts only in a SELECT.
    """

    rows: tuple[Row, ...]
    by_select: bool

    def as_query(
        self,
        statement: StatementText,
        default_of: Callable[[int, int], str],
        casts: Mapping[int, str],
    ) -> Composed:
        """A SELECT for each row, with ``col1``, ``col2`` and so on.

        ``default_of`` returns DEFAULT in Spark's SQL, by the number of values in the row and the
        position; ``casts`` has the types that values are cast to, by position.
        """
        text = begun(statement)
        for number, row in enumerate(_even(self.rows)):
            text.add(" UNION ALL " if number else "").add("SELECT ")
            for at, value in enumerate(row):
                text.add(", " if at else "")
                if value is None:
                    text.add(default_of(len(row), at))
                elif at in casts:
                    text.add("CAST(").take(value.span).add(f" AS {casts[at]})")
                else:
                    text.take(value.span)
                text.add(f" AS col{at + 1}")
        return text


def computed_rows(reader: Reader) -> ComputedRows | None:
    """The rows that come next, to the end; ``None`` where Spark parses them.

    Raises QueryFailed for wrong values that Spark would accept.
    """
    tokens = reader.tokens[reader.at :]
    pairs = pairwise(tokens)
    queries = any(token.text == "(" and after.upper in _QUERIES for token, after in pairs)
    by_select = queries or any(token.upper in _UNKNOWN_TO_VALUES for token in tokens)
    reader.expect("VALUES")
    try:
        rows = [_row(reader)]
        while reader.accept(","):
            rows.append(_row(reader))
    except QueryFailed:
        if by_select:
            raise
        return None
    if not reader.done:
        return None
    return ComputedRows(tuple(_even(rows) if by_select else rows), by_select)


def _row(reader: Reader) -> Row:
    """A row, in brackets unless it is one value."""
    if not reader.accept("("):
        return (_value(reader),)
    if reader.token.upper in _QUERIES:
        reader.at -= 1  # the bracket is the query's: a value without those of a row
        return (_value(reader),)
    row = [_value(reader)]
    while reader.accept(","):
        row.append(_value(reader))
    reader.expect(")")
    return tuple(row)


def _value(reader: Reader) -> SqlExpression | None:
    return value_or_default(reader, ",", what="a value")


def _even(rows: Sequence[Sized]) -> Sequence[Sized]:
    widths = {len(row) for row in rows}
    if len(widths) > 1:
        raise QueryFailed(
            f"the rows of VALUES have {' and '.join(map(str, sorted(widths)))} values",
            hint="give each row as many values",
        )
    return rows


Zone = Callable[[], str]  # of times without one, asked for when there is such a time


def fitted(written: Literal, column: Column, zone: Zone = lambda: "UTC") -> Any:
    """The value converted to the column's type, by DuckDB's casts for an INSERT.

    Raises NoLiteral for types whose text Spark has to read, SchemaMismatch for what is not a value
    of the type.
    """
    value = written.value
    if value is None:
        return None
    if column.children:
        return _fitted_inside(written, column, zone)
    read = _FITTED.get(base_type(column.type))
    if read is None or isinstance(value, list | dict | tuple | bytearray):
        raise NoLiteral
    try:
        cast = read(value, column)
    except (ValueError, ArithmeticError, TypeError) as error:
        raise SchemaMismatch(
            f"{value!r} is not a valid {column.type}, which column {column.name!r} is",
            hint="write the value otherwise, or CAST it",
            data={"column": column.name, "type": column.type, "value": str(value)},
        ) from error
    if isinstance(cast, datetime) and base_type(column.type) == "timestamptz":
        return _zoned(cast, zone)
    return cast


def _zoned(value: datetime, zone: Zone) -> datetime:
    if value.tzinfo is None:
        value = value.replace(tzinfo=ZoneInfo(zone()))
    return value.astimezone(UTC)


def _fitted_inside(written: Literal, column: Column, zone: Zone) -> Any:
    """A list as a list, a map as pairs, a struct as a dict of all its fields."""
    if written.type != column.type:
        raise NoLiteral
    if column.type == "list":
        return [fitted(item, column.children[0], zone) for item in written.value]
    if column.type == "map":
        key, value = column.children
        return [(fitted(k, key, zone), fitted(v, value, zone)) for k, v in written.value]
    fields = {fold(key.value): value for key, value in written.value}
    unknown = fields.keys() - {fold(child.name) for child in column.children}
    if unknown or len(fields) != len(written.value):
        raise SchemaMismatch(
            f"the struct {column.name!r} has no field {sorted(unknown)[0] if unknown else ''!r}",
            hint=f"its fields are {', '.join(child.name for child in column.children)}",
            data={"column": column.name},
        )
    return {c.name: fitted(fields.get(fold(c.name), NULL), c, zone) for c in column.children}


_BITS = (8, 16, 32, 64, 128)
_WIDTHS = {
    **{f"int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in _BITS},
    **{f"uint{bits}": (0, 2**bits - 1) for bits in _BITS},
}


def _integer(value: Any, column: Column) -> int:
    if isinstance(value, str):
        value = Decimal(value.strip())
    if isinstance(value, float):
        value = round(value)  # halves go to the even number, as DuckDB has it for DOUBLE
    if isinstance(value, Decimal):
        value = int(rounded(value, 0))
    low, high = _WIDTHS[base_type(column.type)]
    number = int(value)
    if not low <= number <= high:
        raise ValueError(number)
    return number


def _decimal(value: Any, column: Column) -> Decimal:
    parsed = parse(column.type)
    assert parsed.precision is not None
    assert parsed.scale is not None
    try:
        number = Decimal(str(value).strip() if not isinstance(value, bool) else int(value))
        number = rounded(number, parsed.scale)
    except InvalidOperation as error:
        raise ValueError(value) from error
    if number.copy_abs() >= Decimal(10) ** (parsed.precision - parsed.scale):
        raise ValueError(value)
    return number


def _float(value: Any, _: Column) -> float:
    return float(value)


def _boolean(value: Any, _: Column) -> bool:
    if isinstance(value, str):
        try:
            return duck_text.boolean(value.strip())
        except KeyError as error:
            raise ValueError(value) from error
    return bool(value)


def _text(value: Any, _: Column) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float | bytes):
        raise NoLiteral
    return value.isoformat(" ") if isinstance(value, datetime) else str(value)


def _as_written(value: Any, _: Column) -> str:
    """A value that the write checks itself."""
    if not isinstance(value, str):
        raise NoLiteral
    return value


_INFINITE = frozenset({"infinity", "-infinity"})  # which the write reads; Python has no such date


def is_infinite(row: Iterable[Any]) -> bool:
    """Return whether a row may have a date of `fitted` that Python has no value for."""
    return any(isinstance(value, str) and value in _INFINITE for value in row)


def _date(value: Any, _: Column) -> date | str:
    if isinstance(value, str) and value.strip().lower() in _INFINITE:
        return value.strip().lower()
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    if not isinstance(value, str):
        raise ValueError(value)
    try:
        return date.fromisoformat(value.strip())
    except ValueError:
        if " " not in value.strip() and "T" not in value:
            raise
        return datetime.fromisoformat(value.strip()).date()


def _moment(value: Any, column: Column) -> datetime | str:
    if isinstance(value, str) and value.strip().lower() in _INFINITE:
        if column.type in {"timestamp_s", "timestamp_ms"}:
            raise ValueError(value)  # DuckDB (1.5.5) cannot read it back
        return value.strip().lower()
    if isinstance(value, str):
        value = datetime.fromisoformat(value.strip())
    elif isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)  # noqa: DTZ001 - it has no zone
    if not isinstance(value, datetime):
        raise ValueError(value)
    if base_type(column.type) == "timestamptz":
        return value
    if value.tzinfo is not None:
        raise NoLiteral
    return value


def _bytes(value: Any, _: Column) -> bytes:
    if isinstance(value, str):
        return duck_text.blob(value)
    if not isinstance(value, bytes):
        raise ValueError(value)
    return value


def _geometry(value: Any, column: Column) -> bytes:
    from penstock.sql.duckdb.casts import well_known_bytes  # which loads sqlglot

    data = well_known_bytes(value) if isinstance(value, str) else value
    if not isinstance(data, bytes):
        raise UnsupportedFeature(
            f"{value!r} for column {column.name!r} is no geometry of two dimensions as text, such "
            "as POINT (1 2)",
            hint="write st_geomfromwkb(...) of its well-known bytes, or insert it with DuckDB",
            data={"column": column.name, "value": str(value)},
        )
    return data


_FITTED: Mapping[str, Callable[[Any, Column], Any]] = {
    **dict.fromkeys(_WIDTHS, _integer),
    "decimal": _decimal,
    **dict.fromkeys(("float32", "float64"), _float),
    "boolean": _boolean,
    "varchar": _text,
    "date": _date,
    **dict.fromkeys(("timestamp", "timestamp_s", "timestamp_ms", "timestamptz"), _moment),
    "blob": _bytes,
    "geometry": _geometry,
    # A text may have nanoseconds, which no datetime has.
    "timestamp_ns": lambda value, column: (
        value.strip() if isinstance(value, str) else _moment(value, column)
    ),
    **dict.fromkeys(("time", "time_ns", "timetz", "interval", "uuid", "json"), _as_written),
}


def as_text(written: Literal) -> str | None:
    """The text that the catalog stores for a literal as a default."""
    if written.value is None:
        return None
    if isinstance(written.value, bool):
        return "true" if written.value else "false"
    if isinstance(written.value, datetime):
        return written.value.isoformat(" ")
    return str(written.value)
