"""One script made into a :class:`Model`: the rules that need its declaration and query together.

A model's definition is a hash, which changes when slices made before may now come out different.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from penstock.errors import Diagnostic, PartitionError
from penstock.model.definition.changes import check_change_feed, check_incremental
from penstock.model.definition.model import Model, TestScript
from penstock.model.definition.triggers import check_triggers, cron_of, why_never_due
from penstock.model.files.header_lines import read_header
from penstock.model.files.source_map import Source
from penstock.model.headers.syntax import begins_model
from penstock.model.macros.script_macros import ScriptMacros
from penstock.model.python_steps import PythonStep
from penstock.model.query.analysis import Part
from penstock.model.query.query import Query, ScriptKind, read_query
from penstock.model.script.constants import misread_condition
from penstock.model.script.declaration import Declaration
from penstock.model.script.file_uris import one_spelling, patterns_of
from penstock.model.time.partition import check_spec
from penstock.model.time.time_macros import TOKEN, TYPES, as_written
from penstock.model.values.asset import FileName, Names, TableName, table_of
from penstock.model.values.data_test import QUARANTINE, ExpressionTest, RelationshipsTest
from penstock.model.values.history import History, taken_names
from penstock.model.values.kinds import KINDS, OF_INTERVALS
from penstock.model.values.strategy import Output
from penstock.sql.dialect import DUCKDB, SPARK
from penstock.sql.identifiers import quote_identifier
from penstock.sql.lexer import Lexer, canonical
from penstock.sql.literals import plain_text_literal
from penstock.sql.tokens import words

_TEMPORARY = "temporary tables, or variables that are not constants"
TARGET = "ducklake://main/table"


@dataclass(frozen=True, slots=True)
class ScriptFile:
    """A script as read: ``name`` is that of its model; ``tests`` are its custom tests. ``python``
    runs in place of a query. ``root`` is the project's directory, from which paths are.
    """

    name: str
    text: str
    declaration: Declaration
    tests: tuple[TestScript, ...] = ()
    macros: ScriptMacros = field(default_factory=ScriptMacros)
    python: PythonStep | None = None
    root: Path = Path()


@dataclass(frozen=True, slots=True)
class _Declared:
    """A declaration under examination."""

    declaration: Declaration
    names: Names
    python: PythonStep | None = None

    def error(self, what: str, message: str, hint: str, rule: str) -> Diagnostic:
        return Diagnostic("error", message, self.declaration.place(what), hint, rule)


def build_model(
    script: ScriptFile, names: Names, findings: Sequence[Diagnostic]
) -> tuple[Model | None, tuple[Diagnostic, ...]]:
    """The model, or ``None`` when a finding is an error. ``findings`` are those so far."""
    declaration = script.declaration
    declared = _Declared(declaration, names, script.python)
    found = [*findings, *(finding for rule in _RULES for finding in rule(declared))]
    if declaration.generated:
        found += _only_model(script)
    lexer = Lexer()  # of the query as it is parsed, and as it is hashed
    query, query_findings = _query(script, names, lexer)
    # Without its `partitioned` line a script has no partition: the one error says so.
    lost = any(finding.details.get("lost") == "partitioned" for finding in findings)
    found += [each for each in query_findings if not (lost and each.rule == "partition-token")]
    found += check_incremental(declaration, query)
    if declaration.upsert.sequence is not None or declaration.upsert.deletes is not None:
        found += check_change_feed(declaration, names)
    if query is not None:
        found += _of_query(declaration, query, script.python)
    if query is None or any(finding.severity == "error" for finding in found):
        return None, tuple(found)
    return _model(script, query, lexer, found), tuple(found)


def _query(
    script: ScriptFile, names: Names, lexer: Lexer
) -> tuple[Query | None, tuple[Diagnostic, ...]]:
    """The query of a script. That of a Python step has no parts, for what is to be known of it."""
    declaration, text = script.declaration, script.text
    if script.python is not None:
        source = Source(declaration.path, text)
        arguments = script.python.arguments
        return Query(source, declaration.dialect, names, (), arguments, start=declaration.code), ()
    if declaration.generated:
        text = text[: declaration.code] + declaration.generated
    kind = ScriptKind(
        declaration.code,
        declaration.partition,
        by_time=declaration.strategy.time_column,
        manual=declaration.strategy.by_statements,
        takes_statements=declaration.takes_statements,
        settings=declaration.settings,
        placed=declaration.place("path") if declaration.generated else None,
        names_casts=declaration.dialect == DUCKDB
        and begins_model(script.text, read_header(script.text, declaration.path).end),
    )
    return read_query(
        text,
        declaration.path,
        names=names,
        dialect=declaration.dialect,
        kind=kind,
        macros=script.macros.saying(**variables_of(declaration)),
        lexer=lexer,
    )


#: the names that `variables_of` gives values
OF_MODEL = frozenset({"this_model", "model_kind_name", "gateway", "runtime_stage"})


def variables_of(declaration: Declaration) -> dict[str, str]:
    """Return what SQLMesh's macro variables are in a model (kinds.md, "macro variables")."""
    mark = "`" if declaration.dialect == SPARK else '"'
    target, strategy = declaration.target, declaration.strategy
    parts = (target.lake, target.schema, target.table)
    kind = next((k.name for k in KINDS.values() if k.strategy == strategy), strategy.name)
    if declaration.history is not None:
        kind = declaration.history.kind
    return {
        "this_model": ".".join(quote_identifier(part, mark=mark) for part in parts),
        "model_kind_name": plain_text_literal(kind.upper()),
        "gateway": plain_text_literal(target.lake),
        "runtime_stage": plain_text_literal("evaluating"),
    }


def _only_model(script: ScriptFile) -> Iterator[Diagnostic]:
    """A kind that gives the query itself has nothing behind its MODEL."""
    declaration = script.declaration
    rest = words(script.text, declaration.dialect, declaration.code)
    statement = next((token for token in rest if token.text != ";"), None)
    if statement is not None:
        where = Source(declaration.path, script.text).location(statement.start)
        message = f"`{statement.text}` follows the model of a kind that has no statements"
        yield Diagnostic("error", message, where, "take it away", "model-statement")


def _of_query(
    declaration: Declaration, query: Query, python: PythonStep | None
) -> Iterator[Diagnostic]:
    uses_partition = query.uses_partition if python is None else python.uses_partition
    if declaration.partition and not query.manual and not uses_partition:
        what, way = (
            ("its query is", "filter by '{partition}' or $partition_start and $partition_end")
            if python is None
            else ("what main gets is", "write def main(partition: str, ...)")
        )
        message = f"the script is partitioned, but {what} the same for every partition"
        hint = f"{way}, unless each slice is meant to hold everything"
        where = declaration.place("partition")
        yield Diagnostic("warning", message, where, hint, "partition-unused")
    yield from _of_intervals(declaration, query, python)
    if declaration.strategy.by_readers:
        yield from _of_readers(declaration, query)
    if declaration.history is not None and python is None:
        yield from _of_history(declaration.history, query)
    if declaration.target in query.reads or python is not None:
        return
    for column in declaration.column_types:
        yield Diagnostic(
            "warning",
            f"the type of column {column.name} is not used: the query does not read "
            f"{declaration.target}",
            column.location,
            "cast the column in the query, or take the line away",
            "column-type",
        )


def _of_history(history: History, query: Query) -> Iterator[Diagnostic]:
    statement = query.parts[-1].statement
    text = query.source.text[statement.start : statement.end]
    for name, at in taken_names(history, text, query.dialect):
        message = f"`{name}` is reserved: the history writes a column of that name itself"
        where = query.source.location(statement.start + at)
        yield Diagnostic("error", message, where, "give it another name", "history-names")


def _of_intervals(
    declaration: Declaration, query: Query, python: PythonStep | None
) -> Iterator[Diagnostic]:
    """Yield what says the intervals of a model, where nothing of it is about an interval."""
    by_time = declaration.time_range
    if declaration.strategy.time_column:
        if not (query.uses_partition if python is None else python.uses_partition):
            what, hint = (
                ("the query is", "filter its input, as by WHERE ts BETWEEN @start_dt AND @end_dt")
                if python is None
                else ("what main gets is", "write def main(partition_start, partition_end, ...)")
            )
            message = f"{what} the same for every interval: it reads all of its input each time"
            where = declaration.place("time_column")
            yield Diagnostic("warning", message, where, hint, "interval-unused")
        return
    if by_time is not None and query.uses_interval:
        return
    cadence = declaration.cadence
    asked = {  # by the model itself: defaults are for those that have intervals
        each.name: getattr(cadence, each.name)
        for each in fields(cadence)
        if each.name in declaration.places
    }
    asked |= {name: getattr(by_time, name, None) for name in OF_INTERVALS}
    is_due = cron_of(declaration) is not None
    for name in (name for name, value in asked.items() if value and name in declaration.places):
        why = "the query does not read by intervals"
        hint = "filter its input by @start_dt and @end_dt, or take it away"
        if name in _OF_SCHEDULES and not is_due:
            why, hint = why_never_due(declaration), "take it away"
        if name not in _OF_SCHEDULES or not is_due:
            message = f"`{name}` has no effect: {why}"
            yield Diagnostic("warning", message, declaration.place(name), hint, "model-idle")


_OF_SCHEDULES = frozenset({"cron", "cron_tz", "start", "end"})  # what a schedule has, too


def _of_readers(declaration: Declaration, query: Query) -> Iterator[Diagnostic]:
    """Yield what a query may not have that those evaluate who read it, each in its own way."""
    what = f"a query of the kind {declaration.strategy.name.upper()}"
    times = [each.name for each in query.arguments if each.name in TYPES]
    if times:
        message = f"{what} has no times of a run, and {as_written(times[0])} is one"
        hint = "write that condition in the models that read it"
        hint += ", or write kind FULL" if declaration.strategy.runs else ""
        yield Diagnostic("error", message, declaration.place("kind"), hint, "by-readers")
    declared = [each for each in query.arguments if each.name not in TYPES]
    given = [
        ("arguments", declared[0].location) if declared else None,
        (_TEMPORARY, query.source.location(query.parts[0].statement.start))
        if len(query.parts) > 1
        else None,
        ("settings", declaration.places.get("session_properties")) if query.settings else None,
    ]
    for name, where in (each for each in given if each is not None):
        hint = {_TEMPORARY: "write WITH name AS (...)"}.get(name, "write kind FULL")
        place = where or declaration.place("kind")
        yield Diagnostic("error", f"{what} cannot have {name}", place, hint, "by-readers")
    if declaration.target in query.reads:
        message = f"{what} reads itself"
        yield Diagnostic("error", message, declaration.place("target"), "write kind FULL", "cycle")


def _model(script: ScriptFile, query: Query, lexer: Lexer, findings: Sequence[Diagnostic]) -> Model:
    declaration = script.declaration
    # Any: a model has the fields of its declaration, as their common class promises.
    declared: dict[str, Any] = {
        field.name: getattr(declaration, field.name) for field in fields(Declaration)
    }
    step = script.python
    return Model(
        **declared,
        name=script.name,
        query=query,
        python=step,
        reads=_reads(declaration, query) if step is None else step.reads,
        definition_hash=definition_hash(
            query, declaration.meaning, declaration.target, lexer, step
        ),
        test_scripts=script.tests,
        test_reads=tuple(_test_reads(declaration, script.tests)),
        files_read=tuple(dict.fromkeys(_files_read(script, query))),
        files_tested=tuple(
            dict.fromkeys(
                file
                for test in script.tests
                for source in test.query.files
                for file in patterns_of(source.path, script.root)
            )
        ),
        files_written=tuple(
            one_spelling(uri, script.root) for uri in (() if step is None else step.writes)
        ),
        warnings=tuple(findings),
    )


def _files_read(script: ScriptFile, query: Query) -> Iterator[str]:
    """The files of its query, its code and its ``on`` lines."""
    for source in (*query.files, *query.statements.files):
        yield from patterns_of(source.path, script.root)
    for name in () if script.python is None else script.python.reads:
        if isinstance(name, FileName):
            yield one_spelling(name.table, script.root)
    for asset in (trigger.asset for trigger in script.declaration.schedule.triggers):
        if asset is not None and asset.is_file:
            yield one_spelling(str(asset), script.root)


def _reads(declaration: Declaration, query: Query) -> tuple[TableName, ...]:
    """Return what its query reads, and what the statements behind it name besides its own table."""
    named = (table for table in query.statements.reads if table != declaration.target)
    return tuple(dict.fromkeys((*query.reads, *named)))


def _test_reads(declaration: Declaration, scripts: Sequence[TestScript]) -> Iterator[TableName]:
    tests = declaration.data_tests
    tables = [table_of(test.to) for test in tests if isinstance(test, RelationshipsTest)]
    tables += [table for script in scripts for table in script.query.reads]
    yield from dict.fromkeys(table for table in tables if table and table != declaration.target)


def _partition(declared: _Declared) -> Iterator[Diagnostic]:
    spec = declared.declaration.partition
    if spec is None:
        return
    try:
        check_spec(spec)
    except PartitionError as error:
        yield declared.error("partition", error.message, error.hint or "", "partition")


def _triggers(declared: _Declared) -> Iterator[Diagnostic]:
    for number, trigger in enumerate(declared.declaration.schedule.triggers):
        asset = trigger.asset
        if asset is None or not asset.is_table:
            continue
        what, table = f"on:{number}", table_of(asset)
        if table is None:
            message = f"{asset} names no table"
            yield declared.error(what, message, f"write on {TARGET}", "on-table")
        elif TOKEN in asset.path:
            message = f"{TOKEN} is not replaced in the name of a table: {table} is waited for"
            hint = "name the table: the slices of a partitioned one are rows of it"
            where = declared.declaration.place(what)
            yield Diagnostic("warning", message, where, hint, "on-table")
        else:
            yield from _known_lake(declared, what, table)


def _relationships(declared: _Declared) -> Iterator[Diagnostic]:
    for number, test in enumerate(declared.declaration.data_tests):
        if not isinstance(test, RelationshipsTest):
            continue
        what, table = f"data_test:{number}", table_of(test.to)
        if table is None:
            message = f"the relationship of {test.column} leads to no managed table"
            hint = f"write relationships {test.column} -> {TARGET}.column"
            yield declared.error(what, message, hint, "test-table")
        else:
            yield from _known_lake(declared, what, table)


def _quarantine(declared: _Declared) -> Iterator[Diagnostic]:
    """Yield why rows that fail a test cannot be set aside."""
    declaration = declared.declaration
    for number, test in enumerate(declaration.data_tests):
        if test.severity != QUARANTINE:
            continue
        problem = _no_quarantine(declaration, declared.names)
        if not test.by_row:
            problem = f"{test.name} does not test single rows"
        if problem is not None:
            message = f"severity=quarantine cannot set rows aside: {problem}"
            hint = "write severity=warn or severity=error"
            yield declared.error(f"data_test:{number}", message, hint, "test-quarantine")


def _no_quarantine(declaration: Declaration, names: Names) -> str | None:
    history, by_time = declaration.history, declaration.time_range
    if declaration.strategy.output is not Output.TABLE:
        return f"{declaration.strategy.name} writes no rows of a SELECT"
    if declaration.target.lake in names.roots:
        return "a Delta commit cannot also write the table of the rejected rows"
    if history is not None and history.closes:
        return "the history would close the keys of these rows (deletes=close)"
    if declaration.upsert.deletes is not None:
        return "an event that deletes a key would be lost with its row (deletes)"
    if by_time is not None and by_time.batch_size != 1:
        return "one batch has the rows of several intervals; write batch_size=1"
    return None


def _expressions(declared: _Declared) -> Iterator[Diagnostic]:
    declaration = declared.declaration
    for test, place in declaration.placed_tests:
        if isinstance(test, ExpressionTest):
            problem = misread_condition(test.sql, test.dialect or declaration.dialect)
            if problem is not None:
                where = test.location or place
                if test.location is not None and where.column is not None:
                    where = replace(where, column=where.column + problem.at)
                yield Diagnostic("error", problem.message, where, problem.hint, "test-expression")


def _known_lake(declared: _Declared, what: str, table: TableName) -> Iterator[Diagnostic]:
    if table.lake not in declared.names.lakes:
        unknown = declared.names.unknown_lake(table.lake)
        yield declared.error(what, str(unknown), unknown.hint, "unknown-lake")


def _timeout(declared: _Declared) -> Iterator[Diagnostic]:
    declaration = declared.declaration
    if declaration.timeout and declared.python is None:
        message = "only a step in Python has a timeout"
        where = declaration.place("timeout")
        yield Diagnostic("warning", message, where, "take it away", "idle")


def _schedule(declared: _Declared) -> Iterator[Diagnostic]:
    yield from check_triggers(declared.declaration)


_RULES: tuple[Callable[[_Declared], Iterator[Diagnostic]], ...] = (
    _partition,
    _triggers,
    _relationships,
    _quarantine,
    _expressions,
    _schedule,
    _timeout,
)


def definition_hash(
    query: Query,
    meaning: Mapping[str, object],
    target: TableName,
    lexer: Lexer,
    python: PythonStep | None = None,
) -> str:
    """Hex SHA-256 of the canonical query and of what says where and how it is written.

    Blanks, comments, the case of keywords and the data tests do not count. Of a Python step, the
    text of its file and of those of the project that it imports counts.
    """
    use = query.names.use
    after = [_canonical(part, query, lexer) for part in query.after]
    all_of_it = {
        "dialect": query.dialect,
        "target": str(target),
        **meaning,
        "reads": [str(table) for table in query.reads],
        "aliases": sorted(query.names.aliases.items()),
        "use": list(use) if use else None,
        "settings": [[setting.name, setting.value] for setting in query.settings],
        "arguments": [
            [argument.name, argument.type, argument.default] for argument in query.arguments
        ],
        "parts": [[part.name, *_canonical(part, query, lexer)] for part in query.parts],
        **({} if python is None else {"python": python.digest}),
        **({"after": after} if after else {}),
    }
    text = json.dumps(all_of_it, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _canonical(part: Part, query: Query, lexer: Lexer) -> list[str]:
    statement = part.statement
    return canonical(query.source.text[statement.start : statement.end], query.dialect, lexer)
