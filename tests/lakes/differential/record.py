"""Run a script on the real extension and keep what it reads, moment by moment.

Before each statement that takes history away, and at the end, the lake is frozen: DuckDB reads each
table at each snapshot that remains, its row ids and its change feed, and the lake is copied as it
is. What Penstock makes of the copies is looked at later, for many scripts at once (`compare`).
"""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from penstock.lakes.format.naming import quote_identifier as quoted
from tests.duckdb_process import DuckDBError, DuckDBGone, DuckDBProcess, Result
from tests.lakes.differential import places
from tests.lakes.differential.canonical import json_text
from tests.lakes.differential.places import Home
from tests.lakes.differential.script import Script, Statement

# 1.4.4 does not keep when the rows of files that it puts together came and went.
_COMPACTS = re.compile(r"merge_adjacent|rewrite_data|\bcheckpoint\b", re.I)
# Options of an ATTACH that say where a lake is, which the harness says itself.
_WHERE = re.compile(r"\s*(DATA_PATH|OVERRIDE_DATA_PATH|METADATA_\w+)\b", re.I)
_OPTION = re.compile(r"(?:'(?:[^']|'')*'|[^,'])+")


@dataclass(frozen=True)
class Reading:
    """What DuckDB gave to one question. ``what`` is "rows", "changes", "view" or "query".

    ``rows`` have the row id in front. ``first`` and ``version`` are the bounds of changes; for the
    others ``version`` is the snapshot. ``table`` is None, and ``error`` set, where DuckDB failed.
    """

    what: str
    name: str
    version: int
    first: int | None = None
    table: pa.Table | None = None
    types: tuple[str, ...] = ()
    error: str | None = None

    def __str__(self) -> str:
        span = self.version if self.first is None else f"{self.first} to {self.version}"
        return f"{self.what} of {self.name} at {span}"


@dataclass(frozen=True)
class Frozen:
    """The lake before the statement numbered ``before`` (from 0; their count: the end)."""

    home: Home
    before: int
    readings: tuple[Reading, ...]


@dataclass
class Recording:
    """``moments`` are the tables as they were when each snapshot was the latest."""

    script: Script
    writer: str
    home: Home
    frozen: list[Frozen] = field(default_factory=list)
    moments: dict[tuple[str, int], pa.Table] = field(default_factory=dict)
    errors: list[tuple[Statement, str]] = field(default_factory=list)

    def drop(self) -> None:
        for each in self.frozen:
            if each.home is not self.home:
                places.drop(each.home)
        places.drop(self.home)


@dataclass(frozen=True)
class Effort:
    """How much of a frozen lake is read: everything, or (``None`` is all) so many questions."""

    midway: int | None = None
    last: int | None = None
    moments: bool = True


@dataclass(frozen=True)
class _Span:
    """A table (or view) by one of its names, in force from ``begin`` until before ``end``."""

    schema: str
    name: str
    begin: int
    end: int | None

    @property
    def full(self) -> str:
        return f"{quoted(self.schema)}.{quoted(self.name)}"

    def holds(self, version: int) -> bool:
        return self.begin <= version and (self.end is None or version < self.end)


class Recorder:
    """Runs one script in one home."""

    def __init__(self, duckdb: DuckDBProcess, script: Script, home: Home, effort: Effort) -> None:
        self.duckdb, self.script, self.home, self.effort = duckdb, script, home, effort
        self.recording = Recording(script, duckdb.version, home)
        self.random = random.Random(script.text)
        self.alias = "lk"
        self.own_options: str | None = None
        self.copies = 0
        self.compacted = False
        self.latest = -1
        self.dirty = False
        self.queries = [each.text for each in script.statements if each.kind == "query"]

    def run(self) -> Recording:
        self.duckdb.renew()
        self.attach()
        open_transaction = False
        for at, statement in enumerate(self.script.statements):
            if statement.kind == "query":
                continue
            failed = len(self.recording.errors)
            if not open_transaction and (statement.kind == "check" or statement.destroys):
                self.freeze(at)
            if statement.kind == "sql":
                self.execute(statement)
                open_transaction = (open_transaction or statement.opens) and not statement.closes
            if not open_transaction:
                if len(self.recording.errors) > failed:
                    self.recover()
                self.note_moment()
        if open_transaction:
            self.execute(Statement("ROLLBACK"))
        self.freeze_last()
        return self.recording

    @property
    def meta(self) -> str:
        return quoted(f"__ducklake_metadata_{self.alias}")

    def attach(self) -> None:
        options = [f"DATA_PATH '{self.home.data_path}'"]
        if self.own_options is not None:
            options += [self.own_options] if self.own_options else []
        elif self.script.inline is not None:
            options.append(f"DATA_INLINING_ROW_LIMIT {self.script.inline}")
        options += [self.script.attach] if self.script.attach else []
        uri = self.home.uri.replace("'", "''")
        self.duckdb.execute(f"ATTACH '{uri}' AS {quoted(self.alias)} ({', '.join(options)})")
        self.duckdb.execute(f"USE {quoted(self.alias)}")

    def attach_as(self, alias: str, options: str) -> None:
        """A script attaches a lake itself: it gets this one, by the name that it wants."""
        with suppress(DuckDBError):
            self.detach()
        self.alias = alias
        listed = _OPTION.findall(options)
        self.own_options = ", ".join(each for each in listed if not _WHERE.match(each))
        self.attach()

    def detach(self) -> None:
        self.duckdb.execute("USE memory")
        self.duckdb.execute(f"DETACH {quoted(self.alias)}")

    def execute(self, statement: Statement) -> None:
        text = statement.text.replace("{dir}", str(self.home.files))
        self.dirty = True
        self.compacted |= _COMPACTS.search(text) is not None
        try:
            own = statement.own_attach
            if own is not None:
                self.attach_as(own[1] or "lk", own[2] or "")
            else:
                self.duckdb.execute(text)
        except DuckDBGone as error:
            self.recording.errors.append((statement, str(error)))
            self.duckdb.renew()
            self.attach()
        except DuckDBError as error:
            self.recording.errors.append((statement, str(error)))

    def recover(self) -> None:
        """End the transaction that a statement of its own may leave when it fails."""
        with suppress(DuckDBError):
            self.duckdb.execute("ROLLBACK")

    def note_moment(self) -> None:
        try:
            ((latest,),) = self.duckdb.rows(
                f"SELECT max(snapshot_id) FROM {self.meta}.ducklake_snapshot"
            )
        except DuckDBError:
            return  # the script detached it
        if latest == self.latest or not self.effort.moments:
            return
        self.latest = latest
        for table in self.spans("table"):
            if table.holds(latest):
                query = f"SELECT rowid, * FROM {quoted(self.alias)}.{table.full}"
                answer = self.ask(Reading("rows", table.full, latest), query)
                if answer.table is not None:
                    self.recording.moments[table.full, latest] = answer.table

    def freeze(self, before: int) -> None:
        """Keep a copy, unless nothing has changed since the last one."""
        if not self.dirty:
            return
        try:
            readings = self.readings(self.effort.midway)
            ((schema,),) = self.duckdb.rows("SELECT current_schema()")
            self.detach()
        except DuckDBError as error:
            self.recording.errors.append(
                (Statement(f"reading before statement {before}"), str(error))
            )
            return
        self.copies += 1
        folder = self.home.folder.with_name(f"{self.home.folder.name}-{self.copies}")
        home = places.copy(self.home, folder)
        self.recording.frozen.append(Frozen(home, before, readings))
        self.attach()
        with suppress(DuckDBError):  # it may have been in no lake
            self.duckdb.execute(f"USE {quoted(self.alias)}.{quoted(schema)}")
        self.dirty = False

    def freeze_last(self) -> None:
        try:
            self.note_moment()
            readings = self.readings(self.effort.last)
        except DuckDBError:
            self.duckdb.renew()  # the script let go of its lake, or broke it
            self.attach()
            readings = self.readings(self.effort.last)
        readings += tuple(
            self.ask(Reading("query", query, -1), query.replace("{dir}", str(self.home.files)))
            for query in self.queries
        )
        self.duckdb.renew()
        self.recording.frozen.append(Frozen(self.home, len(self.script.statements), readings))

    def readings(self, limit: int | None) -> tuple[Reading, ...]:
        """The questions about this state, or ``limit`` of them with those about latest rows."""
        questions = list(self.questions())
        if limit is not None and len(questions) > limit:
            latest = max(reading.version for reading, _ in questions)
            questions.sort(key=lambda each: each[0].what != "rows" or each[0].version != latest)
            sure = min(limit // 2, sum(each[0].version == latest for each in questions))
            questions = questions[:sure] + self.random.sample(questions[sure:], limit - sure)
        return tuple(self.ask(reading, query) for reading, query in questions)

    def questions(self) -> Iterator[tuple[Reading, str]]:
        rows = self.duckdb.rows(f"SELECT snapshot_id FROM {self.meta}.ducklake_snapshot ORDER BY 1")
        versions = [version for (version,) in rows]
        for table in self.spans("table"):
            held = [version for version in versions if table.holds(version)]
            for version in held:
                source = f"{quoted(self.alias)}.{table.full}"
                query = f"SELECT rowid, * FROM {source} AT (VERSION => {version})"
                yield Reading("rows", table.full, version), query
            for first, last in _ranges(held) if self.has_changes else ():
                arguments = ", ".join(
                    _literal(part) for part in (self.alias, table.schema, table.name)
                )
                query = f"SELECT * FROM ducklake_table_changes({arguments}, {first}, {last})"
                yield Reading("changes", table.full, last, first), query
        for view in self.spans("view"):
            if view.holds(versions[-1]):
                yield (
                    Reading("view", view.full, versions[-1]),
                    f"SELECT * FROM {quoted(self.alias)}.{view.full}",
                )

    @property
    def has_changes(self) -> bool:
        """Whether DuckDB's feed says what happened."""
        return not (self.compacted and self.duckdb.version == "1.4.4")

    def spans(self, kind: str) -> list[_Span]:
        """Each table or view that there was, once for each name."""
        query = (
            f"SELECT s.schema_name, t.{kind}_name, t.begin_snapshot, t.end_snapshot "
            f"FROM {self.meta}.ducklake_{kind} t "
            f"JOIN {self.meta}.ducklake_schema s USING (schema_id)"
        )
        return sorted((_Span(*row) for row in set(self.duckdb.rows(query))), key=str)

    def ask(self, reading: Reading, query: str) -> Reading:
        values = {name: getattr(reading, name) for name in ("what", "name", "version", "first")}
        try:
            result = _complete(self.duckdb, query)
        except DuckDBError as error:
            return Reading(**values, error=str(error))
        return Reading(**values, table=result.table, types=result.types)


def _complete(duckdb: DuckDBProcess, query: str) -> Result:
    """The answer to a query, with what Arrow does not hold as text: zones of times, variants."""
    try:
        result = duckdb.query(query)
    except DuckDBError as error:
        if "Unsupported Arrow type" not in str(error):
            raise
        described = duckdb.rows(f"DESCRIBE {query}")
        names, types = [row[0] for row in described], tuple(row[1] for row in described)
    else:
        names, types = result.table.column_names, result.types
        if not _AS_TEXT.keys() & set(types):
            return result
    columns = [pair for pair in zip(names, types, strict=True) if pair[1] in _AS_TEXT]
    replaced = ", ".join(f"{quoted(c)}::{_AS_TEXT[kind]} AS {quoted(c)}" for c, kind in columns)
    table = duckdb.query(f"SELECT * REPLACE ({replaced}) FROM ({query})").table
    for at, kind in enumerate(types):
        if kind == "VARIANT":
            # A variant's own null is NULL, which becomes JSON's.
            values = table.column(at).to_pylist()
            plain = [None if v in (None, "null") else json_text(v) for v in values]
            table = table.set_column(at, names[at], pa.array(plain, pa.string()))
    return Result(table, types)


_AS_TEXT = {"TIME WITH TIME ZONE": "VARCHAR", "VARIANT": "JSON::VARCHAR"}


def _ranges(held: Sequence[int]) -> list[tuple[int, int]]:
    """The whole life, each snapshot on its own, and the two halves."""
    if not held:
        return []
    half = held[len(held) // 2]
    several = [(held[0], held[-1]), (held[0], half), (half, held[-1])]
    return list(dict.fromkeys([*several, *((version, version) for version in held)]))


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def record(
    duckdb: DuckDBProcess,
    script: Script,
    kind: str,
    folder: Path,
    *,
    postgres: str | None = None,
    effort: Effort | None = None,
) -> Recording:
    """Run ``script`` in a lake of its own below ``folder``, which must not exist."""
    shutil.rmtree(folder, ignore_errors=True)
    home = places.make(kind, folder, postgres if kind == "postgres" else None)
    return Recorder(duckdb, script, home, effort or Effort()).run()
