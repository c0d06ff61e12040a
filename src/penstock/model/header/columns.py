"""``column <out> <- <asset>.<col>[, ...]``: declared lineage."""

from __future__ import annotations

import re

from penstock.model.header.draft import Draft
from penstock.model.header.lines import CommentLine
from penstock.model.header.tests import split_asset_column
from penstock.model.lineage import ColumnInput, ColumnLineage

FORM = "column out <- ducklake://main/table.column"
_COLUMN = re.compile(r"(?P<column>\S+?)\s*<-\s*(?P<inputs>.+)")


def column(line: CommentLine, draft: Draft) -> None:
    match = _COLUMN.fullmatch(line.rest)
    if match is None:
        draft.drop(line, "it says no lineage", FORM)
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
    draft.column_lineage.append(ColumnLineage(match["column"], inputs))
