"""The lake's table functions: the calls of them that a query makes in a FROM, their arguments."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from penstock.errors import ArgumentError
from penstock.lazy import exp
from penstock.sql.identifiers import FEEDS, PREFIX, fold
from penstock.sql.query.nesting import name_start
from penstock.sql.tables import Analysis
from penstock.sql.tokens import Token, closing


@dataclass(frozen=True, slots=True)
class Call:
    """A call at ``text[start:end]``; ``arguments`` as trees, those with a name under it."""

    start: int
    end: int
    name: str  # folded
    before: tuple[str, ...]  # what stands before its name: the lake, a schema
    aliased: bool
    positional: tuple[exp.Expression, ...] = ()
    named: Mapping[str, exp.Expression] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Arguments:
    """Values of a call's arguments: numbers, texts, dates and times, None."""

    positional: tuple[Any, ...] = ()
    named: Mapping[str, Any] = field(default_factory=dict)

    def one(self, at: int, name: str) -> Any:
        """The argument at a place (from 0). Raises ArgumentError when there is none."""
        if at >= len(self.positional):
            raise ArgumentError(f"the argument {name} is missing", hint="give it")
        return self.positional[at]


def calls_of(analysis: Analysis, known: Collection[str]) -> Iterator[Call]:
    """The calls of the functions that are known, in the order of the tree."""
    for table in analysis.tree.find_all(exp.Table):
        if isinstance(table.this, exp.Func) and "start" in table.this.meta:
            start, end = table.this.meta["start"], table.this.meta["end"] + 1
            name = fold(analysis.text[start:end].strip("`"))
            if name in known:
                yield _call(analysis, table, name, int(start))


def _call(analysis: Analysis, table: exp.Table, name: str, start: int) -> Call:
    positional: list[exp.Expression] = []
    named: dict[str, exp.Expression] = {}
    for expression in table.this.expressions:
        if isinstance(expression, exp.Kwarg | exp.PropertyEQ):
            named[fold(expression.this.name)] = expression.expression
        else:
            positional.append(expression)
    begin, end = _span(analysis.tokens, start)
    before = tuple(part for part in (table.catalog, table.db) if part)
    return Call(begin, end, name, before, bool(table.alias), tuple(positional), named)


def _span(tokens: Sequence[Token], start: int) -> tuple[int, int]:
    """From the schemas before the name at ``start`` to the bracket that closes the arguments."""
    at = next(i for i, token in enumerate(tokens) if token.start == start)
    last = closing(tokens, at + 1)
    return tokens[name_start(tokens, at)].start, tokens[-1 if last is None else last].end


_LIST_FILES = ("schema", "snapshot_version", "snapshot_time")  # by name


def require_arguments(name: str, count: int, named: Collection[str]) -> None:
    """Raise ArgumentError unless a function takes so many arguments by place and these by name."""
    wanted = _arguments(name)
    known = _LIST_FILES if name.endswith("list_files") else ()
    for other in named:
        if other not in known:
            near = get_close_matches(other, known, n=1)
            listed = ", ".join(known)
            hint = f"did you mean {near[0]}?" if near else listed and f"it has {listed}"
            raise ArgumentError(f"{name} has no argument {other!r}", hint=hint or _shape(name))
    if count < len(wanted):
        raise ArgumentError(f"{name}: the argument {wanted[count]} is missing", hint=_shape(name))
    if count > len(wanted):
        raise ArgumentError(
            f"{name} takes {len(wanted)} arguments, and {count} are given", hint=_shape(name)
        )


def _arguments(name: str) -> tuple[str, ...]:
    """Return those that are given by their place."""
    short = name.removeprefix(PREFIX)
    own = ("table", "from", "to") if short in FEEDS else ("table",) if short == "list_files" else ()
    before = ("lake", "schema") if short in FEEDS else ("lake",)
    return (*before, *own) if name.startswith(PREFIX) else own


def _shape(name: str) -> str:
    if name == "list_files":  # which has no other form
        name = f"{PREFIX}{name}"
    return f"write {name}({', '.join(_arguments(name))})"
