"""DuckDB's SQL as the format stores it, made readable: what a parser trips over is rewritten.

Views and macros hold SQL as DuckDB prints its own parse tree (measured, 1.5.5): functions carry
``main.``, lambdas are ``(lambda x: ...)``, and names that had the lake's own in front have
``{DUCKLAKE_CATALOG}`` there.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import sqlglot

from penstock.lake.naming import fold

_CATALOG = "{DUCKLAKE_CATALOG}."


def readable(sql: str, own: Collection[str] = ()) -> str:
    """``sql`` without those. ``own`` are macros (``main.f``, folded) whose schema has to stay.

    Raises sqlglot's TokenError.
    """
    sql = sql.replace(_CATALOG, "")
    tokens = sqlglot.tokenize(sql, read="duckdb")
    cuts: list[tuple[int, int, str]] = []
    for at, token in enumerate(tokens):
        cuts += _schema_of_function(tokens, at, own)
        if fold(token.text) == "lambda":
            cuts += _lambda(tokens, at)
        if token.text == "->":
            cuts += _arrow(tokens, at)
    return _cut(sql, cuts)


def projections(sql: str) -> list[str]:
    """The text of each item of the first SELECT's list: DuckDB's name for one without an alias."""
    sql = sql.replace(_CATALOG, "")
    tokens = sqlglot.tokenize(sql, read="duckdb")
    words = [token.text.upper() for token in tokens]
    start = _first_select(words)
    if start is None:
        return []
    items: list[str] = []
    begin, depth = start, 0
    for at in range(start, len(tokens)):
        depth += _depth(tokens[at].text)
        ended = depth < 0 or (depth == 0 and words[at] in _AFTER_LIST)
        if ended or (depth == 0 and tokens[at].text == ","):
            items.append(_between(sql, tokens, begin, at))
            begin = at + 1
        if ended:
            return items
    return [*items, _between(sql, tokens, begin, len(tokens))]


_AFTER_LIST = {"FROM", "WHERE", "GROUP", "GROUP BY", "ORDER BY", "LIMIT", "UNION", "HAVING"}


def _first_select(words: Sequence[str]) -> int | None:
    """The token after the SELECT that names the columns: the first that is not in a WITH."""
    depth = 0
    inside = words[:1] == ["WITH"]
    for at, word in enumerate(words):
        if word == "SELECT" and not (inside and depth > 0):
            return at + 1
        before = depth
        depth += _depth(word)
        if inside and before == 1 and depth == 0 and words[at + 1 : at + 2] == ["("]:
            inside = False
    return None


def _between(sql: str, tokens: Sequence[Any], begin: int, end: int) -> str:
    if begin >= end:
        return ""
    if tokens[begin].text.upper() == "DISTINCT":
        begin += 1
    text = sql[tokens[begin].start : tokens[end - 1].end + 1]
    return text.replace(" AS DOUBLE)", ' AS "DOUBLE")')  # as DuckDB prints what it has read


def _depth(text: str) -> int:
    return {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(text, 0)


def _schema_of_function(
    tokens: Sequence[Any], at: int, own: Collection[str]
) -> list[tuple[int, int, str]]:
    """``main.`` of ``main.list_value(``."""
    if at + 3 >= len(tokens) or fold(tokens[at].text) != "main":
        return []
    dot, name, bracket = (token.text for token in tokens[at + 1 : at + 4])
    if dot != "." or bracket != "(" or f"main.{fold(name)}" in own:
        return []
    if at and tokens[at - 1].text == ".":
        return []
    return [(tokens[at].start, tokens[at + 2].start, "")]


def _lambda(tokens: Sequence[Any], at: int) -> list[tuple[int, int, str]]:
    """``(lambda x, y: body)`` as ``(x, y) -> body``, without the brackets around it."""
    colon = next((i for i in range(at, len(tokens)) if tokens[i].text == ":"), None)
    close = _closing(tokens, at - 1)
    if colon is None or close is None or tokens[at - 1].text != "(":
        return []
    names = ", ".join(t.text for t in tokens[at + 1 : colon] if t.text != ",")
    head = f"({names}) -> " if "," in names else f"{names} -> "
    return [
        (tokens[at - 1].start, tokens[colon].end + 1, head),
        (tokens[close].start, tokens[close].end + 1, ""),
    ]


def _arrow(tokens: Sequence[Any], at: int) -> list[tuple[int, int, str]]:
    """The older ``list_filter(l, (x -> body))``, told from JSON's ``->`` by the function."""
    opening = at - 2
    if opening < 1 or tokens[opening].text != "(" or tokens[opening - 1].text != ",":
        return []
    close, depth, caller = _closing(tokens, opening), 0, ""
    for i in range(opening - 1, 0, -1):
        depth += _depth(tokens[i].text)
        if depth > 0:
            caller = fold(tokens[i - 1].text)
            break
    if close is None or not caller.startswith(("list_", "array_")):
        return []
    return [
        (tokens[opening].start, tokens[opening].end + 1, ""),
        (tokens[close].start, tokens[close].end + 1, ""),
    ]


def _closing(tokens: Sequence[Any], at: int) -> int | None:
    depth = 0
    for i in range(max(at, 0), len(tokens)):
        depth += _depth(tokens[i].text)
        if depth == 0:
            return i
    return None


def _cut(sql: str, cuts: Sequence[tuple[int, int, str]]) -> str:
    parts: list[str] = []
    position = 0
    for start, end, text in sorted(cuts):
        parts += [sql[position:start], text]
        position = end
    return "".join([*parts, sql[position:]])
