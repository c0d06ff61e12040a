"""Find what stands outside of brackets and CASE: words, and the conditions that AND joins."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import pairwise

from penstock.sql.identifiers import fold
from penstock.sql.tokens import WORD, Token, closing, depth_of

Range = tuple[int, int]  # ``tokens[first:last]``


class Unclear(Exception):
    """The structure is not one that is known; the message says what is not."""


def outermost(tokens: Sequence[Token], first: int = 0, last: int | None = None) -> Iterator[int]:
    """Yield the words in no brackets and no CASE; those that close them are not inside.

    A column may be called ``end``. Raises Unclear for a CASE that never ends.
    """
    level, cases = 0, list[int]()
    for at in range(first, len(tokens) if last is None else last):
        token = tokens[at]
        level += depth_of(token)
        if token.kind == WORD and (not at or tokens[at - 1].text != "."):
            if token.upper == "CASE":
                cases.append(level)
            elif token.upper == "END" and cases and cases[-1] == level:
                cases.pop()
        if not level and not cases:
            yield at
    if cases:
        raise Unclear("a CASE has no END")


def closing_of(tokens: Sequence[Token], at: int) -> int:
    """Return the bracket that closes the one at ``at``. Raises Unclear."""
    end = closing(tokens, at)
    if end is None:
        raise Unclear("a bracket is not closed")
    return end


def end_around(tokens: Sequence[Token], at: int) -> int:
    """Return the bracket that closes around ``tokens[at]``; past all words where none does."""
    depth = 0
    for end in range(at, len(tokens)):
        depth += depth_of(tokens[end])
        if depth < 0:
            return end
    return len(tokens)


_BEFORE_TABLE = frozenset({"FROM", "JOIN", "LATERAL", "USING"})
_BEFORE_OTHERS = frozenset(
    {"SELECT", "ON", "WHERE", "BY", "HAVING", "QUALIFY", "WINDOW", "LIMIT", "OFFSET", "SET"}
    | {"VALUES", "WHEN", "THEN", "ELSE", "CASE"}
)


def is_in_from(tokens: Sequence[Token], at: int) -> bool:
    """Return whether a table stands there: the nearest clause before it says, also the one around
    brackets in which a table may stand.
    """
    depth, listed = 0, False
    for before in range(at - 1, -1, -1):
        depth -= depth_of(tokens[before])
        word = tokens[before].upper
        if depth < 0:
            around = tokens[before - 1].upper if before else ""
            if around not in {"FROM", "JOIN", "LATERAL", "TABLE", "(", ","}:
                return False
            depth = 0
        elif depth == 0 and word in _BEFORE_TABLE | _BEFORE_OTHERS:
            return word in _BEFORE_TABLE or (word == "ON" and listed)
        listed = listed or (depth == 0 and word == ",")
    return False


def name_start(tokens: Sequence[Token], at: int) -> int:
    """Return where the name begins whose last part is ``tokens[at]``."""
    while at >= 2 and tokens[at - 1].text == ".":
        at -= 2
    return at


def table_calls(
    tokens: Sequence[Token], known: Callable[[str], bool]
) -> Iterator[tuple[int, int, int]]:
    """Yield the calls of functions, ``known`` by their folded names, right after FROM, JOIN or a
    comma: where one begins, its name without qualifiers, and the bracket that closes it.
    """
    for at, (token, following) in enumerate(pairwise(tokens)):
        if following.text != "(" or not known(fold(token.value)):
            continue
        first, last = name_start(tokens, at), closing(tokens, at + 1)
        if last is not None and first and tokens[first - 1].upper in {"FROM", "JOIN", ","}:
            yield first, at, last


def symbols(tokens: Sequence[Token], wanted: Collection[str]) -> list[int]:
    """Return where one of these stands in an expression, outside of brackets and CASE."""
    return [at for at in outermost(tokens) if tokens[at].text in wanted]


def and_parts(tokens: Sequence[Token], first: int, last: int) -> list[Range] | None:
    """Return what AND joins at the top of a condition; None where OR does.
    BETWEEN keeps its AND.
    """
    found: list[Range] = []
    start, between = first, False
    for at in outermost(tokens, first, last):
        word = tokens[at].upper if tokens[at].kind == WORD else ""
        if word == "OR":
            return None
        if word == "AND" and not between:
            found.append((start, at))
            start = at + 1
        between = (between or word == "BETWEEN") and word != "AND"
    return [*found, (start, last)]


def conjuncts(tokens: Sequence[Token]) -> list[Sequence[Token]]:
    """Cut a condition at every AND that its brackets do not keep together with an OR."""
    if tokens and tokens[0].text == "(" and closing(tokens, 0) == len(tokens) - 1:
        inside = conjuncts(tokens[1:-1])
        return [tokens] if any(and_parts(each, 0, len(each)) is None for each in inside) else inside
    parts = and_parts(tokens, 0, len(tokens))
    if parts is None or len(parts) == 1:
        return [tokens] if tokens else []
    return [part for first, last in parts for part in conjuncts(tokens[first:last])]
