"""Spellings of other engines that Spark does not parse: edits of the text, or an error that says
which dialect they are in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock.model.mapping import Edit
from penstock.sql.tokens import MARKER, NUMBER, STRING, SYMBOL, WORD, Token, closing

_SET_WORDS = ("UNION", "EXCEPT", "INTERSECT", "MINUS", "ALL", "DISTINCT")
_STRUCTURE = frozenset({*_SET_WORDS, "(", ")", "WITH", "SELECT", "FROM", "TABLE"})


@dataclass(slots=True)
class _Level:
    """A bracket level: whether a query begins here, and whether a WITH waits for its query."""

    fresh: bool = True
    after_with: bool = False


def from_first(tokens: Sequence[Token]) -> list[Edit]:
    """``FROM x ...`` without SELECT, and ``TABLE x``, as ``SELECT * FROM x``.

    ``FROM x SELECT y`` is Spark's own and stays.
    """
    return [
        Edit(token.start, token.end, "SELECT * FROM")
        for index, token in query_starts(tokens)
        if token.upper == "TABLE" or not _selects(tokens, index)
    ]


def query_starts(tokens: Sequence[Token]) -> Iterator[tuple[int, Token]]:
    """FROM and TABLE where a query begins with them."""
    levels = [_Level()]
    for index, token in enumerate(tokens):
        level = levels[-1]
        if token.upper not in _STRUCTURE:
            level.fresh = False
            continue
        begins = level.fresh or (level.after_with and tokens[index - 1].text == ")")
        if begins and _begins_query(tokens, index):
            yield index, token
        if token.text == "(":
            level.fresh = False
            levels.append(_Level())
            continue
        if token.text == ")" and len(levels) > 1:
            levels.pop()
            continue
        level.after_with = token.upper == "WITH" or (level.after_with and token.upper != "SELECT")
        level.fresh = token.upper in _SET_WORDS and (token.upper in _SET_WORDS[:4] or level.fresh)


def _begins_query(tokens: Sequence[Token], index: int) -> bool:
    if tokens[index].upper == "FROM":
        return True
    following = tokens[index + 1 : index + 2]
    return tokens[index].upper == "TABLE" and bool(following) and following[0].text != "("


def _selects(tokens: Sequence[Token], index: int) -> bool:
    depth = 0
    for token in tokens[index + 1 :]:
        depth += (token.text == "(") - (token.text == ")")
        if depth < 0 or (depth == 0 and token.upper in _SET_WORDS[:4]):
            return False
        if depth == 0 and token.upper == "SELECT":
            return True
    return False


# Functions that only DuckDB has. Those that both have, with other arguments, are not told apart.
_FUNCTIONS = frozenset(
    {
        *("arg_max", "arg_min", "array_to_string", "datepart", "epoch_ms", "epoch_us"),
        *("generate_series", "isodow", "isoyear", "list", "list_aggregate", "list_append"),
        *("list_apply", "list_concat", "list_contains", "list_distinct", "list_filter"),
        *("list_has_all", "list_has_any", "list_position", "list_reduce", "list_reverse"),
        *("list_slice", "list_sort", "list_sum", "list_transform", "list_unique", "list_value"),
        *("list_zip", "make_timestamp_ms", "quantile_cont", "quantile_disc", "regexp_full_match"),
        *("regexp_matches", "string_split", "strftime", "strlen", "strptime", "struct_extract"),
        *("struct_pack", "time_bucket", "to_days", "to_hours", "to_minutes", "to_months"),
        *("to_seconds", "to_weeks", "to_years", "try_strptime", "unnest"),
    }
)
_UNDERSCORED = re.compile(r"\d+(?:_\d+)+")
_UNITS_FIRST = ("date_diff", "datediff")


def duckdb_forms(tokens: Sequence[Token]) -> Iterator[tuple[int, str]]:
    """Offsets and names of what Spark would refuse, or take for something else."""
    for index, token in enumerate(tokens):
        form = _FORMS.get(token.kind)
        name = None if form is None else form(tokens, index)
        if name is not None:
            yield token.start, name


def _of_word(tokens: Sequence[Token], index: int) -> str | None:
    if _before_bracket(tokens, index):
        return _call(tokens, index)
    excludes = tokens[index].upper == "EXCLUDE" and index > 0 and tokens[index - 1].text == "*"
    return "* EXCLUDE" if excludes else None


def _of_number(tokens: Sequence[Token], index: int) -> str | None:
    written = tokens[index].text
    return (
        written if not _before_bracket(tokens, index) and _UNDERSCORED.fullmatch(written) else None
    )


def _of_symbol(tokens: Sequence[Token], index: int) -> str | None:
    if tokens[index].text != "[" or _before_bracket(tokens, index):
        return None
    return "a slice [a:b]" if _slices(tokens, index) else None


#: kind of token -> what Spark would refuse of those that begin with it
_FORMS = {WORD: _of_word, NUMBER: _of_number, SYMBOL: _of_symbol}


def _before_bracket(tokens: Sequence[Token], index: int) -> bool:
    return index + 1 < len(tokens) and tokens[index + 1].text == "("


def _call(tokens: Sequence[Token], index: int) -> str | None:
    name = tokens[index].text.lower()
    if index > 0 and tokens[index - 1].text == ".":
        return None
    if name in _FUNCTIONS or name == "columns":
        return f"{name}(...)"
    if name == "exclude" and index > 0 and tokens[index - 1].text == "*":
        return "* EXCLUDE"
    unit = tokens[index + 2 : index + 3] if name in _UNITS_FIRST else ()
    return f"{name}('unit', ...)" if unit and unit[0].kind == STRING else None


def _slices(tokens: Sequence[Token], index: int) -> bool:
    """``l[1:2]``: a colon between brackets that follow a value."""
    if tokens[index].text != "[" or index == 0:
        return False
    close = closing(tokens, index)
    inside = tokens[index + 1 : close] if close is not None else ()
    return any(token.text == ":" or token.kind == MARKER for token in inside[:2])
