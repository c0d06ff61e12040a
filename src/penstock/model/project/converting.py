"""A declaration in either form: the annotations, or the MODEL (...), that say the same."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

from penstock.model.files.header_lines import is_unclosed
from penstock.model.headers.annotated import CRONS
from penstock.model.headers.annotation import Annotations
from penstock.model.headers.written import can_say, lines_of, quoted
from penstock.model.script.declaration import Declaration, SchemaChange
from penstock.model.time.needs import NeedLine
from penstock.model.time.partition import PartitionSpec
from penstock.model.time.time_range import TimeRange
from penstock.model.values.asset import DEFAULT_SCHEMA, Asset, Materialize, TableName
from penstock.model.values.custom_strategy import Custom
from penstock.model.values.data_test import (
    ERROR,
    AcceptedValuesTest,
    DataTest,
    NotNullTest,
    UniqueTest,
)
from penstock.model.values.history import MAX_CLOSED, History
from penstock.model.values.kinds import KINDS, Kind
from penstock.model.values.schedule import Cadence
from penstock.model.values.strategy import Strategy
from penstock.model.values.upsert import Upsert
from penstock.sql.literals import plain_text_literal

FORMS = ("annotations", "model")
_WORD = re.compile(r"[^\W\d]\w*")
# What on_schema_change says, by what becomes of new and missing columns. `allow` and `warn`, and
# `keep` and `ignore`, differ in a notice alone.
_POLICIES = {
    ("add", "error"): None,
    ("add", "leave"): "warn",
    ("ignore", "leave"): "ignore",
    ("error", "error"): "fail",
    ("add", "drop"): "sync",
}
_OF_HISTORY = {
    **_POLICIES,
    ("error", "error"): None,
    ("add", "error"): "sync",
}
_ADDED = {"allow": "add", "warn": "add", "ignore": "ignore", "error": "error"}
_MISSING = {"allow": "drop", "warn": "drop", "ignore": "leave", "keep": "leave", "error": "error"}


class CannotSay(Exception):
    """A form lacks words for a declaration; ``things`` are what it cannot say."""

    def __init__(self, form: str, things: tuple[str, ...]) -> None:
        self.form = form
        self.things = things
        super().__init__(f"{form} cannot say {', '.join(things)}")

    @property
    def hint(self) -> str:
        """Return what to do about it."""
        if any(thing.startswith("on_additive_change") for thing in self.things):
            return "leave the script in its form, or write on_additive_change allow in its kind"
        return "leave the script in its form, or remove that"


def annotation_lines(declaration: Declaration, dialect: str = "spark") -> list[str]:
    """The lines of a header, each with ``--``, where ``dialect`` is that of a model that names
    none. Raises CannotSay.
    """
    lacking = tuple(_not_in_annotations(declaration))
    if lacking:
        raise CannotSay("annotations", lacking)
    lines = lines_of(_annotations(declaration))
    if declaration.dialect == "spark" != dialect:  # the only one that has no line
        lines.append("dialect spark")
    return [f"-- {line}" for line in lines]


def model_text(declaration: Declaration, dialect: str = "spark") -> str:
    """``MODEL (...);`` where ``dialect`` is that of a model that names none. Raises CannotSay."""
    lacking = tuple(_not_in_model(declaration))
    if lacking:
        raise CannotSay("MODEL (...)", lacking)
    properties = ",\n  ".join(_properties(declaration, dialect))
    return f"MODEL (\n  {properties}\n);"


def comparable(declaration: Declaration) -> dict[str, object]:
    """Return what two declarations have in common that say the same, whatever their form is."""
    said = {each.name: getattr(declaration, each.name) for each in fields(Declaration)}
    for name in ("path", "code", "meaning", "places", "takes_statements"):
        del said[name]
    for name in ("columns", "column_types"):
        said[name] = [(each.name, each.type, each.dialect) for each in said[name]]
    if declaration.cadence.cron == "@daily":  # which is the default
        said["cadence"] = replace(declaration.cadence, cron=None)
    if declaration.time_range is not None:
        said["time_range"] = replace(declaration.time_range, cadence=said["cadence"])
    said["schema_change"] = None
    said["disable_restatement"] = bool(declaration.disable_restatement)
    if not declaration.replaces_table:
        said["schema_change"] = _policy(declaration.schema_change)
    return said


def _not_in_annotations(declaration: Declaration) -> Iterator[str]:
    strategy = declaration.strategy
    if declaration.generated:
        yield "a kind without a query"
    if declaration.history is not None and declaration.history.is_current is None:
        yield f"kind {declaration.history.kind}"
    elif not strategy.annotated:
        yield f"kind {next(known.name for known in KINDS.values() if known.strategy == strategy)}"
    elif not declaration.replaces_table and _policy(declaration.schema_change) not in _policies(
        declaration
    ):
        yield _changes(declaration)
    said: dict[str, object] = {
        "unique_key with expressions": declaration.key_expressions,
        "when_matched": declaration.upsert.matched,
        "merge_filter": declaration.upsert.merge_filter,
        "forward_only": declaration.forward_only and not strategy.by_partition_keys,
        "disable_restatement": declaration.disable_restatement,
        "auto_restatement_cron": declaration.auto_restatement,
        "partitioned_by": declaration.layout.partitioned_by,
        "clustered_by": declaration.layout.clustered_by,
        "columns": declaration.columns,
        "depends_on": declaration.depends_on,
        "session_properties": declaration.settings,
        "formatting": not declaration.formatted,
        "several tags": len(declaration.tags) > 1,
        "a tag of several words": any(" " in tag for tag in declaration.tags),
    }
    for group in (declaration.cadence, declaration.about):
        said |= {each.name: getattr(group, each.name) for each in fields(group)}
    said |= _of_time(declaration)
    yield from (name for name, value in said.items() if value)
    tests = (test for test in declaration.data_tests if not can_say(test))
    yield from (f"the audit of {test.name}" for test in tests)


def _changes(declaration: Declaration) -> str:
    """Return what becomes of new and missing columns, in the words of MODEL (...)."""
    change = declaration.schema_change
    missing = "ignore" if change.missing == "keep" else change.missing
    said = {"on_additive_change": change.added, "on_destructive_change": missing}
    return " with ".join(f"{name} {value}" for name, value in said.items())


def _of_time(declaration: Declaration) -> dict[str, object]:
    """Return what lines say, or cannot say, of a model by time; other kinds have no cadence in
    lines.
    """
    by_time, cron = declaration.time_range, declaration.cadence.cron
    if by_time is None:
        return {}
    said: dict[str, object] = {"batch_concurrency": by_time.batch_concurrency}
    if by_time.column is None:
        return said
    name = by_time.column.name
    return said | {
        "partition_by_time_column": not by_time.partition_by_time_column,
        "a time_column with such a name": ("(" in name) != by_time.column.by_expression,
        "start": None,
        "cron": (cron or "@daily") not in {c or "@daily" for c in CRONS.values()} and cron,
    }


def _not_in_model(declaration: Declaration) -> Iterator[str]:
    if declaration.history is not None and declaration.history.is_current is not None:
        yield "materialize history"
    elif declaration.strategy not in _KINDS:
        yield f"materialize {declaration.strategy}"
    schedule = declaration.schedule
    said: dict[str, object] = {
        "partitioned": declaration.partition,
        "on": schedule.triggers,
        "trigger": schedule.join,
        "freshness": schedule.freshness,
        "debounce": schedule.debounce,
        "retry": declaration.retry,
        "timeout": declaration.timeout,
        "column ... <- ...": declaration.column_lineage,
        "column name TYPE": declaration.column_types,
    }
    yield from (name for name, value in said.items() if value)
    tests = (test for test in declaration.data_tests if _audit(test) is None)
    yield from (f"data_test {test.name}" for test in tests)


def _policy(change: SchemaChange) -> tuple[str, str]:
    return _ADDED[change.added], _MISSING[change.missing]


def _policies(declaration: Declaration) -> Mapping[tuple[str, str], str | None]:
    return _POLICIES if declaration.history is None else _OF_HISTORY


def _annotations(declaration: Declaration) -> Annotations:
    target = declaration.target
    table = target.table if target.schema == DEFAULT_SCHEMA else target.qualified
    policy = _policies(declaration).get(_policy(declaration.schema_change))
    history = declaration.history
    made = Materialize(
        Asset("ducklake", f"{target.lake}/{table}"),
        manual=declaration.strategy.by_statements,
        append=declaration.strategy.only_adds,
        history=history is not None,
        track=history.track if history else (),
        sequence=declaration.upsert.sequence,
        deletes="close" if history and history.closes else declaration.upsert.deletes,
        max_closed=_max_closed(history),
        unique_key=",".join(map(quoted, declaration.keys)) or None,
        on_schema_change=None if declaration.replaces_table else policy,
        **_time_words(declaration),
    )
    assert not is_unclosed(made.unique_key or ""), "each key is in quotes that close"
    return Annotations(
        in_pipeline=True,
        materialize=made,
        partition=declaration.partition or _intervals(declaration),
        triggers=declaration.schedule.triggers,
        join_mode=declaration.schedule.join,
        freshness=declaration.schedule.freshness,
        debounce_default=declaration.schedule.debounce,
        retry=declaration.retry,
        timeout=declaration.timeout,
        tag=next(iter(declaration.tags), None),
        dialect=declaration.dialect,
        reads_changes=declaration.reads_changes,
        reads_files=declaration.reads_files,
        late_run=declaration.late_run,
        needs=tuple(
            NeedLine(str(table), need.said, declaration.place("target"))
            for table, need in declaration.input_needs
        ),
        data_tests=declaration.data_tests,
        column_lineage=declaration.column_lineage,
        column_types=declaration.column_types,
    )


def _time_words(declaration: Declaration) -> dict[str, Any]:
    by_time = declaration.time_range
    if by_time is None:
        return {}
    said: dict[str, Any] = {"lookback": by_time.lookback, "batch_size": by_time.batch_size}
    if by_time.column is not None:
        words = (by_time.column.name, by_time.column.format)
        said["time"] = ",".join(quoted(word) for word in words if word is not None)
    return said


def _intervals(declaration: Declaration) -> PartitionSpec | None:
    """The line that says the start of a model by time, and how often it is due."""
    cadence, by_time = declaration.cadence, declaration.time_range
    cron = None if cadence.cron == "@daily" else cadence.cron
    if by_time is None or by_time.column is None or not (cadence.start or cron):
        return None
    kind = next(kind for kind, each in CRONS.items() if each == cron)
    return PartitionSpec(kind, start=cadence.start)


_KINDS: Mapping[Strategy, Kind] = {
    kind.strategy: kind
    for kind in KINDS.values()
    if kind.strategy is not None and not kind.queryless
}


def _properties(declaration: Declaration, dialect: str) -> Iterator[str]:
    about, layout = declaration.about, declaration.layout
    of_text = {each.name: getattr(declaration.cadence, each.name) for each in fields(Cadence)}
    of_text = {"description": about.description, "owner": about.owner, **of_text}
    of_text |= {"stamp": about.stamp, "project": about.project}
    types = [f"{_name(column.name)} {column.type}" for column in declaration.columns]
    settings = [f"{_text(each.name)} = {_text(each.value)}" for each in declaration.settings]
    said = [
        f"{_name(name)} = {plain_text_literal(text)}" for name, text in about.column_descriptions
    ]
    tests = [audit for audit in map(_audit, declaration.data_tests) if audit is not None]
    lists: dict[str, list[str]] = {
        "tags": [_text(tag) for tag in declaration.tags],
        "partitioned_by": [_key(key) for key in layout.partitioned_by],
        "clustered_by": [_name(name) for name in layout.clustered_by],
        "depends_on": [_table(table) for table in declaration.depends_on],
        "needs": [
            f"{_table(table)} = {_text(need.said)}" for table, need in declaration.input_needs
        ],
        "session_properties": settings,
        "grains": [_nested(keys) for keys in about.grains],
        "references": [_nested(keys) for keys in about.references],
    }
    yield f"name {_table(declaration.target)}"
    yield f"kind {_kind(declaration)}"
    yield from (f"dialect {each}" for each in (declaration.dialect,) if each != dialect)
    for name, text in of_text.items():
        if text:
            yield f"{name} {'true' if text is True else _text(text)}"
    for name, each in lists.items():
        if each:
            yield f"{name} ({', '.join(each)})"
    for name, each in (("columns", types), ("column_descriptions", said), ("audits", tests)):
        if each:
            yield f"{name} (\n    {(',' + chr(10) + '    ').join(each)}\n  )"
    yield from ("incremental changes",) if declaration.reads_changes else ()
    yield from ("incremental files",) if declaration.reads_files else ()
    yield from ("late run",) if declaration.late_run else ()
    yield from () if declaration.formatted else ("formatting false",)


def _nested(keys: tuple[str, ...]) -> str:
    return f"({', '.join(keys)})" if len(keys) > 1 else keys[0]


def _kind(declaration: Declaration) -> str:
    history = declaration.history
    kind = _KINDS[declaration.strategy] if history is None else KINDS[history.kind]
    change, auto = declaration.schema_change, declaration.auto_restatement
    values: dict[str, object] = {
        "unique_key": f"({', '.join(_keys(declaration))})" if declaration.keys else None,
        "when_matched": _matched(declaration.upsert),
        **_custom(declaration.custom),
        **_history(history),
        "merge_filter": declaration.upsert.merge_filter and f"({declaration.upsert.merge_filter})",
        "sequence": declaration.upsert.sequence and _name(declaration.upsert.sequence),
        "deletes": declaration.upsert.deletes and f"({declaration.upsert.deletes})",
        "forward_only": declaration.forward_only,
        "disable_restatement": bool(declaration.disable_restatement),
        **_time_options(declaration.time_range),
        "auto_restatement_cron": auto and _text(auto.cron),
        "auto_restatement_intervals": auto and auto.intervals,
        "on_additive_change": change.added,
        "on_destructive_change": "ignore" if change.missing == "keep" else change.missing,
    }
    said = [
        f"{option.name} {str(value).lower() if isinstance(value, bool) else value}"
        for option in kind.options
        if option.refusal is None
        and (value := values.get(option.name)) is not None
        and value != option.default
    ]
    if not said:
        return kind.name
    listed = ",\n    ".join(said)
    return f"{kind.name} (\n    {listed}\n  )"


def _time_options(by_time: TimeRange | None) -> dict[str, object]:
    if by_time is None:
        return {}
    said = {each.name: getattr(by_time, each.name) for each in fields(TimeRange)}
    if by_time.column is not None:
        column, form = by_time.column, by_time.column.format
        name = column.name if column.by_expression else _name(column.name)
        said["time_column"] = name if form is None else f"({name}, {plain_text_literal(form)})"
    return said


def _custom(custom: Custom | None) -> dict[str, object]:
    if custom is None:
        return {}
    pairs = (f"{_name(k)} = {plain_text_literal(v)}" for k, v in custom.properties.items())
    return {
        "materialization": plain_text_literal(custom.materialization.name),
        "materialization_properties": f"({', '.join(pairs)})" if custom.properties else None,
    }


def _max_closed(history: History | None) -> int | None:
    """Return the percentage, where it is not the default."""
    if history is None or not history.closes or history.max_closed == MAX_CLOSED:
        return None
    return history.max_closed


def _history(history: History | None) -> dict[str, object]:
    if history is None:
        return {}
    columns = f"({', '.join(map(_name, history.track))})" if history.track else "*"
    return {
        "valid_from_name": _name(history.valid_from),
        "valid_to_name": _name(history.valid_to),
        "invalidate_hard_deletes": history.closes,
        "max_closed": _max_closed(history),
        "time_data_type": _TIMES[history.time_type],
        "updated_at_name": history.updated_at and _name(history.updated_at),
        "updated_at_as_valid_from": history.by_time and history.start == "updated_at",
        "execution_time_as_valid_from": not history.by_time and history.start == "execution",
        "columns": None if history.by_time else columns,
    }


# In words that mean the same in every dialect of a model.
_TIMES = {"TIMESTAMP_NTZ": "TIMESTAMP", "TIMESTAMP": "TIMESTAMPTZ", "DATE": "DATE"}


def _keys(declaration: Declaration) -> Iterator[str]:
    for key in declaration.keys:
        yield key if key in declaration.key_expressions else _name(key)


def _matched(upsert: Upsert) -> str | None:
    said = []
    for each in upsert.matched:
        when = f"WHEN MATCHED AND {each.condition}" if each.condition else "WHEN MATCHED"
        sets = ", ".join(f"target.{_name(column)} = {value}" for column, value in each.sets)
        said.append(f"{when} THEN {f'UPDATE SET {sets}' if sets else 'DELETE'}")
    return f"({' '.join(said)})" if said else None


def _table(table: TableName) -> str:
    return ".".join(map(_name, (table.lake, table.schema, table.table)))


def _name(name: str) -> str:
    return name if _WORD.fullmatch(name) else '"' + name.replace('"', '""') + '"'


def _key(key: str) -> str:
    return key if key.endswith(")") else _name(key)


def _text(text: str) -> str:
    return text if _WORD.fullmatch(text) else plain_text_literal(text)


def _audit(test: DataTest) -> str | None:
    """The audit that is this test; None where there is none."""
    if test.severity != ERROR:
        return None
    match test:
        case NotNullTest(columns=columns):
            return f"not_null(columns := ({', '.join(map(_name, columns))}))"
        case UniqueTest(columns=(column,), nulls_equal=True, whole_table=False):
            return f"unique_values(columns := {_name(column)})"
        case AcceptedValuesTest(column=column, values=values):
            listed = ", ".join(map(plain_text_literal, values))
            return f"accepted_values(column := {_name(column)}, is_in := ({listed}))"
    return None
