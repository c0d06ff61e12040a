"""One script made into a :class:`Model`: the rules that need header and query together.

A model's definition is a hash, which changes when slices made before may now come out different.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import Diagnostic, Location, PartitionError
from penstock.model.analysis import Part
from penstock.model.annotation import Annotations
from penstock.model.asset import SCHEMA_CHANGES, Asset, Materialize, TableName, table_of
from penstock.model.data_test import RelationshipsTest
from penstock.model.header.lines import read_header
from penstock.model.model import Model, TestScript
from penstock.model.names import Names
from penstock.model.partition import check_spec
from penstock.model.query import Query, read_query
from penstock.model.schedule import Schedule
from penstock.sql.tokens import canonical

TARGET = "ducklake://main/table"
# What a model calls the places of a header's lines.
_PLACES = {"materialize": "target", "partitioned": "partition"}


@dataclass(frozen=True, slots=True)
class ScriptFile:
    """A script as read: ``name`` is that of its model; ``tests`` are its custom tests."""

    name: str
    path: Path
    text: str
    annotations: Annotations
    tests: tuple[TestScript, ...] = ()


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


def build_model(
    script: ScriptFile, names: Names, findings: Sequence[Diagnostic]
) -> tuple[Model | None, tuple[Diagnostic, ...]]:
    """The model, or ``None`` when a finding is an error. ``findings`` are those so far."""
    annotations = script.annotations
    header = _Header(script.path, annotations, names)
    found = [*findings, *_check(header, already=findings)]
    made = annotations.materialize
    query, query_findings = read_query(
        script.text,
        script.path,
        names=names,
        start=read_header(script.text, script.path).end,
        dialect=annotations.dialect,
        partitioned=annotations.partition is not None,
        manual=made is not None and made.manual,
    )
    found += query_findings
    if (
        query is not None
        and not query.manual
        and annotations.partition
        and not query.uses_partition
    ):
        message = "the script is partitioned, but its query is the same for every partition"
        hint = "filter by '{partition}', unless each slice is meant to hold everything"
        where = header.place("partitioned")
        found.append(Diagnostic("warning", message, where, hint, "partition-unused"))
    target = table_of(made.target) if made else None
    if query is not None and target not in query.reads:
        found += (
            Diagnostic(
                "warning",
                f"the type of column {column.name} is not used: the query does not read {target}",
                column.location,
                "cast the column in the query, or take the line away",
                "column-type",
            )
            for column in annotations.column_types
        )
    if made is None or target is None or query is None or _has_error(found):
        return None, tuple(found)
    return _model(script, target, made, query, found), tuple(found)


def _model(
    script: ScriptFile,
    target: TableName,
    made: Materialize,
    query: Query,
    findings: Sequence[Diagnostic],
) -> Model:
    strategy, annotations = made.strategy, script.annotations
    return Model(
        name=script.name,
        path=script.path,
        target=target,
        strategy=strategy,
        keys=made.keys if strategy in {"merge", "history"} else (),
        partition=annotations.partition,
        query=query,
        reads=query.reads,
        on=tuple(dict.fromkeys(table for _, _, table in _on_tables(annotations) if table)),
        definition_hash=definition_hash(query, annotations, target),
        on_schema_change=made.on_schema_change or SCHEMA_CHANGES[0],
        data_tests=annotations.data_tests,
        test_scripts=script.tests,
        test_reads=tuple(_test_reads(target, annotations, script.tests)),
        column_types=annotations.column_types,
        column_lineage=annotations.column_lineage,
        schedule=_schedule(annotations),
        retry=annotations.retry,
        tags=(annotations.tag,) if annotations.tag else (),
        places=_places(annotations),
        warnings=tuple(findings),
    )


def _schedule(annotations: Annotations) -> Schedule:
    return Schedule(
        annotations.triggers,
        annotations.join_mode,
        annotations.freshness,
        annotations.debounce_default,
    )


def _places(annotations: Annotations) -> Mapping[str, Location]:
    return {_PLACES.get(line, line): place for line, place in annotations.places.items()}


def _test_reads(
    target: TableName, annotations: Annotations, scripts: Sequence[TestScript]
) -> Iterator[TableName]:
    tests = annotations.data_tests
    tables = [table_of(test.to) for test in tests if isinstance(test, RelationshipsTest)]
    tables += [table for script in scripts for table in script.query.reads]
    yield from dict.fromkeys(table for table in tables if table and table != target)


def _on_tables(annotations: Annotations) -> Iterator[tuple[int, Asset, TableName | None]]:
    for number, trigger in enumerate(annotations.triggers):
        if trigger.asset is not None and trigger.asset.kind == "ducklake":
            yield number, trigger.asset, table_of(trigger.asset)


def _has_error(findings: Sequence[Diagnostic]) -> bool:
    return any(finding.severity == "error" for finding in findings)


def _check(header: _Header, already: Sequence[Diagnostic]) -> Iterator[Diagnostic]:
    made = header.annotations.materialize
    if made is None and not _has_error(already):
        hint = f"add `-- materialize {TARGET}`"
        yield header.error("pipeline", "the step makes no table", hint, "no-target")
    for rule in _RULES:
        yield from rule(header)
    if made is not None:
        for made_rule in _MADE_RULES:
            yield from made_rule(header, made)


def _partition(header: _Header) -> Iterator[Diagnostic]:
    spec = header.annotations.partition
    if spec is None:
        return
    try:
        check_spec(spec)
    except PartitionError as error:
        yield header.error("partitioned", error.message, error.hint or "", "partition")


def _triggers(header: _Header) -> Iterator[Diagnostic]:
    for number, asset, table in _on_tables(header.annotations):
        keyword = f"on:{number}"
        if table is None:
            message = f"ducklake://{asset.path} names no table"
            yield header.error(keyword, message, f"write on {TARGET}", "on-table")
        else:
            yield from _known_lake(header, keyword, table)


def _relationships(header: _Header) -> Iterator[Diagnostic]:
    for number, test in enumerate(header.annotations.data_tests):
        if not isinstance(test, RelationshipsTest):
            continue
        keyword, table = f"data_test:{number}", table_of(test.to)
        if table is None:
            message = f"the relationship of {test.column} leads to no managed table"
            hint = f"write relationships {test.column} -> {TARGET}.column"
            yield header.error(keyword, message, hint, "test-table")
        else:
            yield from _known_lake(header, keyword, table)


def _known_lake(header: _Header, keyword: str, table: TableName) -> Iterator[Diagnostic]:
    if table.lake not in header.names.lakes:
        unknown = header.names.unknown_lake(table.lake)
        yield header.error(keyword, str(unknown), unknown.hint, "unknown-lake")


def _libraries(header: _Header) -> Iterator[Diagnostic]:
    for library in header.annotations.use_libs:
        message = f"macro libraries are not in this version: {library} is not used"
        yield Diagnostic("warning", message, header.place("pipeline"), None, "macros")


def _idle(header: _Header) -> Iterator[Diagnostic]:
    """What the header asks for and nothing acts on: a run happens when somebody starts it."""
    annotations = header.annotations
    idle = {
        f"on:{number}": trigger.kind if trigger.asset is None else trigger.asset.kind
        for number, trigger in enumerate(annotations.triggers)
        if trigger.asset is None or trigger.asset.kind != "ducklake"
    }
    idle |= {
        f"on:{number}": "debounce"
        for number, trigger in enumerate(annotations.triggers)
        if trigger.debounce is not None
    }
    idle |= {"trigger": "trigger"} if annotations.join_mode else {}
    idle |= {"freshness": "freshness"} if annotations.freshness else {}
    idle |= {"debounce": "debounce"} if annotations.debounce_default else {}
    for keyword, what in idle.items():
        message = f"nothing acts on `{what}` in this version: the step runs when you run it"
        hint = "start it by penstock run, from cron or another scheduler"
        yield Diagnostic("warning", message, header.place(keyword), hint, "idle")


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
    else:
        yield from _known_lake(header, "materialize", table)


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
    message = "history is not in this version"
    yield header.error("materialize", message, "use key= to merge for now", "history")


def _tests(header: _Header, made: Materialize) -> Iterator[Diagnostic]:
    if made.manual and header.annotations.data_tests:
        message = "data tests need a managed table, and this one is manual"
        hint = "take away `manual`, or the tests"
        yield header.error("data_test:0", message, hint, "test-manual")


_RULES: tuple[Callable[[_Header], Iterator[Diagnostic]], ...] = (
    _partition,
    _triggers,
    _relationships,
    _libraries,
    _idle,
)
_MADE_RULES: tuple[Callable[[_Header, Materialize], Iterator[Diagnostic]], ...] = (
    _target,
    _history,
    _tests,
)


def definition_hash(query: Query, annotations: Annotations, target: TableName) -> str:
    """Hex SHA-256 of the canonical query and of what says where and how it is written.

    Blanks, comments, the case of keywords and the data tests do not count.
    """
    use = query.names.use
    meaning = {
        "dialect": query.dialect,
        "target": str(target),
        "materialize": annotations.materialize and annotations.materialize.to_dict(),
        "partition": annotations.partition and annotations.partition.to_dict(),
        "reads": [str(table) for table in query.reads],
        "aliases": sorted(query.names.aliases.items()),
        "use": list(use) if use else None,
        "settings": [[setting.name, setting.value] for setting in query.settings],
        "arguments": [
            [argument.name, argument.type, argument.default] for argument in query.arguments
        ],
        "parts": [[part.name, *_canonical(part, query)] for part in query.parts],
    }
    text = json.dumps(meaning, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _canonical(part: Part, query: Query) -> list[str]:
    statement = part.statement
    return canonical(query.source.text[statement.start : statement.end], query.dialect)
