"""What rules for DuckDB's SQL are made with: refusals, and text for Spark with parts put in."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import sqlglot
from sqlglot import exp

from penstock.errors import UnsupportedFeature

_SPARK = "databricks"
_MARK = "refused: "
_ADVICE = "; write "
_TOLD = re.compile(f"`{_MARK}([^`]*)`")


def refused(what: str, advice: str = "") -> UnsupportedFeature:
    return UnsupportedFeature(
        f"{what} of DuckDB is not known to mean the same on Spark",
        hint=f"write {advice}" if advice else "read it with DuckDB, or write the query for Spark",
        data={"feature": what},
    )


def placed(error: UnsupportedFeature, node: exp.Expr) -> UnsupportedFeature:
    """The refusal of a node, with the offset where it begins as ``data["start"]``.

    Of a node without a place it is the place of what holds it.
    """
    holder: exp.Expr | None = node
    while holder is not None:
        starts = [int(part.meta["start"]) for part in holder.walk() if "start" in part.meta]
        if starts:
            error.data.setdefault("start", min(starts))
            break
        holder = holder.parent
    return error


def called(node: exp.Expr) -> str:
    """The name of a function."""
    return str(node.sql_name() if isinstance(node, exp.Func) else node.key).lower()


def spark(template: str, **parts: exp.Expr) -> exp.Expr:
    """Spark's expression of a template in which ``:name`` stands for a part."""
    tree = _parsed(template).copy()
    for marker in list(tree.find_all(exp.Placeholder)):
        part = _closed(parts[marker.name].copy())  # a bracket becomes the parent
        if marker is tree:
            return part
        marker.replace(part)
    return tree


def unless(
    what: str, types: str, node: exp.Expr, *operands: exp.Expr, advice: str = ""
) -> exp.Expr:
    """``node``, but `told` when an operand's type is like one of ``types``; ``advice`` is what to
    write then.

    Spark knows the types when it analyses the query. It then evaluates the name of the part that
    DATE_PART takes, and fails with that name if there is no such part; what is left is ``node``.
    """
    for operand in operands:
        kind = _number(operand)
        if any(pattern.removesuffix("%") == kind for pattern in types.split("|")):
            raise refused(f"{what} of {kind}", advice)
    checks = [
        f"TYPEOF(:o{at}) LIKE '{pattern}'"
        for at, operand in enumerate(operands)
        if not isinstance(operand, exp.Literal)
        for pattern in types.split("|")
    ]
    if not checks:
        return node
    named: dict[str, Any] = {f"o{at}": operand for at, operand in enumerate(operands)}
    kinds = types.replace("%", "").replace("|", ", ")
    mark = f"{_MARK}{what} of {kinds}{advice and _ADVICE + advice}"
    part = f"IF({' OR '.join(checks)}, '{mark}', 'YEAR')"
    test = f"DATE_PART({part}, DATE '2000-01-01') = 2000"
    return spark(f"IF({test}, :node, NULL)", node=node, **named)


def told(condition: str | None, message: str) -> UnsupportedFeature | None:
    """The refusal that an error of Spark stands for, if it is one of `unless`."""
    found = _TOLD.search(message) if condition == "INVALID_EXTRACT_FIELD" else None
    return None if found is None else refused(*found[1].split(_ADVICE, 1))


def whole_number(node: exp.Expr | None) -> int | None:
    """The value of a literal like ``3`` or ``-3``."""
    if isinstance(node, exp.Paren):
        return whole_number(node.this)
    if isinstance(node, exp.Neg):
        inner = whole_number(node.this)
        return None if inner is None else -inner
    if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
        return int(node.name)
    return None


def _number(node: exp.Expr) -> str | None:
    """The type of a number that is written with a fraction or an exponent."""
    if not isinstance(node, exp.Literal) or node.is_string or node.name.isdigit():
        return None
    return "double" if "e" in node.name.lower() else "decimal"


def text_of(node: exp.Expr | None) -> str | None:
    return node.name if isinstance(node, exp.Literal) and node.is_string else None


def _closed(node: exp.Expr) -> exp.Expr:
    return exp.Paren(this=node) if isinstance(node, exp.Binary | exp.Connector) else node


@cache
def _parsed(template: str) -> exp.Expr:
    return sqlglot.parse_one(template, read=_SPARK)
