"""The annotation header of a script: keywords in a table, one small function each.

The grammar is annotations.md; what the reference parser drops in silence is reported here.

Lines that are nearly annotations: misspelt keywords, block comments, lines after the header.

Prose is common in headers, so a line is only reported when the rest of it reads like the
annotation it would be.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from penstock.errors import Diagnostic, Location
from penstock.model.files.header_lines import CommentLine, Header, read_header
from penstock.model.headers import columns, steps, target, tests, triggers
from penstock.model.headers.draft import LineDraft
from penstock.model.headers.needs import needs
from penstock.model.time.needs import NeedLine
from penstock.model.time.partition import PartitionSpec
from penstock.model.values.asset import ColumnLineage, ColumnType, Materialize
from penstock.model.values.data_test import DataTest
from penstock.model.values.schedule import Retry, Trigger
from penstock.sql.identifiers import nearest

KEYWORDS: Mapping[str, Callable[[CommentLine, LineDraft], None]] = {
    "pipeline": steps.pipeline,
    "macros": steps.macros,
    "use": steps.use,
    "on": triggers.on,
    "trigger": triggers.trigger,
    "partitioned": steps.partitioned,
    "materialize": target.materialize,
    "incremental": steps.incremental,
    "late": steps.late,
    "needs": needs,
    "data_test": tests.data_test,
    "column": columns.column,
    "freshness": steps.freshness,
    "debounce": steps.debounce,
    "retry": steps.retry,
    "timeout": steps.timeout,
    "tag": steps.tag,
    "dialect": steps.dialect,
}


@dataclass(frozen=True, slots=True)
class Annotations:
    """The content of a header. ``places`` maps a keyword (``materialize``, ``partitioned``,
    ``pipeline``, ``on:0``, ``data_test:0``...) to where it stands."""

    in_pipeline: bool = False
    macros: bool = False
    use_libs: tuple[str, ...] = ()
    triggers: tuple[Trigger, ...] = ()
    join_mode: str | None = None
    partition: PartitionSpec | None = None
    materialize: Materialize | None = None
    data_tests: tuple[DataTest, ...] = ()
    column_lineage: tuple[ColumnLineage, ...] = ()
    column_types: tuple[ColumnType, ...] = ()
    reads_changes: bool = False
    reads_files: bool = False
    late_run: bool = False
    needs: tuple[NeedLine, ...] = ()
    freshness: str | None = None
    debounce_default: str | None = None
    retry: Retry | None = None
    timeout: str | None = None
    tag: str | None = None
    dialect: str = "spark"
    places: Mapping[str, Location] = field(default_factory=dict, compare=False, repr=False)

    @property
    def incremental(self) -> str | None:
        """Return what of its input its runs read only where it is new."""
        return steps.CHANGES if self.reads_changes else steps.FILES if self.reads_files else None

    def to_dict(self) -> dict[str, Any]:
        """The shape of ``annotation-cases.jsonl``: only what is set."""
        found: dict[str, Any] = {
            "in_pipeline": self.in_pipeline,
            "macros": self.macros,
            "use_libs": list(self.use_libs),
            "triggers": [trigger.to_dict() for trigger in self.triggers],
            "join_mode": self.join_mode,
            "partition": self.partition and self.partition.to_dict(),
            "materialize": self.materialize and self.materialize.to_dict(),
            "data_tests": [test.to_dict() for test in self.data_tests],
            "column_lineage": [item.to_dict() for item in self.column_lineage],
            "incremental": self.incremental,
            "late": "run" if self.late_run else None,
            "needs": [{"table": each.asset, "of": each.text} for each in self.needs],
            "freshness": self.freshness and {"duration": self.freshness},
            "debounce_default": self.debounce_default,
            "retry": self.retry and _retry(self.retry),
            "timeout": self.timeout,
            "tag": self.tag,
            "dialect": self.dialect if self.dialect != "spark" else None,
        }
        return {name: value for name, value in found.items() if value}


def parse(
    text: str, path: Path | str = "<text>", *, dialect: str = "spark"
) -> tuple[Annotations, tuple[Diagnostic, ...]]:
    """The annotations of a script and every finding about them, in file order.

    ``dialect`` is that of a script that names none.
    """
    header = read_header(text, Path(path))
    draft = LineDraft()
    for line in header.lines:
        KEYWORDS.get(line.keyword, report_misspelt)(line, draft)
    for line in header.later:
        report_late(line, draft)
    _report_block_comment(text, header, Path(path), draft)
    findings = (_ease(finding, draft) for finding in draft.findings)
    ordered = sorted(findings, key=lambda found: found.location.line or 0)
    draft.dialect = draft.dialect or dialect
    return _freeze(draft), tuple(ordered)


def _retry(retry: Retry) -> dict[str, Any]:
    return {"count": retry.count} | ({"delay": retry.delay} if retry.delay else {})


def _ease(finding: Diagnostic, draft: LineDraft) -> Diagnostic:
    """A line that could not be read is harmless where a valid one of its kind stands beside it."""
    present = {
        "materialize": draft.materialize,
        "partitioned": draft.partition,
        "dialect": draft.dialect,
    }
    lost = str(finding.details.get("lost", ""))
    return finding if present.get(lost) is None else replace(finding, severity="warning")


def _report_block_comment(text: str, header: Header, path: Path, draft: LineDraft) -> None:
    """``/* pipeline */`` at the top is code to the grammar; say so when it holds annotations."""
    block = text[header.end :].lstrip()
    if not block.startswith("/*"):
        return
    inside = block[2:].partition("*/")[0].split("\n")
    lines = (CommentLine(path, header.code_line, 1, "--", raw.strip(" \t\r*")) for raw in inside)
    if any(line.keyword in KEYWORDS and line.keyword not in {"use", "tag"} for line in lines):
        draft.warn(
            Location(path, header.code_line, 1),
            "annotations in a block comment are not read",
            "write them on lines of their own that begin with --",
            rule="block-comment",
        )


def _freeze(draft: LineDraft) -> Annotations:
    places = dict(draft.places)
    places |= {f"data_test:{n}": where for n, (_, where) in enumerate(draft.data_tests)}
    return Annotations(
        in_pipeline=draft.in_pipeline,
        macros=draft.macros,
        use_libs=tuple(draft.use_libs),
        triggers=tuple(draft.triggers),
        join_mode=draft.join_mode,
        partition=draft.partition,
        materialize=draft.materialize,
        data_tests=tuple(test for test, _ in draft.data_tests),
        column_lineage=tuple(draft.column_lineage),
        column_types=tuple(draft.column_types),
        reads_changes=draft.reads_changes,
        reads_files=draft.reads_files,
        late_run=draft.late_run,
        needs=tuple(draft.needs),
        freshness=draft.freshness,
        debounce_default=draft.debounce_default,
        retry=draft.retry,
        timeout=draft.timeout,
        tag=draft.tag,
        dialect=draft.dialect or "spark",
        places=places,
    )


_ASSET = r"(ducklake(://\S*)?|(delta|s3|res|datatable|volume)://\S+|\$res:\S+)"
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


def report_misspelt(line: CommentLine, draft: LineDraft) -> None:
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


def report_late(line: CommentLine, draft: LineDraft) -> None:
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
    line: CommentLine, draft: LineDraft, keyword: str, message: str, *, hint: str, rule: str
) -> None:
    if keyword in SERIOUS:
        draft.error(line.location, message, hint, rule=rule, lost=keyword)
    else:
        draft.warn(line.location, message, hint, rule=rule)
