"""Read the selection language: names, patterns, properties, hops and sets of models. Pure.

    union        = intersection { (" " | "|") intersection }
    intersection = part { ("," | "&") part }
    part         = "^" part | "@" group | [[N] "+"] group ["+" [N]]
    group        = word | PROPERTY ":" word | "(" union ")"

dbt's operators (``+``, ``@``, a space, a comma) and SQLMesh's (``&``, ``|``, ``^``, parentheses).
What a word stands for depends on the models: `penstock.engine.planning.selection` resolves it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from penstock.errors import ArgumentError
from penstock.sql.identifiers import nearest
from penstock.states import SliceState

#: of ``state:``, with the states of slices that each stands for
STATES: Mapping[str, frozenset[str]] = {
    "changed": frozenset({SliceState.STALE}),
    "failed": frozenset({SliceState.FAILED}),
    "behind": frozenset({SliceState.BEHIND, SliceState.LATE}),
    "missing": frozenset({SliceState.MISSING}),
    "waiting": frozenset({SliceState.WAITING}),
    "skipped": frozenset({SliceState.SKIPPED}),
    "unfinished": frozenset({SliceState.UNFINISHED}),
    "outside": frozenset({SliceState.CHANGED_OUTSIDE}),
}
PROPERTIES = ("tag", "owner", "strategy", "state")
_OTHERS = {
    "path": "write the path alone: models/marts/orders.sql, or marts/ for a folder",
    "file": "write the file alone: models/marts/orders.sql",
    "fqn": "write the name alone: marts/orders",
    "model": "write the name alone: marts/orders",
    "config.materialized": "write strategy:view, or another strategy of `penstock status`",
    "kind": "write strategy:view, or another strategy of `penstock status`",
    "resource_type": "all that is selected is a model",
    "source": "write READER+, as tables that no model makes are not selected",
    "git": "state:changed selects what has changed since it was made",
}
_WORDS = {"stale": "changed", "modified": "changed", "new": "missing", "error": "failed"}
_DEPTH = 50  # of parentheses
_EXAMPLES = "for example: marts/orders, +marts/orders, raw/*+, tag:nightly, state:failed"
_TOKEN = re.compile(r"[ +@,&|^()]|[^ +@,&|^()]+")
_AROUND = re.compile(r"\s*([,&|])\s*|(?<=[(^])\s+|\s+(?=\))")


@dataclass(frozen=True, slots=True)
class Word:
    """A model's name, its table's, its file, a folder, or a pattern of these."""

    text: str


@dataclass(frozen=True, slots=True)
class Property:
    """``tag:nightly``: the models whose property has a value, or one that a pattern matches."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Hops:
    """Models, and those that are at most so many edges above and below; None: however many."""

    of: Selector
    up: int | None = 0
    down: int | None = 0


@dataclass(frozen=True, slots=True)
class Around:
    """Models, what is below them, and all that those need."""

    of: Selector


@dataclass(frozen=True, slots=True)
class Union:
    of: tuple[Selector, ...]


@dataclass(frozen=True, slots=True)
class Intersection:
    of: tuple[Selector, ...]


@dataclass(frozen=True, slots=True)
class Complement:
    """All models but these."""

    of: Selector


Selector = Word | Property | Hops | Around | Union | Intersection | Complement


def parse(text: str) -> Selector:
    """Return what a text selects. Raises ArgumentError for a text that is not in the language."""
    spaced = _AROUND.sub(lambda match: match[1] or "", text.strip())
    tokens = _TOKEN.findall(re.sub(r"\s+", " ", spaced))
    if not tokens:
        raise ArgumentError("an empty text selects nothing", hint=_EXAMPLES)
    if tokens.count("(") > _DEPTH:
        raise ArgumentError(f"more than {_DEPTH} parentheses in a selector", hint=_EXAMPLES)
    reader = _Reader(tokens)
    selector = reader.union()
    if reader.next is not None:
        raise reader.wrong(f"{reader.next!r} is not expected")
    return selector


def states_in(selector: Selector) -> frozenset[str]:
    """Return the words of ``state:`` in a selector: what it selects depends on what was made."""
    match selector:
        case Property("state", value):
            return frozenset({value})
        case Word() | Property():
            return frozenset()
        case Union(of) | Intersection(of):
            return frozenset().union(*map(states_in, of))
        case Hops(of=inner) | Around(inner) | Complement(inner):
            return states_in(inner)


@dataclass(slots=True)
class _Reader:
    tokens: list[str]
    at: int = 0

    @property
    def next(self) -> str | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def take(self, *expected: str) -> str | None:
        """Return the next token where it is one of these."""
        token = self.next
        if token not in expected:
            return None
        self.at += 1
        return token

    def wrong(self, what: str) -> ArgumentError:
        before = "".join(self.tokens[: self.at])
        place = f" after {before!r}" if before else ""
        return ArgumentError(f"{what}{place}", hint=_EXAMPLES)

    def union(self) -> Selector:
        found = [self.intersection()]
        while self.take(" ", "|"):
            found.append(self.intersection())
        return found[0] if len(found) == 1 else Union(tuple(found))

    def intersection(self) -> Selector:
        found = [self.part()]
        while self.take(",", "&"):
            found.append(self.part())
        return found[0] if len(found) == 1 else Intersection(tuple(found))

    def part(self) -> Selector:
        negated = False
        while self.take("^"):
            negated = not negated
        selector = self.placed()
        return Complement(selector) if negated else selector

    def placed(self) -> Selector:
        """Read a group with what stands before and behind it."""
        around, up, down = self.take("@"), self.up(), None
        selector = self.group()
        if self.take("+"):
            down = self.number()
        if around and (up is not None or down is not None):
            what = "@ selects what is below already, and takes no +"
            raise ArgumentError(what, hint=_EXAMPLES)
        if around:
            return Around(selector)
        if up is None and down is None:
            return selector
        return Hops(selector, *(0 if n is None else None if n == _ALL else n for n in (up, down)))

    def up(self) -> int | None:
        """Read ``+`` or ``2+``; None where there is neither."""
        after = self.tokens[self.at + 1 : self.at + 3]
        counts = after[:1] == ["+"] and len(after) == 2 and after[1] not in _OPERATORS
        number = self.number() if counts else _ALL
        return number if self.take("+") else None

    def number(self) -> int:
        token = self.next
        if token is None or not (token.isascii() and token.isdigit()):
            return _ALL
        self.at += 1
        return int(token[:9])

    def group(self) -> Selector:
        if self.take("("):
            selector = self.union()
            if not self.take(")"):
                raise self.wrong("a parenthesis is not closed")
            return selector
        token = self.next
        if token is None or token in _OPERATORS:
            raise self.wrong(
                f"a name is missing before {token!r}" if token else "a name is missing"
            )
        self.at += 1
        return _word(token)


_ALL = -1
_OPERATORS = frozenset(" +@,&|^)")


def _word(token: str) -> Selector:
    name, colon, value = token.partition(":")
    if not colon or "/" in name or value.startswith("//"):  # a URI is the name of a file
        return Word(token)
    if name not in PROPERTIES:
        known = ", ".join(f"{each}:" for each in PROPERTIES)
        hint = _OTHERS.get(name, f"properties are {known}")
        raise ArgumentError(f"models have no property {name!r} to select by", hint=hint)
    if not value:
        raise ArgumentError(f"{token} has no value", hint=f"write it behind the colon: {token}NAME")
    if name == "state" and value not in STATES:
        near = _WORDS.get(value) or nearest(value, STATES)
        hint = f"did you mean state:{near}?" if near else f"states are {', '.join(STATES)}"
        raise ArgumentError(f"{value!r} is not a state to select by", hint=hint)
    return Property(name, value)
