"""DuckDB's type names as Spark's."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.errors import SqlglotError


def spark_type(text: str) -> str:
    """A DuckDB type as Spark's SQL writes it. Raises ValueError for one that Spark cannot hold."""
    try:
        kind = exp.DataType.build(text, dialect="duckdb")
    except SqlglotError:
        raise ValueError(f"has the unknown type {text!r}") from None
    return _substituted(kind).sql("spark")


def _substituted(kind: exp.DataType) -> exp.DataType:
    """Types that Spark lacks, as the lake reads them (``lake.types``)."""

    def substitute(node: exp.Expression) -> exp.Expression:
        name = node.this.value if isinstance(node, exp.DataType) and node.this else None
        if name in ("TIME", "TIMETZ", "INTERVAL", "USERDEFINED"):
            raise ValueError(f"has the type {node.sql('duckdb')}, which Spark cannot hold")
        wider = _WIDER.get(str(name))
        return exp.DataType.build(wider, dialect="spark") if wider else node

    changed = kind.transform(substitute)
    assert isinstance(changed, exp.DataType)
    return changed


_WIDER = {
    "UTINYINT": "SMALLINT",
    "USMALLINT": "INT",
    "UINT": "BIGINT",
    "UBIGINT": "DECIMAL(20, 0)",
    "INT128": "DECIMAL(38, 0)",
    "UINT128": "DECIMAL(38, 0)",
    "JSON": "STRING",
    "UUID": "STRING",
    "TIMESTAMP_S": "TIMESTAMP_NTZ",
    "TIMESTAMP_MS": "TIMESTAMP_NTZ",
    "TIMESTAMP_NS": "TIMESTAMP_NTZ",
}
