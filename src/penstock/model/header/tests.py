"""``data_test`` lines: each form by its own small function."""

from __future__ import annotations

import re
from collections.abc import Callable

from penstock.model.asset import Asset, parse_asset
from penstock.model.data_test import (
    AcceptedValuesTest,
    CustomTest,
    DataTest,
    NotNullTest,
    RelationshipsTest,
    UniqueTest,
)
from penstock.model.header.draft import Draft
from penstock.model.header.lines import CommentLine, split_values
from penstock.sql.identifiers import nearest

_COLUMN = re.compile(r"[^\s\"'=]+")
_ACCEPTED = re.compile(r"(?P<column>[^\s=]+)\s*=\s*(?P<values>.*)")
_RELATION = re.compile(r"(?P<column>\S+?)\s*->\s*(?P<target>\S+)")

#: kind -> what follows it, after the column
FORMS = {
    "unique": "",
    "not_null": "",
    "accepted_values": " = a,b",
    "relationships": " -> ducklake://main/table.column",
}


def data_test(line: CommentLine, draft: Draft) -> None:
    """Accumulates. A line that cannot be read would publish untested data: an error."""
    kind, *tail = line.rest.split(None, 1) or [""]
    rest = tail[0] if tail else ""
    build = _KINDS.get(kind)
    test = build(rest) if build else _custom(line.rest)
    if test is None:
        guess = kind if kind in FORMS else nearest(kind, FORMS)
        form = _nearest_form(guess, rest) if guess else "path/of/test"
        draft.refuse(line, "it is not a data test", f"data_test {form}")
        return
    if isinstance(test, AcceptedValuesTest):
        _report_lost_values(line, rest, test, draft)
    draft.data_tests.append((test, line.location))


def _nearest_form(kind: str, rest: str) -> str:
    """The test of that kind on the column that the line seems to mean, if it would be valid."""
    words = rest.replace("=", " = ").replace("->", " -> ").split()
    column = words[0] if words and _COLUMN.fullmatch(words[0]) else "column"
    tail = " ".join(word for word in words[1:] if word not in {"=", "->"})
    guesses = (f"{column} = {tail}", f"{column} -> {tail}", f"{column}{FORMS[kind]}")
    return next(f"{kind} {guess}" for guess in guesses if _KINDS[kind](guess) is not None)


def split_asset_column(text: str) -> tuple[Asset, str] | None:
    """``<asset>.<column>`` cut at its last dot."""
    path, dot, column = text.rpartition(".")
    asset = parse_asset(path) if dot and column else None
    return None if asset is None else (asset, column)


def _unique(rest: str) -> DataTest | None:
    return UniqueTest(rest) if _COLUMN.fullmatch(rest) else None


def _not_null(rest: str) -> DataTest | None:
    return NotNullTest(rest) if _COLUMN.fullmatch(rest) else None


def _accepted_values(rest: str) -> DataTest | None:
    match = _ACCEPTED.fullmatch(rest)
    values = tuple(value for value in split_values(match["values"]) if value) if match else ()
    return AcceptedValuesTest(match["column"], values) if match and values else None


def _relationships(rest: str) -> DataTest | None:
    match = _RELATION.fullmatch(rest)
    found = split_asset_column(match["target"]) if match else None
    return RelationshipsTest(match["column"], *found) if match and found else None


def _custom(rest: str) -> DataTest | None:
    return CustomTest(rest) if "/" in rest and len(rest.split()) == 1 else None


_KINDS: dict[str, Callable[[str], DataTest | None]] = {
    "unique": _unique,
    "not_null": _not_null,
    "accepted_values": _accepted_values,
    "relationships": _relationships,
}


def _report_lost_values(
    line: CommentLine, rest: str, test: AcceptedValuesTest, draft: Draft
) -> None:
    written = len(split_values(rest.partition("=")[2]))
    if written > len(test.values):
        draft.warn(
            line.location,
            f"`{line.text}`: an empty value is not an accepted value and is dropped",
            "list the values that may occur; NULL is always accepted",
            rule="accepted-values-empty",
        )
