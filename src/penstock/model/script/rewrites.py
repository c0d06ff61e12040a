"""Spellings of other engines that Spark does not parse: edits of the text, or an error that says
which dialect they are in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from penstock.sql.query.nesting import is_in_from
from penstock.sql.tokens import (
    MARKER,
    NAME,
    NO_VALUE,
    NUMBER,
    STRING,
    SYMBOL,
    WORD,
    Token,
    closing,
    split_at,
)

# Functions that only DuckDB has. Those that both have, with other arguments, are not told apart.
_FUNCTIONS = frozenset(
    {
        *("approx_quantile", "arg_max", "arg_min", "array_slice", "array_to_string"),
        *("datesub", "epoch", "epoch_ms", "epoch_ns", "epoch_us", "gen_random_uuid"),
        *("generate_series", "get_current_timestamp", "isodow", "isoyear", "json_extract"),
        *(
            "json_extract_string",
            "list",
            "list_aggr",
            "list_aggregate",
            "list_append",
            "list_apply",
        ),
        *("list_avg", "list_concat", "list_contains", "list_count", "list_distinct"),
        *("list_element", "list_extract", "list_filter", "list_first", "list_has_all"),
        *("list_has_any", "list_last", "list_max", "list_min", "list_position", "list_prepend"),
        *("list_reduce", "list_reverse", "list_reverse_sort", "list_slice", "list_sort"),
        *("list_sum", "list_transform", "list_unique", "list_value", "list_zip"),
        *("make_timestamp_ms", "map_extract", "quantile", "quantile_cont", "quantile_disc"),
        *("regexp_full_match", "regexp_matches", "regexp_split_to_array", "str_split"),
        *("str_split_regex", "string_split", "string_split_regex", "strftime", "strip_accents"),
        *("strlen", "strptime", "struct_extract", "struct_insert", "struct_pack", "to_days"),
        *("to_hours", "to_minutes", "to_months", "to_seconds", "to_weeks", "to_years", "today"),
        *("try_strptime", "unnest", "yearweek"),
    }
)
_UNDERSCORED = re.compile(r"\d+(?:_\d+)+")
_UNITS_FIRST = ("date_diff", "datediff")
_NO_FACTOR = frozenset({"SELECT", "DISTINCT", "ALL", ",", ".", "("})  # before a ``*`` that is all


def duckdb_forms(tokens: Sequence[Token]) -> Iterator[tuple[int, str]]:
    """Offsets and names of what Spark would refuse, or take for something else."""
    for index, token in enumerate(tokens):
        form = _FORMS.get(token.kind)
        name = None if form is None else form(tokens, index)
        if name is not None:
            yield token.start, name


def _upper(tokens: Sequence[Token], index: int) -> str:
    return tokens[index].upper if 0 <= index < len(tokens) else ""


def _kind(tokens: Sequence[Token], index: int) -> str:
    return tokens[index].kind if 0 <= index < len(tokens) else ""


def _of_word(tokens: Sequence[Token], index: int) -> str | None:
    word = tokens[index].upper
    for phrase, name in _PHRASES.get(word, ()):
        if all(_upper(tokens, index + at) == each for at, each in enumerate(phrase)):
            return name
    before = _upper(tokens, index - 1)
    if word in {"REPLACE", "RENAME"} and before == "*" and _before_bracket(tokens, index):
        return f"* {word}" if _upper(tokens, index - 2) in _NO_FACTOR else None
    if word == "GLOB" and _kind(tokens, index + 1) == STRING and _ends_value(tokens, index - 1):
        return "GLOB"
    if word == "LAMBDA" and _upper(tokens, index + 2) == ":":
        return "lambda x: ..."
    if _before_bracket(tokens, index):
        return _call(tokens, index)
    return "* EXCLUDE" if word == "EXCLUDE" and before == "*" else None


_PHRASES: Mapping[str, Sequence[tuple[tuple[str, ...], str]]] = {
    "DISTINCT": ((("DISTINCT", "ON", "("), "DISTINCT ON"),),
    "MAP": ((("MAP", "{"), "MAP {...}"),),
    "POSITIONAL": ((("POSITIONAL", "JOIN"), "POSITIONAL JOIN"),),
    "SIMILAR": ((("SIMILAR", "TO"), "SIMILAR TO"),),
    "UNION": (
        (("UNION", "BY", "NAME"), "UNION BY NAME"),
        (("UNION", "ALL", "BY", "NAME"), "UNION ALL BY NAME"),
    ),
    "USING": ((("USING", "SAMPLE"), "USING SAMPLE"),),
}


def _of_number(tokens: Sequence[Token], index: int) -> str | None:
    written = tokens[index].text
    if _upper(tokens, index - 1) == "LIMIT" and _upper(tokens, index + 1) == "%":
        ends = index + 2 >= len(tokens) or _upper(tokens, index + 2) in {")", ";", "OFFSET"}
        return f"LIMIT {written}%" if ends else None
    return (
        written if not _before_bracket(tokens, index) and _UNDERSCORED.fullmatch(written) else None
    )


def _of_symbol(tokens: Sequence[Token], index: int) -> str | None:
    symbol = tokens[index].text
    if symbol == "->>":
        return "->>"
    if symbol == "/" and _upper(tokens, index + 1) == "/":
        return "//" if tokens[index].end == tokens[index + 1].start else None
    if symbol == "{" and _upper(tokens, index - 1) != "MAP":
        named = _kind(tokens, index + 1) in {STRING, NAME, WORD}
        return "a struct {'a': ...}" if named and _upper(tokens, index + 2) == ":" else None
    if symbol != "[" or _before_bracket(tokens, index):
        return None
    if _ends_value(tokens, index - 1):
        return "a slice [a:b]" if _slices(tokens, index) else None
    return None if _upper(tokens, index - 1) == ":" else "a list [...]"


def _ends_value(tokens: Sequence[Token], index: int) -> bool:
    """Return whether a value may end there, so that what follows is about it."""
    if index < 0:
        return False
    token = tokens[index]
    if token.kind == SYMBOL:
        return token.text in {")", "]", "}"}
    return token.kind != WORD or token.upper not in NO_VALUE


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
    if name == "range" and not is_in_from(tokens, index):
        return "range(...) as a value"
    if name == "exclude" and index > 0 and tokens[index - 1].text == "*":
        return "* EXCLUDE"
    if name not in _UNITS_FIRST:
        return None
    # A unit in quotes: Spark has `datediff('2026-01-02', day)` too, of two dates.
    end = closing(tokens, index + 1)
    arguments = [] if end is None else split_at(tokens[index + 2 : end], ",")
    has_unit = len(arguments) == 3 and [token.kind for token in arguments[0]] == [STRING]
    return f"{name}('unit', ...)" if has_unit else None


def _slices(tokens: Sequence[Token], index: int) -> bool:
    """``l[1:2]``: a colon between brackets that follow a value."""
    if tokens[index].text != "[" or index == 0:
        return False
    close = closing(tokens, index)
    inside = tokens[index + 1 : close] if close is not None else ()
    return any(token.text == ":" or token.kind == MARKER for token in inside[:2])
