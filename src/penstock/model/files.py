"""``read_csv(...)`` and its like: calls whose arguments are constants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from penstock.model.constants import Constant, NotConstant, read_constant, split_at
from penstock.sql.tokens import NAME, STRING, Token, closing

#: what a query may write -> what it means
FUNCTIONS = {
    "READ_CSV": "read_csv",
    "READ_CSV_AUTO": "read_csv",
    "READ_JSON": "read_json",
    "READ_JSON_AUTO": "read_json",
    "READ_NDJSON": "read_json",
    "READ_PARQUET": "read_parquet",
    "PARQUET_SCAN": "read_parquet",
}
_ASSIGN = ("=", "=>", ":=")


@dataclass(frozen=True, slots=True)
class Call:
    """A call in a query: ``first`` and ``last`` index its tokens, the name and the bracket."""

    function: str
    first: int
    last: int


def find_calls(tokens: Sequence[Token]) -> Iterator[Call]:
    """Calls of the file functions; one that is not closed is left to the parser."""
    for index, (token, following) in enumerate(pairwise(tokens)):
        if token.upper in FUNCTIONS and following.text == "(":
            last = closing(tokens, index + 1)
            if last is not None:
                yield Call(FUNCTIONS[token.upper], index, last)


def read_call(
    call: Call, tokens: Sequence[Token]
) -> tuple[Constant, tuple[tuple[str, Constant], ...]]:
    """Path and named options of a call. Raises :class:`NotConstant`."""
    inside = tokens[call.first + 2 : call.last]
    first, *rest = split_at(inside, ",")
    if not first or _is_named(first):
        at = first[0] if first else tokens[call.last]
        raise NotConstant(f"{call.function} needs a path first", at)
    options: dict[str, Constant] = {}
    for piece in rest:
        if not _is_named(piece):
            at = piece[0] if piece else tokens[call.last]
            raise NotConstant("an option is written name = value", at)
        name = piece[0].value.lower()
        if name in options:
            raise NotConstant(f"the option {name} is given twice", piece[0])
        options[name] = _value(piece)
    return read_constant(first), tuple(options.items())


def _value(piece: Sequence[Token]) -> Constant:
    try:
        return read_constant(piece[2:])
    except NotConstant as error:
        raise NotConstant(str(error), error.token or piece[0]) from None


def _is_named(piece: Sequence[Token]) -> bool:
    return len(piece) >= 2 and piece[0].kind not in {NAME, STRING} and piece[1].text in _ASSIGN
