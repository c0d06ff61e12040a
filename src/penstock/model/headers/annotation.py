"""Header lines as `Annotations`, by the table of properties, and annotations as lines.

The grammar is annotations.md; what the reference parser drops in silence is reported here, and so
are lines that are nearly annotations: misspelt keywords, block comments, lines after the header.
Prose is common in headers, so a line is only reported when the rest of it reads like the
annotation it would be.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from penstock.errors import Diagnostic, Location
from penstock.model.files.header_lines import CommentLine, Header, read_header
from penstock.model.headers.draft import Annotations, LineDraft
from penstock.model.headers.properties import KEYWORDS, PROPERTIES
from penstock.sql.identifiers import nearest

#: what a line may be meant as, by what follows its first word
_LOOKS = {word: form for word, form in KEYWORDS.items() if form.looks is not None}
_PROSE = frozenset({"use", "tag"})  # begin sentences, too


def parse(
    text: str, path: Path | str = "<text>", *, dialect: str = "spark"
) -> tuple[Annotations, tuple[Diagnostic, ...]]:
    """The annotations of a script and every finding about them, in file order.

    ``dialect`` is that of a script that names none.
    """
    header = read_header(text, Path(path))
    draft = LineDraft()
    for line in header.lines:
        form = KEYWORDS.get(line.keyword)
        read = form.reader if form else None
        (read or _report_misspelt)(line, draft)
    for line in header.later:
        _report_late(line, draft)
    _report_block_comment(text, header, Path(path), draft)
    annotations = draft.annotations
    findings = (_ease(finding, annotations) for finding in draft.findings)
    ordered = sorted(findings, key=lambda finding: finding.location.line or 0)
    dialect = annotations.dialect or dialect
    return replace(annotations, dialect=dialect, places=draft.places), tuple(ordered)


def lines_of(annotations: Annotations) -> list[str]:
    """The lines, without what begins a comment. What is the default has no line."""
    lines: list[str] = []
    for form in (row.line for row in PROPERTIES if row.line):
        value = getattr(annotations, form.field)
        for item in value if isinstance(value, tuple) else (value,):
            text = form.writer(item) if item else None
            lines += [] if text is None else [f"{form.keyword} {text}".rstrip()]
    return lines


def _ease(finding: Diagnostic, annotations: Annotations) -> Diagnostic:
    """A line that could not be read is harmless where a valid one of its kind stands beside it."""
    form = KEYWORDS.get(str(finding.details.get("lost", "")))
    value = getattr(annotations, form.field) if form and form.is_serious else None
    is_present = bool(value) and not isinstance(value, tuple)  # of a tuple each item counts
    return replace(finding, severity="warning") if is_present else finding


def _report_block_comment(text: str, header: Header, path: Path, draft: LineDraft) -> None:
    """``/* pipeline */`` at the top is code to the grammar; say so when it holds annotations."""
    block = text[header.end :].lstrip()
    if not block.startswith("/*"):
        return
    inside = block[2:].partition("*/")[0].split("\n")
    lines = (CommentLine(path, header.code_line, 1, "--", raw.strip(" \t\r*")) for raw in inside)
    if any(line.keyword in KEYWORDS and line.keyword not in _PROSE for line in lines):
        draft.warn(
            Location(path, header.code_line, 1),
            "annotations in a block comment are not read",
            "write them on lines of their own that begin with --",
            rule="block-comment",
        )


def _report_misspelt(line: CommentLine, draft: LineDraft) -> None:
    """Report an unknown first word that was probably meant as a keyword."""
    word = line.keyword.rstrip(":")
    keyword = nearest(word, _LOOKS, cutoff=0.75 if len(word) > 3 else 1.0)
    if keyword:
        message = f"`{line.keyword}` is not an annotation, so the line is dropped"
        hint = f"did you mean `{line.prefix} {f'{keyword} {line.rest}'.strip()}`?"
        _report(line, draft, keyword, message, hint=hint, rule="misspelt-keyword")


def _report_late(line: CommentLine, draft: LineDraft) -> None:
    """Report an annotation below the first code line."""
    if line.keyword in _LOOKS and line.keyword not in _PROSE:
        message = f"`{line.text}` comes after the first line of code, so it is dropped"
        hint = "move it into the comment block at the top"
        _report(line, draft, line.keyword, message, hint=hint, rule="late-annotation")


def _report(
    line: CommentLine, draft: LineDraft, keyword: str, message: str, *, hint: str, rule: str
) -> None:
    """Report a line that is not read, where it reads like the annotation of a keyword."""
    form = _LOOKS[keyword]
    if not re.fullmatch(form.looks or "", line.rest, re.IGNORECASE):
        return
    if form.is_serious:
        draft.error(line.location, message, hint, rule=rule, lost=keyword)
    else:
        draft.warn(line.location, message, hint, rule=rule)
