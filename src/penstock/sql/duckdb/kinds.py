"""What an expression is by its form alone: a text, a list, a DOUBLE, true or false.

Columns have no type here; what hangs on one is decided by Spark (`guards.unless`).
"""

from __future__ import annotations

from sqlglot import exp

TEXT, DOUBLE, UUID = "text", "double", "uuid"

_DOUBLES = (exp.Avg, exp.Div, exp.Exp, exp.Ln, exp.Log, exp.Pow, exp.Sqrt)
_TEXTS = (
    exp.Concat, exp.ConcatWs, exp.DPipe, exp.GroupConcat, exp.Left, exp.Lower, exp.MD5, exp.Pad,
    exp.RegexpExtract, exp.RegexpReplace, exp.Repeat, exp.Replace, exp.Right, exp.SHA2,
    exp.SplitPart, exp.Substring, exp.TimeToStr, exp.Trim, exp.Upper,
)  # fmt: skip
_CASTS = {
    exp.DataType.Type.DOUBLE: DOUBLE,
    exp.DataType.Type.TEXT: TEXT,
    exp.DataType.Type.VARCHAR: TEXT,
    exp.DataType.Type.UUID: UUID,
}
_KEY = "kind"


def note(node: exp.Expr, translated: exp.Expr) -> None:
    """Have ``translated``, which stands for ``node`` of DuckDB, known as what that is."""
    kind = None
    if isinstance(node, exp.Cast):
        kind = _CASTS.get(node.args["to"].this)
    elif isinstance(node, _DOUBLES):
        kind = DOUBLE
    elif isinstance(node, _TEXTS):
        kind = TEXT
    if kind is not None:
        translated.meta[_KEY] = kind


def is_double(node: exp.Expr) -> bool:
    """Whether a translated expression is a DOUBLE, whatever the types of its columns are."""
    if _KEY in node.meta:
        return bool(node.meta[_KEY] == DOUBLE)
    if isinstance(node, exp.Paren | exp.Neg | exp.Window | exp.Filter):
        return is_double(node.this)
    if isinstance(node, exp.Add | exp.Sub | exp.Mul):
        return is_double(node.this) or is_double(node.expression)
    return False


def is_known(node: exp.Expr) -> bool:
    """Whether a translated expression is a text or a number by its form."""
    return _KEY in node.meta or is_double(node) or is_text(node)


def is_text(node: exp.Expr) -> bool:
    if isinstance(node, exp.Paren):
        return is_text(node.this)
    written = isinstance(node, exp.Literal) and node.is_string
    return bool(written or node.meta.get(_KEY) == TEXT)


def is_uuid(node: exp.Expr) -> bool:
    return node.meta.get(_KEY) == UUID


def is_list(node: exp.Expr) -> bool:
    """Whether it is written as a list."""
    if isinstance(node, exp.Paren):
        return is_list(node.this)
    return isinstance(node, exp.Array) or (
        isinstance(node, exp.Anonymous) and node.name.upper() == "ARRAY"
    )


def is_condition(node: exp.Expr) -> bool:
    """Whether it is written as something that is true or false."""
    if isinstance(node, exp.Paren):
        return is_condition(node.this)
    return isinstance(node, exp.Predicate | exp.Connector | exp.Not | exp.Boolean)
