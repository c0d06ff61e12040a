"""Casts of DuckDB as Spark's: which round, which look different as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from penstock.lake.duckdb_sql.guards import refused, spark, unless
from penstock.lake.duckdb_sql.operators import NOT_AS_TEXT

_T = exp.DType if hasattr(exp, "DType") else exp.DataType.Type
_INTEGERS = {_T.TINYINT: "TINYINT", _T.SMALLINT: "SMALLINT", _T.INT: "INT", _T.BIGINT: "BIGINT"}
_SAME = {
    _T.DOUBLE: "DOUBLE",
    _T.FLOAT: "FLOAT",
    _T.BOOLEAN: "BOOLEAN",
    _T.DATE: "DATE",
    _T.TIMESTAMP: "TIMESTAMP_NTZ",
    _T.TIMESTAMPNTZ: "TIMESTAMP_NTZ",
}
_TEXTS = {_T.VARCHAR, _T.TEXT, _T.CHAR}


def _cast(node: exp.Expr) -> exp.Expr:
    to: exp.DataType = node.args["to"]
    kind, operand = to.this, node.this
    if isinstance(node, exp.TryCast):
        raise refused("TRY_CAST")
    if kind in _INTEGERS:
        return _to_integer(operand, _INTEGERS[kind])
    if kind in _SAME:
        return spark(f"CAST(:x AS {_SAME[kind]})", x=operand)
    if kind in _TEXTS:
        return unless("text", NOT_AS_TEXT, spark("CAST(:x AS STRING)", x=operand), operand)
    if kind == _T.DECIMAL:
        return unless(
            "cast to DECIMAL", "float|double", exp.cast(operand.copy(), to.copy()), operand
        )
    raise refused(f"the cast to {to.sql('duckdb')}")


def _to_integer(operand: exp.Expr, kind: str) -> exp.Expr:
    """Fractions are rounded, those of decimals half away from zero, of doubles half to even."""
    if isinstance(operand, exp.Literal) and not operand.is_string and operand.name.isdigit():
        return spark(f"CAST(:x AS {kind})", x=operand)
    return spark(
        f"CASE WHEN TYPEOF(:x) LIKE 'decimal%' THEN CAST(ROUND(:x) AS {kind}) "
        f"WHEN TYPEOF(:x) IN ('float', 'double') THEN CAST(BROUND(:x) AS {kind}) "
        f"ELSE CAST(:x AS {kind}) END",
        x=operand,
    )


CASTS: Mapping[type[exp.Expr], Callable[[exp.Expr], exp.Expr]] = {
    exp.Cast: _cast,
    exp.TryCast: _cast,
}
