"""``AT (VERSION => n)``, ``VERSION AS OF n`` and the like, read from tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock.model.constants import read_constant
from penstock.model.sources import TimeTravel
from penstock.sql.tokens import ARGUMENT, NUMBER, STRING, Token, closing

_KINDS = {
    "VERSION": "version",
    "SYSTEM_VERSION": "version",
    "TIMESTAMP": "timestamp",
    "SYSTEM_TIME": "timestamp",
}
_VALUES = (NUMBER, STRING, ARGUMENT)


@dataclass(frozen=True, slots=True)
class AtClause:
    """The clause from token ``first`` to token ``last``; ``value`` are the tokens of its value."""

    kind: str
    first: int
    last: int
    value: tuple[Token, ...]

    def read(self) -> TimeTravel:
        """Raises :class:`~penstock.model.constants.NotConstant`."""
        typed = self.value[0].upper in {"TIMESTAMP", "DATE"} and len(self.value) == 2
        tokens = self.value[1:] if typed else self.value
        casts = [n for n, token in enumerate(tokens) if token.text == "::"]
        return TimeTravel(self.kind, read_constant(tokens[: casts[0]] if casts else tokens))


def find_clauses(tokens: Sequence[Token]) -> Iterator[AtClause]:
    """Every clause that may follow a table's name."""
    for index in range(len(tokens)):
        clause = _at(tokens, index) or _as_of(tokens, index)
        if clause is not None:
            yield clause


def _words(tokens: Sequence[Token], start: int, count: int) -> tuple[str, ...]:
    return tuple(token.upper for token in tokens[start : start + count])


def _at(tokens: Sequence[Token], index: int) -> AtClause | None:
    """``AT (VERSION => n)``."""
    words = _words(tokens, index, 4)
    if len(words) < 4 or words[:2] != ("AT", "(") or words[2] not in _KINDS or words[3] != "=>":
        return None
    last = closing(tokens, index + 1)
    if last is None or last == index + 4:
        return None
    return AtClause(_KINDS[words[2]], index, last, tuple(tokens[index + 4 : last]))


def _as_of(tokens: Sequence[Token], index: int) -> AtClause | None:
    """``[FOR] VERSION AS OF n``; the value is one literal or argument."""
    start = index + (_words(tokens, index, 1) == ("FOR",))
    words = _words(tokens, start, 3)
    if len(words) < 3 or words[0] not in _KINDS or words[1:] != ("AS", "OF"):
        return None
    if index > 0 and start == index and tokens[index - 1].upper == "FOR":
        return None
    value = start + 3
    typed = _words(tokens, value, 1) == ("TIMESTAMP",)
    last = value + typed
    if last >= len(tokens) or tokens[last].kind not in _VALUES:
        return None
    return AtClause(_KINDS[words[0]], index, last, tuple(tokens[value : last + 1]))
