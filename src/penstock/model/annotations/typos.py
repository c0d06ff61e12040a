"""Lines that are nearly annotations: misspelt keywords, block comments, lines after the header.

Prose is common in headers, so a line is only reported when the rest of it reads like the
annotation it would be.
"""

from __future__ import annotations

import re

from penstock.model.annotations.draft import Draft
from penstock.model.files.header_lines import CommentLine
from penstock.sql.identifiers import nearest

_ASSET = r"(ducklake(://\S*)?|(s3|res|datatable|volume)://\S+|\$res:\S+)"
_DURATION = r"\d+[smhd]?"

#: keyword -> what the rest of a line must look like for it to be meant as that annotation
LOOKS = {
    keyword: re.compile(pattern, re.IGNORECASE)
    for keyword, pattern in {
        "pipeline": "",
        "macros": "",
        "use": r"\S+/\S+",
        "on": rf"{_ASSET}.*|schedule|webhook|email|kafka|mqtt|nats|postgres|sqs|gcp|data_upload",
        "trigger": "all|any",
        "partitioned": r"(daily|hourly|weekly|monthly|dynamic)( .*)?",
        "materialize": rf"((manual|scd2) )?{_ASSET}.*",
        "data_test": r"(unique|not_null|accepted_values|relationships) .*|\S+/\S+",
        "column": "[^<]*<-.*",
        "freshness": _DURATION,
        "debounce": _DURATION,
        "retry": r"\d+( .*)?",
        "timeout": _DURATION,
        "tag": r"\S+",
        "dialect": "spark|duckdb",
    }.items()
}
#: losing one of these would write other data than the author asked for
SERIOUS = ("materialize", "partitioned", "data_test", "dialect")


def meant(line: CommentLine) -> str | None:
    """The keyword that a line with an unknown first word was probably meant to begin with."""
    word = line.keyword.rstrip(":")
    guess = nearest(word, LOOKS, cutoff=0.75 if len(word) > 3 else 1.0)
    return guess if guess and LOOKS[guess].fullmatch(line.rest) else None


def report_misspelt(line: CommentLine, draft: Draft) -> None:
    keyword = meant(line)
    if keyword is None:
        return
    _report(
        line,
        draft,
        keyword,
        f"`{line.keyword}` is not an annotation, so the line is dropped",
        hint=f"did you mean `{line.prefix} {f'{keyword} {line.rest}'.strip()}`?",
        rule="misspelt-keyword",
    )


def report_late(line: CommentLine, draft: Draft) -> None:
    """An annotation below the first code line."""
    looks = LOOKS.get(line.keyword)
    if looks is None or not looks.fullmatch(line.rest) or line.keyword in {"use", "tag"}:
        return
    _report(
        line,
        draft,
        line.keyword,
        f"`{line.text}` comes after the first line of code, so it is dropped",
        hint="move it into the comment block at the top",
        rule="late-annotation",
    )


def _report(
    line: CommentLine, draft: Draft, keyword: str, message: str, *, hint: str, rule: str
) -> None:
    if keyword in SERIOUS:
        draft.error(line.location, message, hint, rule=rule, lost=keyword)
    else:
        draft.warn(line.location, message, hint, rule=rule)
