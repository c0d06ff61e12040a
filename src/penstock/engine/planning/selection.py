"""Select the models of a run: names, patterns, and what is before and after them in the graph."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from fnmatch import fnmatchcase

from penstock.errors import ArgumentError
from penstock.sql.identifiers import nearest

Neighbours = Callable[[str], Collection[str]]


def select_steps(
    expressions: Sequence[str],
    names: Sequence[str],
    upstream: Neighbours,
    downstream: Neighbours,
) -> frozenset[str]:
    """The selected names, or all names when no expression is given.

    ``upstream`` and ``downstream`` give everything before and after a step, however far.
    Raises ArgumentError for an expression that selects nothing, with the nearest name.
    """
    if not expressions:
        return frozenset(names)
    chosen: set[str] = set()
    for expression in expressions:
        pattern = expression.removeprefix("+").removesuffix("+")
        matched = [name for name in names if fnmatchcase(name, pattern)]
        if not matched:
            raise _nothing(expression, pattern, names)
        chosen.update(matched)
        if expression.startswith("+"):
            chosen.update(step for name in matched for step in upstream(name))
        if expression.endswith("+"):
            chosen.update(step for name in matched for step in downstream(name))
    return frozenset(chosen)


def _nothing(expression: str, pattern: str, names: Sequence[str]) -> ArgumentError:
    near = nearest(pattern, names)
    known = ", ".join(sorted(names))
    return ArgumentError(
        f"--select {expression}: step {pattern!r} does not exist",
        hint=f"did you mean {near!r}?" if near else f"steps are: {known}",
    )
