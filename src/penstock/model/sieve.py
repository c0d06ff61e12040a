"""Where sqlglot and Spark's grammar differ: a first sieve for queries in Spark's dialect.

sqlglot accepts empty places in lists, and refuses some of what Spark accepts. The lists below were
checked against the parser of Spark 4.3 with about 12,000 queries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from penstock.model.lexer import Token

_OPENING = ("L_PAREN", "L_BRACKET", "L_BRACE")
_CLOSING = ("R_PAREN", "R_BRACKET", "R_BRACE")
_SET_OPERATIONS = ("UNION", "EXCEPT", "INTERSECT", "MINUS")

#: sequences of words and signs that Spark accepts and sqlglot does not, or not everywhere
_SPARKS_OWN = (
    *(("|>",), ("WATERMARK",), ("RECURSION", "LEVEL"), ("CHANGES", "FROM"), ("NEAREST",)),
    *(("WITH", "SINGLE", "PARTITION"), ("IDENTIFIER", "("), ("LATERAL", "VIEW"), ("STACK", "(")),
    *(("CLUSTER BY",), ("DISTRIBUTE BY",), ("SORT BY",), ("PIVOT", "("), ("INTERVAL", "-")),
    *((">", ">", ">"), ("!", "<"), ("!", ">"), ("~", "~"), ("MAP",), ("REPEATABLE",), ("~~",)),
    *(("TABLE", "("), ("SYSTEM_TIME",), ("SYSTEM_VERSION",), ("TABLESAMPLE", "(")),
    *(("CORR", "(", "DISTINCT"), ("INTERVAL", "+"), ("SELECT", "*", "SELECT"), (",", "FROM", "AS")),
)
#: what sqlglot says of calls with a number of arguments that it does not expect
_OF_ARGUMENTS = ("The number of provided arguments", "Required keyword: 'charset'")


def empty_place(tokens: Sequence[Token]) -> tuple[int, str] | None:
    """The offset of a comma or clause that something is missing beside, and what."""
    for before, token in pairwise(tokens):
        if token.kind == "COMMA" and before.kind in {"COMMA", "PIPE_GT", *_OPENING}:
            return token.start, "nothing stands before the comma"
        if before.kind == "COMMA" and token.kind in _CLOSING:
            return before.start, "nothing stands after the comma"
    if tokens[-1].kind == "COMMA":
        return tokens[-1].start, "nothing stands after the comma"
    if tokens[-1].word.endswith(" BY"):  # GROUP BY and its like are one token
        return tokens[-1].start, f"nothing stands after {tokens[-1].word}"
    if tokens[-1].word == "ON":
        return tokens[-1].start, "nothing stands after ON"
    return next(_before_from(tokens), None)


def _before_from(tokens: Sequence[Token]) -> Iterator[tuple[int, str]]:
    """``SELECT a, FROM t``: to Spark a column ``from``, unless the SELECT has another FROM."""
    for index in range(1, len(tokens) - 1):
        before, token = tokens[index - 1 : index + 1]
        starts = before.word == "SELECT" and (index == 1 or tokens[index - 2].kind == "L_PAREN")
        if token.word != "FROM" or not (before.kind == "COMMA" or starts):
            continue
        if tokens[index + 1].kind in {"VAR", "IDENTIFIER", "L_PAREN"} and not _has_from(
            tokens, index + 1
        ):
            missing = "SELECT names no column" if starts else "nothing stands after the comma"
            yield before.start, missing


def _has_from(tokens: Sequence[Token], start: int) -> bool:
    """Whether the SELECT around ``tokens[start]`` has a FROM from there on."""
    depth = 0
    for token in tokens[start:]:
        depth += (token.kind in _OPENING) - (token.kind in _CLOSING)
        if depth < 0 or (depth == 0 and token.word in _SET_OPERATIONS):
            return False
        if depth == 0 and token.word == "FROM":
            return True
    return False


def is_sparks_own(tokens: Sequence[Token], reason: str) -> bool:
    """Whether a query that sqlglot cannot read, for ``reason``, has what only Spark reads."""
    words = [token.word for token in tokens]
    return any(part in reason for part in _OF_ARGUMENTS) or any(
        tuple(words[start : start + len(sequence)]) == sequence
        for start in range(len(words))
        for sequence in _SPARKS_OWN
    )
