"""Read the keyword ``needs``: which slices of an input a slice of the model needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.errors import Diagnostic
from penstock.model.files.header_lines import CommentLine
from penstock.model.headers.draft import LineDraft
from penstock.model.time.needs import FORMS, Need, NeedLine, read_need
from penstock.model.values.asset import TableName, parse_asset, table_of
from penstock.model.values.names import Names, UnknownName
from penstock.sql.identifiers import dotted


def needs(line: CommentLine, draft: LineDraft) -> None:
    """``needs <table> lag=<duration>|same|all|none``."""
    asset, _, text = line.rest.rpartition(" ")
    asset, text = asset.strip(), text.strip()
    if not asset:
        draft.refuse(line, "it names a table and what is needed of it", f"needs {text} all")
    elif read_need(text) is None:
        draft.refuse(line, f"what is needed is {FORMS}", f"needs {asset} lag=7d")
    elif any(each.asset == asset for each in draft.needs):
        draft.refuse(line, f"it says already what it needs of {asset}", f"needs {asset} {text}")
    else:
        draft.needs.append(NeedLine(asset, text, line.location))


def resolved(
    lines: Sequence[NeedLine], names: Names
) -> tuple[tuple[tuple[TableName, Need], ...], tuple[Diagnostic, ...]]:
    """Return the tables that lines name with what is needed of each, and what is wrong."""
    found: list[tuple[TableName, Need]] = []
    findings: list[Diagnostic] = []
    for line in lines:
        try:
            found.append((_table(line.asset, names), line.need))
        except UnknownName as error:
            findings.append(Diagnostic("error", str(error), line.location, error.hint, "needs"))
    return tuple(found), (*findings, *_twice(found, lines))


def _table(text: str, names: Names) -> TableName:
    asset = parse_asset(text, bare_ducklake=False)
    table = None if asset is None else table_of(asset)
    return table or names.resolve(tuple(dotted(text) or (text,)))


def _twice(
    found: Sequence[tuple[TableName, Need]], lines: Sequence[NeedLine]
) -> Iterator[Diagnostic]:
    seen: set[str] = set()
    for (table, _), line in zip(found, lines, strict=False):
        if str(table) in seen:
            message = f"`needs {line.asset} {line.text}`: {table} has a line already"
            yield Diagnostic("error", message, line.location, "keep one of them", "needs")
        seen.add(str(table))
