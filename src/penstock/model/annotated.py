"""A header's annotations as a `Declaration`, with the rules that only this form has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import Diagnostic, Location
from penstock.model.annotation import Annotations
from penstock.model.asset import Materialize, table_of
from penstock.model.declaration import Declaration, SchemaChange
from penstock.model.header.lines import read_header
from penstock.model.history import History, annotated, clashes
from penstock.model.names import Names
from penstock.model.schedule import Schedule

TARGET = "ducklake://main/table"
# What a declaration calls the places of a header's lines.
_PLACES = {"materialize": "target", "partitioned": "partition"}
# What each value of ``on_schema_change`` does with new columns, and with missing ones.
_SCHEMA_CHANGES: Mapping[str | None, SchemaChange] = {
    "warn": SchemaChange("warn", "keep"),
    "ignore": SchemaChange("ignore", "ignore"),
    "fail": SchemaChange("error", "error"),
    "sync": SchemaChange("warn", "warn"),
}
# A history keeps what its versions had: its columns are frozen, and none is ever dropped.
_OF_HISTORY: Mapping[str | None, SchemaChange] = {
    **_SCHEMA_CHANGES,
    None: SchemaChange("error", "error"),
    "sync": SchemaChange("warn", "error"),
}


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
    """What the header declares, ``None`` without a table; and the findings with ``findings``."""
    header = _Header(path, annotations, names)
    found = [*findings, *_check(header, already=findings)]
    made = annotations.materialize
    target = table_of(made.target) if made else None
    if made is None or target is None:
        return None, tuple(found)
    partition = annotations.partition
    declaration = Declaration(
        path=path,
        target=target,
        strategy=made.strategy,
        code=read_header(text, path).end,
        dialect=annotations.dialect,
        keys=made.keys if made.strategy in {"merge", "history"} else (),
        partition=partition,
        history=_history_of(made),
        schema_change=_schema_change(made),
        reads_changes=annotations.reads_changes,
        data_tests=annotations.data_tests,
        column_types=annotations.column_types,
        column_lineage=annotations.column_lineage,
        schedule=_schedule(annotations),
        retry=annotations.retry,
        timeout=annotations.timeout,
        tags=(annotations.tag,) if annotations.tag else (),
        meaning={"materialize": made.to_dict(), "partition": partition and partition.to_dict()},
        places={_PLACES.get(line, line): at for line, at in annotations.places.items()},
    )
    return declaration, tuple(found)


def _history_of(made: Materialize) -> History | None:
    if made.strategy != "history":
        return None
    return annotated(made.track, closes=made.deletes == "close")


def _schema_change(made: Materialize) -> SchemaChange:
    if made.strategy == "history":
        return _OF_HISTORY[made.on_schema_change]
    return _SCHEMA_CHANGES[made.on_schema_change or "warn"]


def _schedule(annotations: Annotations) -> Schedule:
    return Schedule(
        annotations.triggers,
        annotations.join_mode,
        annotations.freshness,
        annotations.debounce_default,
    )


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
    if made.target.kind != "ducklake":
        message = f"a managed table is a ducklake:// table, not a {made.target.kind}"
        yield header.error("materialize", message, f"write materialize {TARGET}", "target")
    elif table is None:
        lake = made.target.path.partition("/")[0]
        message = f"ducklake://{made.target.path} names no table"
        hint = f"write materialize ducklake://{lake}/table or ducklake://{lake}/schema.table"
        yield header.error("materialize", message, hint, "target")
    elif table.lake not in header.names.lakes:
        unknown = header.names.unknown_lake(table.lake)
        yield header.error("materialize", str(unknown), unknown.hint, "unknown-lake")


def _history(header: _Header, made: Materialize) -> Iterator[Diagnostic]:
    if not made.history:
        for option, given in (("track=", made.track), ("deletes=", made.deletes)):
            if given:
                message, hint = f"`{option}` means nothing without history", "take it away"
                yield header.error("materialize", message, hint, "history-option")
        return
    if not made.keys:
        message = "history needs a key to know an entity by"
        yield header.error("materialize", message, "add key=column", "history-key")
    if header.annotations.partition is not None:
        message = "history keeps a whole table and cannot be partitioned"
        hint = "take away `partitioned` or `history`"
        yield header.error("partitioned", message, hint, "history-partitioned")
    if made.append:
        message = "history keeps versions and cannot append rows"
        yield header.error(
            "materialize", message, "take away `append` or `history`", "history-append"
        )
    if made.manual:
        message = "a manual script writes its table itself: it keeps its own history"
        yield header.error(
            "materialize", message, "take away `manual` or `history`", "history-manual"
        )
    history = _history_of(made)
    for message in clashes(history, made.keys, ()) if history else ():
        hint = "name it otherwise in the SELECT, as in `AS since`"
        yield header.error("materialize", message, hint, "history-names")


def _tests(header: _Header, made: Materialize) -> Iterator[Diagnostic]:
    if made.manual and header.annotations.data_tests:
        message = "data tests need a managed table, and this one is manual"
        hint = "take away `manual`, or the tests"
        yield header.error("data_test:0", message, hint, "test-manual")


_RULES: tuple[Callable[[_Header, Materialize], Iterator[Diagnostic]], ...] = (
    _target,
    _history,
    _tests,
)
