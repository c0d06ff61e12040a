"""Which joins of a query Spark may do in the task that reads both sides.

Spark sends the smaller side of a join around: a job, and a plan anew after it. Where each side is
read in one task there is nothing to send, and a hash join of them needs neither. It has to be asked
for: Spark goes by sizes alone.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

BY_HASH = "shuffle_hash"  # Spark's hint; it is of no matter to a table that is not joined
# What has rows that no table has, perhaps many.
_MORE = (exp.Explode, exp.Posexplode, exp.Inline, exp.Lateral, exp.Unnest)
_HALVES = frozenset({"SEMI", "ANTI", "CROSS"})


def are_by_equality(tree: exp.Expression) -> bool:
    """Whether a query has joins, all written as such and by equality, of tables and queries alone.

    Spark warns of a hint that it cannot follow, so that what is not certain has none.
    """
    joins = list(tree.find_all(exp.Join))
    return bool(joins) and all(map(_is_by_equality, joins)) and not any(map(_is_other, tree.walk()))


def _is_by_equality(join: exp.Join) -> bool:
    if join.kind in _HALVES or not isinstance(join.this, exp.Table | exp.Subquery):
        return False
    on = join.args.get("on")
    whole = None if on is None else on.unnest()
    parts = whole.flatten() if isinstance(whole, exp.And) else (whole,)
    return bool(join.args.get("using")) or any(isinstance(part, exp.EQ) for part in parts)


def _is_other(node: Any) -> bool:
    """A join by another name, rows that no table has, or a hint of the user's own."""
    if isinstance(node, exp.In):
        return node.args.get("query") is not None
    if isinstance(node, exp.Table):
        return not isinstance(node.this, exp.Identifier)
    if isinstance(node, exp.With):
        return bool(node.args.get("recursive"))
    return isinstance(node, (*_MORE, exp.Exists, exp.Hint))
