"""Where sqlglot and Spark's grammar differ: a first sieve for queries in Spark's dialect.

sqlglot accepts empty places in lists, and refuses some of what Spark accepts. The lists below were
checked against the parser of Spark 4.3 with about 12,000 queries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from penstock.sql.tokens import Token, depth_of, may_be_alias

_BEFORE_BY = frozenset({"CLUSTER", "DISTRIBUTE", "GROUP", "ORDER", "PARTITION", "SORT"})
_SET_OPERATIONS = ("UNION", "EXCEPT", "INTERSECT", "MINUS")

#: sequences of words and signs that Spark accepts and sqlglot does not, or not everywhere
_SPARKS_OWN = (
    *(("|>",), ("WATERMARK",), ("RECURSION", "LEVEL"), ("CHANGES", "FROM"), ("NEAREST",)),
    *(("WITH", "SINGLE", "PARTITION"), ("IDENTIFIER", "("), ("LATERAL", "VIEW"), ("STACK", "(")),
    *(("CLUSTER", "BY"), ("DISTRIBUTE", "BY"), ("SORT", "BY"), ("PIVOT", "("), ("INTERVAL", "-")),
    *((">", ">", ">"), ("!", "<"), ("!", ">"), ("~", "~"), ("MAP",), ("REPEATABLE",), ("~~",)),
    *(("TABLE", "("), ("SYSTEM_TIME",), ("SYSTEM_VERSION",), ("TABLESAMPLE", "(")),
    *(("CORR", "(", "DISTINCT"), ("INTERVAL", "+"), ("SELECT", "*", "SELECT"), (",", "FROM", "AS")),
)
#: what sqlglot says of calls with a number of arguments that it does not expect
_OF_ARGUMENTS = ("The number of provided arguments", "Required keyword: 'charset'")


def empty_place(tokens: Sequence[Token]) -> tuple[int, str] | None:
    """The offset of a comma or clause that something is missing beside, and what."""
    for before, token in pairwise(tokens):
        if token.text == "," and (before.text in {",", "|>"} or depth_of(before) > 0):
            return token.start, "nothing stands before the comma"
        if before.text == "," and depth_of(token) < 0:
            return before.start, "nothing stands after the comma"
    if tokens[-1].text == ",":
        return tokens[-1].start, "nothing stands after the comma"
    last = [token.upper for token in tokens[-2:]]
    if last[1:] == ["BY"] and last[0] in _BEFORE_BY:
        return tokens[-2].start, f"nothing stands after {' '.join(last)}"
    if tokens[-1].upper == "ON":
        return tokens[-1].start, "nothing stands after ON"
    return next(_before_from(tokens), None)


def _before_from(tokens: Sequence[Token]) -> Iterator[tuple[int, str]]:
    """``SELECT a, FROM t``: to Spark a column ``from``, unless the SELECT has another FROM."""
    for index in range(1, len(tokens) - 1):
        before, token = tokens[index - 1 : index + 1]
        starts = before.upper == "SELECT" and (index == 1 or tokens[index - 2].text == "(")
        if token.upper != "FROM" or not (before.text == "," or starts):
            continue
        following = tokens[index + 1]
        if (may_be_alias(following) or following.text == "(") and not _has_from(tokens, index + 1):
            missing = "SELECT names no column" if starts else "nothing stands after the comma"
            yield before.start, missing


def _has_from(tokens: Sequence[Token], start: int) -> bool:
    """Whether the SELECT around ``tokens[start]`` has a FROM from there on."""
    depth = 0
    for token in tokens[start:]:
        depth += depth_of(token)
        if depth < 0 or (depth == 0 and token.upper in _SET_OPERATIONS):
            return False
        if depth == 0 and token.upper == "FROM":
            return True
    return False


def is_sparks_own(tokens: Sequence[Token], reason: str) -> bool:
    """Whether a query that sqlglot cannot read, for ``reason``, has what only Spark reads."""
    words = [token.upper for token in tokens]
    return any(part in reason for part in _OF_ARGUMENTS) or any(
        tuple(words[start : start + len(sequence)]) == sequence
        for start in range(len(words))
        for sequence in _SPARKS_OWN
    )
