"""A header's annotations as a `Declaration`, with the rules that only this form has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from penstock.errors import Diagnostic, Location
from penstock.model.files.header_lines import read_header, split_values
from penstock.model.headers.draft import Annotations, build_declaration
from penstock.model.headers.properties import PROPERTIES
from penstock.model.script.declaration import Declaration, SchemaChange
from penstock.model.time.moments import HINT as MOMENT_HINT
from penstock.model.time.moments import read_moment
from penstock.model.time.needs import Need, NeedLine
from penstock.model.time.time_format import read_format
from penstock.model.time.time_range import TimeColumn, TimeRange
from penstock.model.values.asset import Asset, Materialize, TableName, parse_asset, table_of
from penstock.model.values.history import History, annotated, clashes
from penstock.model.values.kinds import OF_INTERVALS
from penstock.model.values.names import Names, UnknownName
from penstock.model.values.schedule import Cadence
from penstock.model.values.upsert import Upsert
from penstock.sql.identifiers import dotted

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
    """Return what the header declares, ``None`` without a table; and the findings with
    ``findings``.
    """
    header = _Header(path, annotations, names)
    findings = (*findings, *_check(header, already=findings))
    made = annotations.materialize
    target = table_of(made.target) if made else None
    if made is None or target is None:
        return None, findings
    strategy, spec = made.strategy, annotations.partition
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
        "keys": made.keys if strategy.keyed else (),
        "partition": partition,
        "options": Upsert(sequence=made.sequence, deletes=made.deletes)
        if made.sequence is not None and strategy.merges
        else _history_of(made),
        "schema_change": SCHEMA_CHANGES[strategy.keeps_versions][made.on_schema_change],
        "input_needs": needs,
        "tags": (annotations.tag,) if annotations.tag else (),
        "cadence": cadence,
        "time_range": _time_range(made, cadence) if partition is None else None,
        "meaning": {"materialize": made.to_dict(), "partition": partition and partition.to_dict()},
        "places": _places(annotations),
    }
    return build_declaration(values), (*findings, *unknown)


def _history_of(made: Materialize) -> History | None:
    if not made.strategy.keeps_versions:
        return None
    return annotated(made.track, closes=made.deletes == "close", max_closed=made.max_closed)


def _places(annotations: Annotations) -> dict[str, Location]:
    places = {_PLACES.get(name, name): place for name, place in annotations.places.items()}
    places |= {f"needs:{n}": need.location for n, need in enumerate(annotations.needs)}
    if "partition" in places:
        places["start"] = places["cron"] = places["partition"]
    if "target" in places:
        places |= dict.fromkeys(("time_column", "sequence", *OF_INTERVALS), places["target"])
    return places


def _time_range(made: Materialize, cadence: Cadence) -> TimeRange | None:
    if not made.strategy.may_have_intervals:
        return None
    name, *form = split_values(made.time or "") or [""]
    return TimeRange(
        # a column, or an expression, and perhaps a format
        column=None
        if made.time is None
        else TimeColumn(name, form[0] if form else None, "(" in name),
        batch_size=made.batch_size,
        lookback=made.lookback,
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
        if str(table) in {str(other) for other, _ in needs}:
            message = f"`needs {line.asset} {line.text}`: {table} has a line already"
            findings.append(
                Diagnostic("error", message, line.location, "keep one of them", "needs")
            )
        needs.append((table, line.need))
    return tuple(needs), tuple(findings)


def _check(header: _Header, already: Sequence[Diagnostic]) -> Iterator[Diagnostic]:
    made = header.annotations.materialize
    if made is None and not any(finding.severity == "error" for finding in already):
        hint = f"add `-- materialize {TARGET}`"
        yield header.error("pipeline", "the step makes no table", hint, "no-target")
    if made is not None:
        for rule in _RULES:
            yield from rule(header, made)


def _target(header: _Header, made: Materialize) -> Iterator[Diagnostic]:
    table = table_of(made.target)
    if not made.target.is_table:
        message = f"a managed table is a ducklake:// table, not a {made.target.kind}"
        yield header.error("materialize", message, f"write materialize {TARGET}", "target")
    elif table is None and made.target.kind == "delta":
        message = f"{made.target} names no table"
        yield header.error(
            "materialize", message, "write materialize delta://ROOT/schema/table", "target"
        )
    elif table is None:
        lake, _, written = made.target.path.strip("/").rpartition("/")
        if lake not in header.names.lakes:
            lake = written if written in header.names.lakes else header.names.lakes[0]
        known = table_of(Asset("ducklake", f"{lake}/{written}"))
        message = f"ducklake://{made.target.path} names no table"
        hint = f"write materialize ducklake://{lake}/table or ducklake://{lake}/schema.table"
        if known is not None and written != lake:
            hint = f"write materialize ducklake://{lake}/{written}"
        yield header.error("materialize", message, hint, "target")
    elif table.lake not in header.names.lakes:
        unknown = header.names.unknown_lake(table.lake)
        yield header.error("materialize", str(unknown), unknown.hint, "unknown-lake")
    elif (made.target.kind == "delta") != (table.lake in header.names.roots):
        is_root = table.lake in header.names.roots
        message = f"{table.lake} is a {'Delta root' if is_root else 'lake, and no Delta root'}"
        form = f"delta://{table.lake}/{table.schema}/{table.table}"
        if not is_root:
            form = f"ducklake://{table.lake}/{table.qualified}"
        yield header.error("materialize", message, f"write materialize {form}", "target")


def _no_history(header: _Header, made: Materialize) -> Iterator[Diagnostic]:
    """Yield the options of a history that stand in a line without one."""
    if made.history:
        return
    deletes = made.deletes if made.sequence is None else None
    options = (("track=", made.track), ("deletes=", deletes), ("max_closed=", made.max_closed))
    for option, value in options:
        if value:
            message, hint = f"`{option}` means nothing without history", "take it away"
            yield header.error("materialize", message, hint, "history-option")


def _history(header: _Header, made: Materialize) -> Iterator[Diagnostic]:
    if not made.history:
        return
    if made.max_closed and not made.deletes:
        message, hint = (
            "`max_closed=` has no effect without deletes=close",
            "remove it, or add deletes=close",
        )
        yield header.error("materialize", message, hint, "history-option")
    if not made.keys:
        message = "history needs a key to know an entity by"
        yield header.error("materialize", message, "add key=column", "history-key")
    if header.annotations.partition is not None:
        message = "history keeps a whole table and cannot be partitioned"
        hint = "remove `partitioned` or `history`"
        yield header.error("partitioned", message, hint, "history-partitioned")
    if made.append:
        message = "history keeps versions and cannot append rows"
        yield header.error("materialize", message, "remove `append` or `history`", "history-append")
    if made.manual:
        message = "a manual script writes its table itself: it keeps its own history"
        yield header.error("materialize", message, "remove `manual` or `history`", "history-manual")
    history = _history_of(made)
    for message in clashes(history, made.keys) if history else ():
        hint = "name it otherwise in the SELECT, as in `AS since`"
        yield header.error("materialize", message, hint, "history-names")


def _feed(header: _Header, made: Materialize) -> Iterator[Diagnostic]:
    """Yield why the rows cannot be the events of a change feed."""
    if made.sequence is None or made.strategy.merges:
        return
    message = f"`sequence=` orders events that are merged, and this is {made.strategy}"
    hint = "add key=column" if not made.keys else "leave key= and sequence=, without the others"
    yield header.error("materialize", message, hint, "sequence")


def _tests(header: _Header, made: Materialize) -> Iterator[Diagnostic]:
    if made.manual and header.annotations.data_tests:
        message = "data tests need a managed table, and this one is manual"
        hint = "remove `manual`, or the tests"
        yield header.error("data_test:0", message, hint, "test-manual")


def _time(header: _Header, made: Materialize) -> Iterator[Diagnostic]:
    if made.time is None:
        for name in OF_INTERVALS[:2]:
            if getattr(made, name) and not made.strategy.may_have_intervals:
                message = f"`{name}=` means nothing without `time=`"
                yield header.error("materialize", message, "take it away", "time-option")
        if made.lookback and made.history:
            message = "`lookback=` loads intervals again, and a history takes each once, in order"
            yield header.error("materialize", message, "take it away", "time-option")
        return
    others = {"manual": made.manual, "history": made.history, "append": made.append}
    others["key="] = bool(made.keys)
    for name in (name for name, given in others.items() if given):
        message = f"`time=` replaces the rows of a time range, which `{name}` does not"
        yield header.error("materialize", message, f"remove `time=` or `{name}`", "time-and")
    values = split_values(made.time)
    if len(values) > 2 or "," in values[0]:
        message = f"`time={made.time}` is not a column and its format"
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
    for name, given in (("tz", spec.tz not in {None, "UTC"}), ("format", bool(spec.format))):
        if given:
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
