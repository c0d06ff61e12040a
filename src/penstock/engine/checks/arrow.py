"""Proofs by Arrow that a condition, which it computes as Spark does, is true for no row."""

from __future__ import annotations

from penstock.engine.checks.check import Proof
from penstock.lazy import pa, pc


def never(predicate: str, columns: tuple[str, ...]) -> Proof:
    """``predicate``, Spark's SQL over ``columns`` and no others, is true for no row."""
    return Proof(columns, lambda rows: _is_never(predicate, rows))


def _is_never(predicate: str, rows: pa.Table) -> bool:
    from penstock.lake.arrow_expressions.compiled import condition
    from penstock.lake.arrow_expressions.nodes import NotSupportedByArrow

    try:
        kinds = {field.name: field.type for field in rows.schema}
        values = condition(predicate, kinds).array(rows)
    except NotSupportedByArrow:
        return False
    return not pc.any(values, min_count=0).as_py()
