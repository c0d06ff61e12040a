"""One statement read: what it reads, and the edits that make it ready for Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from penstock.errors import Diagnostic, Location
from penstock.model.asof.asof import AsofError, asof_joins
from penstock.model.files.source_map import Source
from penstock.model.script.arguments import OF_SLICE, Argument
from penstock.model.script.constants import (
    ArgumentValue,
    Constant,
    NotConstant,
    PartitionValue,
    read_constant,
)
from penstock.model.script.references import (
    References,
    TableReference,
    UnreadableQuery,
    dotted_names,
    empty_place,
    find_references,
)
from penstock.model.script.rewrites import duckdb_forms
from penstock.model.script.script import Statement
from penstock.model.script.sources import (
    Call,
    FileSource,
    QuerySource,
    TableSource,
    TimeTravel,
    find_calls,
    find_lake_calls,
    read_call,
    read_lake_call,
)
from penstock.model.time.time_macros import BARE, TOKEN, is_bare, misplaced
from penstock.model.values.asset import Names, UnknownName
from penstock.sql.dialect import DUCKDB, SPARK
from penstock.sql.identifiers import NAMES, nearest
from penstock.sql.lexer import Lexer
from penstock.sql.query.edits import Edit, from_first
from penstock.sql.time_travel import Clause, find_clauses, without_type
from penstock.sql.tokens import ARGUMENT, NAME, STRING, WORD, Token, closing, has_word

PARTITION_MARKER = "penstock_partition"
_OTHER_DIALECT = "for DuckDB's SQL: -- dialect duckdb"
_TYPED = ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "TIMESTAMPTZ")
#: dialect -> what a marker begins with; DuckDB's become Spark's when the query is turned
_SIGNS = {SPARK: ":", DUCKDB: "$"}


@dataclass(slots=True)
class _Reading:
    scope: Scope
    tokens: Sequence[Token]
    taken: set[int] = field(default_factory=set)
    masked: list[tuple[int, int, str]] = field(default_factory=list)
    sources: list[SourceEdit] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)
    placeholders: dict[str, Constant] = field(default_factory=dict)
    findings: list[Diagnostic] = field(default_factory=list)

    def where(self, offset: int) -> Location:
        return self.scope.source.location(offset)

    def error(self, offset: int, message: str, hint: str, rule: str) -> None:
        self.findings.append(Diagnostic("error", message, self.where(offset), hint, rule))

    def take(self, first: int, last: int) -> None:
        self.taken.update(range(first, last + 1))


def read_part(
    statement: Statement, scope: Scope, name: str | None = None
) -> tuple[Part, tuple[Diagnostic, ...]]:
    """Read one statement; everything wrong with it is found at once."""
    tokens = statement.tokens
    reading = _Reading(scope, tokens)
    calls = _take_calls(reading)
    clauses = _take_clauses(reading)
    _bind_tokens(reading)
    _refuse_foreign(reading)
    _place_tables(reading, calls, clauses)
    reading.edits += from_first(tokens)
    try:
        if has_word(tokens, "ASOF"):
            asof_joins(scope.source.text, tokens)
    except AsofError as error:
        reading.error(error.token.start, str(error), error.hint, "asof-join")
    part = Part(statement, name, tuple(reading.sources), tuple(reading.edits), reading.placeholders)
    return part, tuple(reading.findings)


def _take_calls(reading: _Reading) -> dict[int, Call]:
    """Calls of files and of lakes by the offset of their name; the parser sees the name alone."""
    found = (*find_calls(reading.tokens), *find_lake_calls(reading.tokens))
    calls = {reading.tokens[call.first].start: call for call in found}
    for call in calls.values():
        opening, closing = reading.tokens[call.first + 1], reading.tokens[call.last]
        reading.masked.append((opening.start, closing.end, ""))
        reading.take(call.first, call.last)
    return calls


def _take_clauses(reading: _Reading) -> dict[int, Clause]:
    """Time travel by the index of the token before it."""
    clauses = {
        clause.first - 1: clause
        for clause in find_clauses(reading.tokens)
        if clause.kind in {"version", "timestamp"}
    }
    for clause in clauses.values():
        first, last = reading.tokens[clause.first], reading.tokens[clause.last]
        reading.masked.append((first.start, last.end, ""))
        reading.take(clause.first, clause.last)
    return clauses


def _bind_tokens(reading: _Reading) -> None:
    """``'{partition}'`` and ``$name`` become markers; values never enter the text."""
    for index, token in enumerate(reading.tokens):
        if token.kind == WORD or index in reading.taken:
            continue
        if token.kind in {STRING, NAME} and TOKEN in token.value:
            _bind_partition(reading, index, token)
        elif token.kind == ARGUMENT:
            _bind_argument(reading, index, token)
        elif token.text in {"$", "@"}:
            hint = "write $name, and declare it: -- $name (type)"
            reading.error(token.start, "an argument has a name", hint, "argument")
        elif token.text == "{" and is_bare(reading.tokens, index):
            reading.error(token.start, *BARE, "partition-token")


def _refuse_foreign(reading: _Reading) -> None:
    if reading.scope.dialect != SPARK:
        return
    read = {reading.tokens[index].start for index in reading.taken}  # options of files
    for offset, form in duckdb_forms(reading.tokens):
        if offset in read:
            continue
        message = f"{form} is DuckDB's SQL, and the script is in Spark's"
        reading.error(offset, message, "add `-- dialect duckdb` to the header", "duckdb-form")


def _bind_partition(reading: _Reading, index: int, token: Token) -> None:
    problem = misplaced(reading.tokens, index, partitioned=reading.scope.partitioned)
    if problem is not None:
        reading.error(token.start, *problem, "partition-token")
    else:
        _replace(reading, index, token, f"{_SIGNS[reading.scope.dialect]}{PARTITION_MARKER}")
        reading.placeholders[PARTITION_MARKER] = PartitionValue()


def _bind_argument(reading: _Reading, index: int, token: Token) -> None:
    argument = reading.scope.arguments.get(token.value)
    if argument is None:
        guess = nearest(token.value, reading.scope.arguments)
        hint = f"did you mean ${guess}?" if guess else f"declare it: -- ${token.value} (text)"
        if token.value in OF_SLICE:
            hint = "add `-- partitioned daily` to the header; a dynamic partition has no bounds"
        reading.error(token.start, f"${token.value} is not declared", hint, "argument")
        return
    dialect, marker = reading.scope.dialect, f"penstock_arg_{argument.name}"
    kind = argument.kind.spark if dialect == SPARK else argument.kind.duckdb
    signed = f"{_SIGNS[dialect]}{marker}"
    _replace(reading, index, token, f"CAST({signed} AS {kind})" if kind else signed)
    reading.placeholders[marker] = ArgumentValue(argument.name)


def _replace(reading: _Reading, index: int, token: Token, marker: str) -> None:
    """``DATE '{partition}'`` takes only a literal, so it becomes a cast."""
    text = reading.scope.source.text
    before = reading.tokens[index - 1] if index else None
    if before is not None and before.upper in _TYPED:
        written = text[before.start : before.end]
        reading.edits.append(Edit(before.start, token.end, f"CAST({marker} AS {written})"))
    else:
        left = " " if text[token.start - 1 : token.start].isalnum() else ""
        right = " " if text[token.end : token.end + 1].isalnum() else ""
        reading.edits.append(Edit(token.start, token.end, f"{left}{marker}{right}"))


def _duckdb_reads(reading: _Reading) -> bool:
    """Return whether a query that Spark's dialect cannot read is one of DuckDB's."""
    scope = reading.scope
    if scope.dialect == DUCKDB:
        return False
    try:
        find_references(scope.source, reading.tokens, DUCKDB, reading.masked, scope.hidden)
    except UnreadableQuery:
        return False
    return True


def _references(reading: _Reading) -> References | None:
    """The tables that the statement names; None, and a finding, where that cannot be told."""
    scope, tokens = reading.scope, reading.tokens
    empty = empty_place(tokens) if scope.dialect == SPARK else None
    if empty is not None:
        hint = "write what is missing, or take the comma or the word away"
        reading.error(empty[0], f"the query cannot be read: {empty[1]}", hint, "unreadable-query")
        return None
    try:
        found = find_references(
            scope.source, tokens, scope.dialect, reading.masked, scope.hidden, lexer=scope.lexer
        )
    except UnreadableQuery as error:
        other = _OTHER_DIALECT if _duckdb_reads(reading) else "correct the SQL"
        reading.error(error.offset, str(error), error.hint or other, "unreadable-query")
        return None
    if found.unread is not None:
        message = f"only Spark can read this query ({found.unread})"
        hint = "ask Spark before it runs: penstock check --spark"
        where = reading.where(found.unread.offset)
        reading.findings.append(Diagnostic("warning", message, where, hint, "sparks-own"))
    return found


def _place_tables(reading: _Reading, calls: dict[int, Call], clauses: dict[int, Clause]) -> None:
    tokens = reading.tokens
    found = _references(reading)
    if found is None:
        return
    arguments = [token.start for token in tokens if token.kind == ARGUMENT]
    for table in found.tables:
        call = calls.pop(tokens[table.last].start, None)
        if call is not None and call.function in NAMES:
            _place_function(reading, call, table)
        elif call is not None and len(table.parts) == 1:
            _place_file(reading, call)
        elif any(table.start <= start < table.end for start in arguments):
            hint = "write the name; an argument is a value"
            reading.error(table.start, "an argument cannot be a table's name", hint, "argument")
        elif tokens[table.last].kind == STRING:
            hint = f"write read_csv('{table.parts[0]}'), read_json(...) or read_parquet(...)"
            reading.error(table.start, "a file is read by a function", hint, "file")
        else:
            _place_table(reading, table, clauses.pop(table.last, None))
    for start, call in calls.items():
        if call.function in NAMES:  # a name that the query gives itself, with columns
            continue
        hint = f"write FROM {call.function}(...)"
        reading.error(start, f"{call.function} stands where no table can", hint, "file")
    for clause in clauses.values():
        hint = "write it right after the name of a managed table"
        at = tokens[clause.first].start
        reading.error(at, "the snapshot clause follows no table", hint, "time-travel")
    _shorten_columns(reading, found.tables)


def _place_file(reading: _Reading, call: Call) -> None:
    first, last = reading.tokens[call.first], reading.tokens[call.last]
    try:
        path, options = read_call(call, reading.tokens)
    except NotConstant as error:
        _not_constant(
            reading, error, first, f"{call.function} takes constants, '{TOKEN}' and $name"
        )
        return
    _check_bindings(reading, call.first, call.last)
    source = FileSource(call.function, path, options, reading.where(first.start))
    reading.sources.append(SourceEdit(first.start, last.end, source))


def _place_function(reading: _Reading, call: Call, table: TableReference) -> None:
    first, last = reading.tokens[call.first], reading.tokens[call.last]
    names, where = reading.scope.names, reading.where(table.start)
    try:
        source = read_lake_call(call, reading.tokens, table.parts[:-1], names, where)
    except UnknownName as error:
        reading.error(table.start, str(error), error.hint, "unknown-lake")
        return
    except NotConstant as error:
        hint = f"{call.function} takes constants, '{TOKEN}' and $name"
        _not_constant(reading, error, first, hint)
        return
    _check_bindings(reading, call.first, call.last)
    reading.sources.append(SourceEdit(table.start, last.end, source))
    if table.bare:
        reading.edits.append(Edit(last.end, last.end, f" AS {call.function}"))


def _place_table(reading: _Reading, table: TableReference, clause: Clause | None) -> None:
    try:
        name = reading.scope.names.resolve(table.parts)
    except UnknownName as error:
        reading.error(table.start, str(error), error.hint, "unknown-lake")
        return
    at: TimeTravel | None = None
    last = table.last
    if clause is not None:
        last = clause.last
        try:
            at = TimeTravel(clause.kind, read_constant(without_type(clause.value)))
        except NotConstant as error:
            _not_constant(reading, error, reading.tokens[clause.first], "write AT (VERSION => 3)")
            return
        _check_bindings(reading, clause.first, clause.last)
    end = reading.tokens[last].end
    source = TableSource(name, at, reading.where(table.start))
    reading.sources.append(SourceEdit(table.start, end, source))
    if table.bare:
        at_offset = _after_sample(reading.tokens, last)
        written = reading.tokens[table.last]
        alias = reading.scope.source.text[written.start : written.end]
        reading.edits.append(Edit(at_offset, at_offset, f" AS {alias}"))


def _not_constant(reading: _Reading, error: NotConstant, near: Token, hint: str) -> None:
    token = error.token or near
    reading.error(token.start, str(error), hint, "not-constant")


def _check_bindings(reading: _Reading, first: int, last: int) -> None:
    """Constants may use the partition and declared arguments only."""
    for token in reading.tokens[first : last + 1]:
        if token.kind == STRING and TOKEN in token.value and not reading.scope.partitioned:
            hint = "add `-- partitioned daily` to the header"
            reading.error(token.start, "the script is not partitioned", hint, "partition-token")
        if token.kind == ARGUMENT and token.value not in reading.scope.arguments:
            guess = nearest(token.value, reading.scope.arguments)
            hint = f"did you mean ${guess}?" if guess else f"declare it: -- ${token.value} (text)"
            reading.error(token.start, f"${token.value} is not declared", hint, "argument")


def _after_sample(tokens: Sequence[Token], last: int) -> int:
    """Spark wants an alias after TABLESAMPLE (...), else right after the name."""
    position = last + 1
    while position + 1 < len(tokens) and tokens[position].upper in {"TABLESAMPLE", "REPEATABLE"}:
        close = closing(tokens, position + 1)
        if close is None:
            break
        last, position = close, close + 1
    return tokens[last].end


def _shorten_columns(reading: _Reading, tables: Sequence[TableReference]) -> None:
    """``dl.orders.id`` becomes ``orders.id``: the table has only its last name in Spark."""
    written = {
        tuple(part.casefold() for part in table.parts[start:])
        for table in tables
        if table.bare
        for start in range(len(table.parts) - 1)
    }
    starts = {table.start for table in tables}
    for name in dotted_names(reading.tokens) if written else ():
        parts = tuple(token.value.casefold() for token in name)
        length = next((n for n in range(len(parts), 1, -1) if parts[:n] in written), None)
        if length is not None and name[0].start not in starts:
            reading.edits.append(Edit(name[0].start, name[length - 1].start, ""))


@dataclass(frozen=True, slots=True)
class SourceEdit:
    """``text[start:end]`` becomes the name that a run gives ``source``."""

    start: int
    end: int
    source: QuerySource


@dataclass(frozen=True, slots=True)
class Part:
    """One statement of a script; ``name`` is set for a temporary table."""

    statement: Statement = field(repr=False)
    name: str | None = None
    sources: tuple[SourceEdit, ...] = ()
    edits: tuple[Edit, ...] = ()
    placeholders: Mapping[str, Constant] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scope:
    """Names that a statement may refer to. ``hidden`` are folded names of temporary tables."""

    source: Source
    names: Names
    dialect: str
    arguments: Mapping[str, Argument]
    partitioned: bool
    hidden: frozenset[str] = frozenset()
    lexer: Lexer = field(default_factory=Lexer, repr=False)
