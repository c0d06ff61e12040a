"""Header lines as `Annotations` and those as a `Declaration`, and annotations as lines.

The grammar is annotations.md; what the reference parser drops in silence is reported here, and so
are lines that are nearly annotations: misspelt keywords, block comments, lines after the header.
Prose is common in headers, so a line is only reported when the rest of it reads like the
annotation it would be. Rules that only this form has are checked when it declares a model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from penstock.errors import Diagnostic, Location
from penstock.model.files.header_lines import CommentLine, Header, read_header, split_values
from penstock.model.headers.draft import Annotations, LineDraft, build_declaration
from penstock.model.headers.properties import KEYWORDS, PROPERTIES
from penstock.model.script.declaration import Declaration, SchemaChange
from penstock.model.time.moments import HINT as MOMENT_HINT
from penstock.model.time.moments import read_format, read_moment
from penstock.model.time.needs import Need, NeedLine
from penstock.model.time.time_range import TimeColumn, TimeRange
from penstock.model.values.asset import (
    Asset,
    Materialize,
    Names,
    TableName,
    UnknownName,
    parse_asset,
    table_of,
)
from penstock.model.values.history import History, annotated, clashes
from penstock.model.values.kinds import OF_INTERVALS
from penstock.model.values.schedule import Cadence
from penstock.model.values.upsert import Upsert
from penstock.sql.identifiers import dotted, nearest

TARGET = "ducklake://main/table"
#: how often a model by time is due that is partitioned so; its intervals are as long
CRONS = {"hourly": "@hourly", "daily": None, "monthly": "@monthly"}
# What a declaration calls the places of a header's lines.
_PLACES = {"materialize": "target", "partitioned": "partition"}
# What each value of ``on_schema_change`` does with new columns, and with missing ones.
_OF_TABLE: Mapping[str | None, SchemaChange] = {
    None: SchemaChange("warn", "error"),
    "warn": SchemaChange("warn", "keep"),
    "ignore": SchemaChange("ignore", "ignore"),
    "fail": SchemaChange("error", "error"),
    "sync": SchemaChange("warn", "warn"),
}
# A history keeps what its versions had: its columns are frozen, and none is ever dropped.
_OF_HISTORY: Mapping[str | None, SchemaChange] = {
    **_OF_TABLE,
    None: SchemaChange("error", "error"),
    "sync": SchemaChange("warn", "error"),
}
#: both by whether the strategy keeps versions
SCHEMA_CHANGES = {False: _OF_TABLE, True: _OF_HISTORY}
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
        reader = form.reader if form else None
        (reader or _report_misspelt)(line, draft)
    for line in header.later:
        if line.keyword in _LOOKS and line.keyword not in _PROSE:
            message = f"`{line.text}` comes after the first line of code, so it is dropped"
            hint = "move it into the comment block at the top"
            _report(line, draft, line.keyword, message, hint=hint, rule="late-annotation")
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


@dataclass(frozen=True, slots=True)
class _Header:
    """A header under examination."""

    path: Path
    annotations: Annotations
    names: Names

    def place(self, keyword: str) -> Location:
        return self.annotations.places.get(keyword, Location(self.path, 1, 1))

    def error(self, keyword: str, message: str, hint: str, rule: str) -> Diagnostic:
        return Diagnostic("error", message, self.place(keyword), hint, rule)


def declare(
    text: str,
    path: Path,
    annotations: Annotations,
    names: Names,
    findings: Sequence[Diagnostic] = (),
) -> tuple[Declaration | None, tuple[Diagnostic, ...]]:
    """Read the annotations of a header as a declaration.

    Args:
        text: The script.
        path: Its file.
        annotations: Those of its header.
        names: What they may name.
        findings: What is wrong with them so far.

    Returns:
        The declaration, None without a table; and the findings with ``findings`` first.
    """
    header = _Header(path, annotations, names)
    findings = (*findings, *_check(header, already=findings))
    managed = annotations.materialize
    target = table_of(managed.target) if managed else None
    if managed is None or target is None:
        return None, findings
    strategy, spec = managed.strategy, annotations.partition
    partition = None if strategy.time_column else spec
    # A model by time is due as often as it is partitioned, once a day by default.
    is_due = spec is not None and strategy.time_column
    cadence = Cadence(cron=CRONS.get(spec.kind), start=spec.start) if spec and is_due else Cadence()
    needs, unknown = _resolve_needs(annotations.needs, names)
    values = {
        row.field: getattr(annotations, row.line.field)
        for row in PROPERTIES
        if row.line and row.field
    }
    values |= {
        "path": path,
        "target": target,
        "strategy": strategy,
        "code": read_header(text, path).end,
        "keys": managed.keys if strategy.keyed else (),
        "partition": partition,
        "options": Upsert(sequence=managed.sequence, deletes=managed.deletes)
        if managed.sequence is not None and strategy.merges
        else _history_of(managed),
        "schema_change": SCHEMA_CHANGES[strategy.keeps_versions][managed.on_schema_change],
        "input_needs": needs,
        "tags": (annotations.tag,) if annotations.tag else (),
        "cadence": cadence,
        "time_range": _time_range(managed, cadence) if partition is None else None,
        "meaning": {
            "materialize": managed.to_dict(),
            "partition": partition and partition.to_dict(),
        },
        "places": _places(annotations),
    }
    return build_declaration(values), (*findings, *unknown)


def _history_of(managed: Materialize) -> History | None:
    if not managed.strategy.keeps_versions:
        return None
    return annotated(
        managed.track, closes=managed.deletes == "close", max_closed=managed.max_closed
    )


def _places(annotations: Annotations) -> dict[str, Location]:
    places = {_PLACES.get(name, name): place for name, place in annotations.places.items()}
    places |= {f"needs:{n}": need.location for n, need in enumerate(annotations.needs)}
    if "partition" in places:
        places["start"] = places["cron"] = places["partition"]
    if "target" in places:
        places |= dict.fromkeys(("time_column", "sequence", *OF_INTERVALS), places["target"])
    return places


def _time_range(managed: Materialize, cadence: Cadence) -> TimeRange | None:
    if not managed.strategy.may_have_intervals:
        return None
    name, *form = split_values(managed.time or "") or [""]
    return TimeRange(
        # a column, or an expression, and perhaps a format
        column=None
        if managed.time is None
        else TimeColumn(name, form[0] if form else None, "(" in name),
        batch_size=managed.batch_size,
        lookback=managed.lookback,
        cadence=cadence,
    )


def _resolve_needs(
    lines: Sequence[NeedLine], names: Names
) -> tuple[tuple[tuple[TableName, Need], ...], tuple[Diagnostic, ...]]:
    """Return the tables that lines name with what is needed of each, and what is wrong."""
    needs: list[tuple[TableName, Need]] = []
    findings: list[Diagnostic] = []
    for line in lines:
        asset = parse_asset(line.asset, bare_ducklake=False)
        table = None if asset is None else table_of(asset)
        try:
            table = table or names.resolve(tuple(dotted(line.asset) or (line.asset,)))
        except UnknownName as error:
            findings.append(Diagnostic("error", str(error), line.location, error.hint, "needs"))
            continue
        if str(table) in {str(name) for name, _ in needs}:
            message = f"`needs {line.asset} {line.text}`: {table} has a line already"
            findings.append(
                Diagnostic("error", message, line.location, "keep one of them", "needs")
            )
        needs.append((table, line.need))
    return tuple(needs), tuple(findings)


def _check(header: _Header, already: Sequence[Diagnostic]) -> Iterator[Diagnostic]:
    managed = header.annotations.materialize
    if managed is None and not any(finding.severity == "error" for finding in already):
        hint = f"add `-- materialize {TARGET}`"
        yield header.error("pipeline", "the step makes no table", hint, "no-target")
    if managed is not None:
        for rule in _RULES:
            yield from rule(header, managed)


def _target(header: _Header, managed: Materialize) -> Iterator[Diagnostic]:
    table = table_of(managed.target)
    if not managed.target.is_table:
        message = f"a managed table is a ducklake:// table, not a {managed.target.kind}"
        yield header.error("materialize", message, f"write materialize {TARGET}", "target")
    elif table is None and managed.target.kind == "delta":
        message = f"{managed.target} names no table"
        yield header.error(
            "materialize", message, "write materialize delta://ROOT/schema/table", "target"
        )
    elif table is None:
        lake, _, name = managed.target.path.strip("/").rpartition("/")
        if lake not in header.names.lakes:
            lake = name if name in header.names.lakes else header.names.lakes[0]
        message = f"ducklake://{managed.target.path} names no table"
        hint = f"write materialize ducklake://{lake}/table or ducklake://{lake}/schema.table"
        if name != lake and table_of(Asset("ducklake", f"{lake}/{name}")) is not None:
            hint = f"write materialize ducklake://{lake}/{name}"
        yield header.error("materialize", message, hint, "target")
    elif table.lake not in header.names.lakes:
        unknown = header.names.unknown_lake(table.lake)
        yield header.error("materialize", str(unknown), unknown.hint, "unknown-lake")
    elif (managed.target.kind == "delta") != (table.lake in header.names.roots):
        is_root = table.lake in header.names.roots
        message = f"{table.lake} is a {'Delta root' if is_root else 'lake, and no Delta root'}"
        form = f"delta://{table.lake}/{table.schema}/{table.table}"
        if not is_root:
            form = f"ducklake://{table.lake}/{table.qualified}"
        yield header.error("materialize", message, f"write materialize {form}", "target")


def _no_history(header: _Header, managed: Materialize) -> Iterator[Diagnostic]:
    """Yield the options of a history that stand in a line without one."""
    if managed.history:
        return
    deletes = managed.deletes if managed.sequence is None else None
    options = (
        ("track=", managed.track),
        ("deletes=", deletes),
        ("max_closed=", managed.max_closed),
    )
    for option, value in options:
        if value:
            message, hint = f"`{option}` means nothing without history", "take it away"
            yield header.error("materialize", message, hint, "history-option")


def _history(header: _Header, managed: Materialize) -> Iterator[Diagnostic]:
    if not managed.history:
        return
    if managed.max_closed and not managed.deletes:
        message, hint = (
            "`max_closed=` has no effect without deletes=close",
            "remove it, or add deletes=close",
        )
        yield header.error("materialize", message, hint, "history-option")
    if not managed.keys:
        message = "history needs a key to know an entity by"
        yield header.error("materialize", message, "add key=column", "history-key")
    if header.annotations.partition is not None:
        message = "history keeps a whole table and cannot be partitioned"
        hint = "remove `partitioned` or `history`"
        yield header.error("partitioned", message, hint, "history-partitioned")
    if managed.append:
        message = "history keeps versions and cannot append rows"
        yield header.error("materialize", message, "remove `append` or `history`", "history-append")
    if managed.manual:
        message = "a manual script writes its table itself: it keeps its own history"
        yield header.error("materialize", message, "remove `manual` or `history`", "history-manual")
    history = _history_of(managed)
    for message in clashes(history, managed.keys) if history else ():
        hint = "name it otherwise in the SELECT, as in `AS since`"
        yield header.error("materialize", message, hint, "history-names")


def _feed(header: _Header, managed: Materialize) -> Iterator[Diagnostic]:
    """Yield why the rows cannot be the events of a change feed."""
    if managed.sequence is None or managed.strategy.merges:
        return
    message = f"`sequence=` orders events that are merged, and this is {managed.strategy}"
    hint = "add key=column" if not managed.keys else "leave key= and sequence=, without the others"
    yield header.error("materialize", message, hint, "sequence")


def _tests(header: _Header, managed: Materialize) -> Iterator[Diagnostic]:
    if managed.manual and header.annotations.data_tests:
        message = "data tests need a managed table, and this one is manual"
        hint = "remove `manual`, or the tests"
        yield header.error("data_test:0", message, hint, "test-manual")


def _time(header: _Header, managed: Materialize) -> Iterator[Diagnostic]:
    if managed.time is None:
        for name in OF_INTERVALS[:2]:
            if getattr(managed, name) and not managed.strategy.may_have_intervals:
                message = f"`{name}=` means nothing without `time=`"
                yield header.error("materialize", message, "take it away", "time-option")
        if managed.lookback and managed.history:
            message = "`lookback=` loads intervals again, and a history takes each once, in order"
            yield header.error("materialize", message, "take it away", "time-option")
        return
    options = {"manual": managed.manual, "history": managed.history, "append": managed.append}
    options["key="] = bool(managed.keys)
    for name in (name for name, value in options.items() if value):
        message = f"`time=` replaces the rows of a time range, which `{name}` does not"
        yield header.error("materialize", message, f"remove `time=` or `{name}`", "time-and")
    values = split_values(managed.time)
    if len(values) > 2 or "," in values[0]:
        message = f"`time={managed.time}` is not a column and its format"
        hint = 'write time=ds, time=ds,%Y%m%d or time=ts,"%Y-%m-%d %H:%M:%S"'
        yield header.error("materialize", message, hint, "time-column")
    for text in values[1:2]:
        try:
            read_format(text)
        except ValueError as error:
            message = f"the format `{text}` {error}"
            hint = "write one such as %Y-%m-%d, yyyy-MM-dd or epoch"
            yield header.error("materialize", message, hint, "time-format")
    yield from _of_intervals(header)


def _of_intervals(header: _Header) -> Iterator[Diagnostic]:
    """A line ``partitioned`` says how long the intervals of a model by time are, which are UTC."""
    spec = header.annotations.partition
    if spec is None:
        return
    if spec.kind not in CRONS:
        message = f"`time=` has no intervals that are {spec.kind}"
        hint = f"write partitioned {', '.join(CRONS)}, or take `time=` away"
        yield header.error("partitioned", message, hint, "time-partition")
    for name, is_set in (("tz", spec.tz not in {None, "UTC"}), ("format", bool(spec.format))):
        if is_set:
            message = (
                f"`{name}=` means nothing with `time=`: its intervals are UTC, and have no name"
            )
            yield header.error("partitioned", message, "take it away", "time-partition")
    try:
        if spec.start is not None:
            read_moment(spec.start, datetime(2024, 1, 1, tzinfo=UTC))
    except ValueError:
        message = f"start={spec.start!r} is not a moment"
        yield header.error("partitioned", message, MOMENT_HINT, "time-partition")


_RULES: tuple[Callable[[_Header, Materialize], Iterator[Diagnostic]], ...] = (
    _target,
    _no_history,
    _history,
    _feed,
    _time,
    _tests,
)
