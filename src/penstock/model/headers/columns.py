"""``column <out> <- <asset>.<col>[, ...]`` declares lineage, ``column <out> <TYPE>`` a type."""

from __future__ import annotations

import re

from penstock.model.files.header_lines import CommentLine, unquote
from penstock.model.headers.draft import LineDraft
from penstock.model.headers.tests import split_asset_column
from penstock.model.values.asset import ColumnInput, ColumnLineage, ColumnType
from penstock.sql.types import spark_type

FORM = "column out <- ducklake://main/table.column"
TYPE_FORM = "column out BIGINT"
_COLUMN = re.compile(r"(?P<column>\S+?)\s*<-\s*(?P<inputs>.+)")
_TYPED = re.compile(r"""(?P<column>'[^']+'|"[^"]+"|\S+)\s+(?P<type>.+)""")


def column(line: CommentLine, draft: LineDraft) -> None:
    match = _COLUMN.fullmatch(line.rest)
    if match is None:
        _type(line, draft)
        return
    texts = [text.strip() for text in match["inputs"].split(",")]
    found = {text: split_asset_column(text) for text in texts}
    inputs = tuple(ColumnInput(*item) for item in found.values() if item)
    if not inputs:
        draft.drop(line, "none of its inputs is <asset>.<column>", FORM)
        return
    for text, item in found.items():
        if item is None:
            draft.warn(
                line.location,
                f"`{line.text}`: the input `{text}` is dropped: it is no <asset>.<column>",
                f"write `{line.prefix} {FORM}`",
                rule="column-input",
            )
    draft.places.setdefault(f"column:{match['column']}", line.location)
    draft.column_lineage.append(ColumnLineage(match["column"], inputs))


def _type(line: CommentLine, draft: LineDraft) -> None:
    """Types that only a model which reads its own table needs, before its first run."""
    match = _TYPED.fullmatch(line.rest)
    name, type_ = (unquote(match["column"]), match["type"]) if match else ("", "")
    try:
        spark_type(type_)
    except ValueError:
        draft.drop(line, "it says neither lineage nor a type", f"{FORM}` or `{TYPE_FORM}")
        return
    if any(column.name.casefold() == name.casefold() for column in draft.column_types):
        draft.error(
            line.location, f"column {name} is declared twice", "keep one", rule="column-twice"
        )
        return
    draft.column_types.append(ColumnType(name, type_, line.location))
