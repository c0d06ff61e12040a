"""Values of expressions of constants, for ``@IF``, ``@FILTER`` and ``@EVAL``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from penstock.lazy import exp
from penstock.model.script.at_text import MacroError
from penstock.sql.text import Unreadable, parse_expression


def value(text: str, dialect: str) -> exp.Expr:
    """An expression with all of it worked out that is written out. Raises MacroError."""
    from sqlglot.optimizer.simplify import simplify

    try:
        tree = parse_expression(text, dialect)
    except Unreadable as error:
        raise MacroError(f"`{text}` cannot be read{error}", "write an expression") from None
    found: exp.Expr = simplify(_worked_out(tree), dialect=dialect)
    return found


def is_true(text: str, dialect: str) -> bool:
    """Return whether a condition holds; of a number or a text, whether it is there and not zero."""
    found = value(text, dialect)
    if isinstance(found, exp.Boolean):
        return bool(found.this)
    if isinstance(found, exp.Null):
        return False
    if isinstance(found, exp.Literal):
        return bool(found.this) if found.is_string else float(found.this) != 0
    raise MacroError(
        f"`{text}` is not known to be true or false", "compare values that are written out"
    )


def _worked_out(tree: exp.Expr) -> exp.Expr:
    """Return what sqlglot does not simplify, from the inside out: IN, LIKE, texts, equal names."""
    from sqlglot.optimizer.simplify import simplify

    root = tree.copy()
    for node in reversed(list(root.walk(bfs=False))):
        made = _made_of(simplify(node.copy()) if node.args else node)
        if made is None:
            continue
        if node is root:
            return made
        node.replace(made)
    return root


def _made_of(node: exp.Expr) -> exp.Expr | None:
    """Return what a node of constants is; None where it stays."""
    functions: Mapping[type[exp.Expr], Callable[[exp.Expr], exp.Expr | None]] = {
        exp.In: _in,
        exp.EQ: _equal,
        exp.NEQ: _equal,
        exp.Like: _like,
        exp.Lower: lambda of: _text(of, str.lower),
        exp.Upper: lambda of: _text(of, str.upper),
        exp.Trim: lambda of: None if of.expression else _text(of, str.strip),
        exp.Length: _length,
        exp.Is: _is_null,
    }
    function = functions.get(type(node))
    return node if function is None else function(node)


def _in(node: exp.Expr) -> exp.Expr | None:
    from sqlglot.optimizer.simplify import simplify

    if not node.expressions:
        return None
    equal = [exp.EQ(this=node.this.copy(), expression=item.copy()) for item in node.expressions]
    found: exp.Expr = simplify(exp.or_(*(_equal(each) or each for each in equal)))
    return found


def _equal(node: exp.Expr) -> exp.Expr | None:
    """Names are equal where they are the same: ``a = a`` in ``x -> @IF(x = a, ...)``."""
    from sqlglot.optimizer.simplify import simplify

    left, right = node.this, node.expression
    if isinstance(left, exp.Column) and isinstance(right, exp.Column):
        same = left.sql().lower() == right.sql().lower()
        return exp.Boolean(this=same == isinstance(node, exp.EQ))
    made: exp.Expr = simplify(node.copy())
    return made


def _like(node: exp.Expr) -> exp.Expr | None:
    if not (node.this.is_string and node.expression.is_string):
        return None
    parts = (_WILD.get(letter, re.escape(letter)) for letter in node.expression.this)
    return exp.Boolean(this=re.fullmatch("".join(parts), node.this.this, re.DOTALL) is not None)


_WILD = {"%": ".*", "_": "."}


def _text(node: exp.Expr, function: Callable[[str], str]) -> exp.Expr | None:
    return exp.Literal.string(function(node.this.this)) if node.this.is_string else None


def _length(node: exp.Expr) -> exp.Expr | None:
    return exp.Literal.number(len(node.this.this)) if node.this.is_string else None


def _is_null(node: exp.Expr) -> exp.Expr | None:
    if not isinstance(node.expression, exp.Null):
        return None
    if isinstance(node.this, exp.Literal | exp.Null | exp.Boolean):
        return exp.Boolean(this=isinstance(node.this, exp.Null))
    return None
