"""How a table is laid out: PARTITIONED BY and SORTED BY, in DuckDB's and Spark's spellings."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.lake.format.files import PartitionField
from penstock.lake.format.objects import SortKey
from penstock.sql.statement import Reader

_TIMES: Mapping[str, str] = {
    **{f"{unit}{s}".upper(): unit for unit in ("year", "month", "day", "hour") for s in ("", "s")},
    "DATE": "day",
    "DATE_HOUR": "hour",
}
_NEAREST = {
    "TRUNCATE": "use a bucket(N, column), or a column that holds the value",
    "VOID": "leave it out",
}


def accept_partitioned_by(reader: Reader) -> tuple[PartitionField, ...] | None:
    """``PARTITIONED BY (a, year(b), bucket(8, c))``, if that comes next."""
    if not (reader.accept("PARTITIONED", "BY") or reader.accept("PARTITION", "BY")):
        return None
    return partition_fields(reader)


def partition_fields(reader: Reader) -> tuple[PartitionField, ...]:
    """``(a, year(b), bucket(8, c))``"""
    reader.expect("(")
    found = [_field(reader)]
    while reader.accept(","):
        found.append(_field(reader))
    reader.expect(")")
    return tuple(found)


def _field(reader: Reader) -> PartitionField:
    at = reader.token.start
    name = reader.name("a column")
    word = name.upper()
    if not reader.accept("("):
        if reader.token.upper not in {",", ")"}:
            raise reader.unsupported(
                "a column defined in PARTITIONED BY", "define it with the others, name it here"
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
    found = [_key(reader)]
    while reader.accept(","):
        found.append(_key(reader))
    reader.expect(")")
    return tuple(found)


def _key(reader: Reader) -> SortKey:
    """An expression of DuckDB's over the table's columns; NULLs come last unless it says so."""
    span = reader.until(",", "ASC", "DESC", "NULLS")
    expression = _in_duckdb(reader, reader.written(span), span[0])
    direction = reader.accept_any("ASC", "DESC") or "ASC"
    nulls = "NULLS_LAST"
    if reader.accept("NULLS"):
        nulls = f"NULLS_{reader.one_of({'FIRST', 'LAST'}, 'FIRST or LAST')}"
    return SortKey(expression, "duckdb", direction, nulls)


def _in_duckdb(reader: Reader, text: str, at: int) -> str:
    """As DuckDB reads it: names in its quotes."""
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        return sqlglot.parse_one(text, read="spark").sql("duckdb")
    except SqlglotError as error:
        raise reader.wrong(f"{text} is not understood", at=at) from error
