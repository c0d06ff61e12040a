"""MERGE INTO, with any number of WHEN clauses, in the spellings of Spark, Delta and DuckDB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.errors import QueryFailed
from penstock.lake.format.naming import TableRef
from penstock.lake.format.schema import TableSchema
from penstock.lake.reading.conversions.spark_types import quoted
from penstock.lake.rows import updates
from penstock.lake.rows.change import Action, Clause, Kind, On, RowChange
from penstock.lake.rows.engine import stage
from penstock.lake.statements.answer import Answer, counts
from penstock.lake.statements.default_text import default_text
from penstock.lake.statements.existing import existing
from penstock.lake.statements.expressions import Expressions, variables
from penstock.lake.statements.session import Session
from penstock.lake.statements.tails import refuse_tail
from penstock.lake.statements.targets import TARGET, Target, take, target
from penstock.lake.statements.update import Set, assignments, places_of
from penstock.lake.transaction import TransactionTable
from penstock.sql.statement import Reader, begun

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Span = tuple[int, int]
_UNNAMED = "__penstock_source"
_STOPS = ("WHEN", "RETURNING")
_SHAPE = "write MERGE INTO t USING s ON ... WHEN ...; s is a table or a query in brackets"
_NEW_COLUMNS = (
    "new columns come by UPDATE SET * and INSERT *, or by ALTER TABLE ... ADD COLUMN before"
)
_AS_OF = (("VERSION", "AS", "OF"), ("TIMESTAMP", "AS", "OF"), ("SYSTEM_TIME", "AS", "OF"))
_TRAVELS = (("AT",), *_AS_OF, *(("FOR", *phrase) for phrase in _AS_OF))


@dataclass(slots=True)
class _When:
    """One WHEN as read. ``action`` may be ``nothing`` or ``error`` too.

    ``sets`` are assignments; ``names`` and ``values`` those of an INSERT; ``all_`` is ``name`` or
    ``position`` where all columns of the source are meant.
    """

    kind: Kind
    action: str
    at: int
    condition: Span | None = None
    sets: list[Set] | None = None
    names: tuple[str, ...] | None = None
    values: list[Span | None] | None = None
    all_: str | None = None
    message: str | None = None


@dataclass(slots=True)
class Merge:
    """A MERGE as read; ``source``, ``on`` and those of ``whens`` are spans."""

    of: Target
    source: Span
    alias: str
    on: Span | None
    using: tuple[str, ...]
    whens: list[_When]
    evolve: bool
    named: Target | None = None  # the source, where it has no alias but a schema

    @property
    def tables(self) -> tuple[Target, ...]:
        return (self.of,) if self.named is None else (self.of, self.named)


def run(session: Session, reader: Reader) -> Answer:
    """``MERGE [WITH SCHEMA EVOLUTION] INTO t USING s ON ... WHEN ...``"""
    merge = read(reader)
    with session.writing() as transaction:
        table = existing(session, transaction, merge.of.ref)
        text = begun(reader).add("SELECT * FROM ").take(merge.source)
        source = session.asked(text, {})
        _refuse_source(session, reader, merge, table)
        with variables(session) as names:
            written = Expressions(session, reader, merge.of, names, merge.named)
            try:
                change = _change(merge, written, table.written_schema, source)
            except QueryFailed as problem:
                if merge.evolve and "has no column" in problem.message:
                    problem.hint = _NEW_COLUMNS
                raise
            try:
                staged = stage(table, change)
            except QueryFailed as problem:
                _find_place(session, reader, merge, source, updates.target_rows(table))
                raise problem from problem.__cause__
    return counts(
        session.spark,
        updated=staged.rows_updated,
        deleted=staged.rows_deleted,
        inserted=staged.rows_inserted,
    )


def read(reader: Reader) -> Merge:
    """The statement's parts. Raises QueryFailed, UnsupportedFeature."""
    reader.expect("MERGE")
    evolve = reader.accept("WITH", "SCHEMA", "EVOLUTION")
    if not reader.accept("INTO"):
        raise reader.wrong(f"INTO is expected, not {reader.shown()}", _SHAPE)
    of = target(reader)
    refuse_tail(reader)
    if not reader.accept("USING"):
        raise reader.wrong(f"USING is expected, not {reader.shown()}", _SHAPE)
    source, alias, named = _source(reader)
    on: Span | None = None
    using: tuple[str, ...] = ()
    if reader.accept("USING"):
        using = reader.names()
    else:
        if not reader.accept("ON"):
            raise reader.wrong(f"ON is expected, not {reader.shown()}", _SHAPE)
        on = reader.until(*_STOPS)
        reader.written(on, "a condition")
    whens: list[_When] = []
    while reader.accept("WHEN"):
        whens.append(_when(reader, of))
    if reader.sees("RETURNING"):
        raise reader.unsupported("RETURNING", "SELECT the rows after the MERGE")
    if reader.sees("WHERE"):
        raise reader.unsupported("WHERE in MERGE", "write WHEN MATCHED AND a condition THEN ...")
    if reader.sees("EXCEPT"):
        raise reader.unsupported("* EXCEPT", "name the columns: SET a = s.a, or a query as source")
    reader.finish()
    if not whens:
        raise reader.wrong("WHEN MATCHED or WHEN NOT MATCHED is expected")
    return Merge(of, source, alias, on, using, whens, evolve, named)


def _source(reader: Reader) -> tuple[Span, str, Target | None]:
    """A table (at a snapshot), or a query in brackets, with what it is called."""
    start = reader.token.start
    name, named = _UNNAMED, None
    if reader.token.text == "(":
        end = reader.skip()
    else:
        *schema, name = reader.qualified(2, "a table")
        if len(schema) == 1 and reader.token.text != "(":
            named = Target(TableRef(reader.schema_of(schema, name), name), None)
        if reader.token.text == "(":  # a table function
            reader.skip()
        for phrase in _TRAVELS:
            if reader.sees(*phrase) and (phrase != ("AT",) or reader.ahead(1).text == "("):
                reader.accept(*phrase)
                reader.skip()
        end = reader.tokens[reader.at - 1].end
    alias = reader.alias()
    if alias is not None:
        name, named = alias, None
        if reader.token.text == "(":
            reader.skip()
        end = reader.tokens[reader.at - 1].end
    return (start, end), name, named


def _when(reader: Reader, of: Target) -> _When:
    at = reader.token.start
    kind: Kind = "matched"
    if reader.accept("NOT", "MATCHED"):
        kind = "not matched"
        if reader.accept("BY", "SOURCE"):
            kind = "not matched by source"
        else:
            reader.accept("BY", "TARGET")
    else:
        reader.expect("MATCHED")
    condition: Span | None = None
    if reader.accept("AND"):
        condition = reader.until("THEN")
        reader.written(condition, "a condition")
    reader.expect("THEN")
    found = _When(kind, "", at, condition)
    word = reader.one_of({"UPDATE", "DELETE", "INSERT", "DO", "ERROR"}, "an action")
    _ACTIONS[word](reader, found, of)
    if kind == "not matched by source" and found.action == "update" and found.all_ is not None:
        raise reader.unsupported(
            "UPDATE of all columns WHEN NOT MATCHED BY SOURCE",
            "no source row is there to take them from: SET the columns",
            at,
        )
    if (kind == "not matched") != (found.action == "insert") and word in {
        "UPDATE",
        "DELETE",
        "INSERT",
    }:
        raise reader.unsupported(
            f"{word} WHEN {kind.upper()}",
            "rows that match nothing are inserted, others updated or deleted",
            at,
        )
    return found


def _update(reader: Reader, found: _When, _: Target) -> None:
    found.action = "update"
    if reader.accept("SET"):
        if reader.accept("*"):
            found.all_ = "name"
            return
        found.sets = assignments(reader, *_STOPS, "WHERE")
        return
    found.all_ = _all(reader)


def _insert(reader: Reader, found: _When, _: Target) -> None:
    found.action = "insert"
    if reader.accept("DEFAULT", "VALUES"):
        found.names, found.values = (), []
        return
    if reader.token.text == "(":
        found.names = reader.names()
        reader.accept("BY", "POSITION")
    if not reader.accept("VALUES"):
        if found.names is not None:
            raise reader.wrong(f"VALUES is expected, not {reader.shown()}")
        found.all_ = _all(reader)
        return
    reader.expect("(")
    found.values = [_value(reader)]
    while reader.accept(","):
        found.values.append(_value(reader))
    reader.expect(")")


def _all(reader: Reader) -> str:
    """``*`` goes by name, as in Spark; the word alone by position, as in DuckDB."""
    named, placed = reader.accept("BY", "NAME"), reader.accept("BY", "POSITION")
    star = reader.accept("*")
    return "name" if named or (star and not placed) else "position"


def _value(reader: Reader) -> Span | None:
    if reader.sees("DEFAULT") and reader.ahead(1).text in {",", ")"}:
        reader.next()
        return None
    span = reader.until(",")
    reader.written(span)
    return span


def _delete(_: Reader, found: _When, __: Target) -> None:
    found.action = "delete"


def _nothing(reader: Reader, found: _When, _: Target) -> None:
    reader.expect("NOTHING")
    found.action = "nothing"


def _error(reader: Reader, found: _When, _: Target) -> None:
    found.action = "error"
    found.message = reader.string() if reader.token.kind in {"string", "name"} else None


_ACTIONS = {
    "UPDATE": _update,
    "INSERT": _insert,
    "DELETE": _delete,
    "DO": _nothing,
    "ERROR": _error,
}


def _change(
    merge: Merge, written: Expressions, schema: TableSchema, source: DataFrame
) -> RowChange:
    if merge.on is not None:
        on = _condition(written, merge.on)
    else:
        of, by = merge.of, quoted(merge.alias)
        pairs = [f"{of.column(name)} = {by}.{quoted(name)}" for name in merge.using]
        on = " AND ".join(pairs)
    clauses: list[Clause] = []
    passed: dict[str, list[str]] = {}
    for when in merge.whens:
        before = passed.setdefault(when.kind, [])
        own = None if when.condition is None else _condition(written, when.condition)
        condition = _without(own, before)
        if when.action == "nothing":
            if own is None:
                before.append("true")
            else:
                before.append(f"({own})")
            continue
        values = _values(merge, when, written, schema, source)
        action: Action = "delete" if when.action == "delete" else "update"
        if when.kind == "not matched":
            action = "insert"
        clauses.append(Clause(when.kind, action, condition, values))
    return RowChange(
        On(on, merge.of.name, merge.alias),
        tuple(clauses) or (Clause("matched", "delete", "false"),),
        source,
        evolve=merge.evolve,
    )


def _condition(written: Expressions, span: Span) -> str:
    """NULL alone has no type in Spark, and a condition needs one."""
    text = written.text(span)
    return "CAST(NULL AS BOOLEAN)" if text.strip().upper() == "NULL" else text


def _without(condition: str | None, before: Sequence[str]) -> str | None:
    """The condition of a clause after some that do nothing."""
    parts = [f"NOT coalesce({one}, false)" for one in before]
    if condition is not None:
        parts.append(f"({condition})")
    return " AND ".join(parts) or None


def _values(
    merge: Merge, when: _When, written: Expressions, schema: TableSchema, source: DataFrame
) -> Mapping[str, object] | None:
    """By column; ``None`` for all that the source has by name, and for DELETE."""
    reader = written.reader
    if when.action == "error":
        message = written.value(when.message or f"WHEN {when.kind.upper()} THEN ERROR")
        return {schema.names[0]: f"raise_error({message})"}
    if when.sets is not None:
        places = places_of(reader, when.sets, schema, merge.of)
        pairs = zip(places, when.sets, strict=True)
        return {
            place.name: default_text(reader, place.leaf, one.at)
            if one.span is None
            else written.text(one.span)
            for place, one in pairs
        }
    if when.all_ == "position":
        names = source.columns
        _same_width(reader, when, len(names), len(schema.columns))
        by = quoted(merge.alias)
        pairs_ = zip(schema.names, names, strict=True)
        return {column: f"{by}.{quoted(name)}" for column, name in pairs_}
    if when.values is None:
        return None
    wanted = list(schema.names) if when.names is None else list(when.names)
    _same_width(reader, when, len(when.values), len(wanted))
    named = [Set((name,), None, when.at) for name in wanted]
    found = zip(places_of(reader, named, schema, merge.of), when.values, strict=True)
    return {
        one.name: default_text(reader, one.leaf, when.at) if span is None else written.text(span)
        for one, span in found
    }


def _same_width(reader: Reader, when: _When, given: int, wanted: int) -> None:
    if given != wanted:
        raise reader.wrong(
            f"{given} values are given for {wanted} columns",
            "name the columns, or write BY NAME",
            when.at,
        )


def _refuse_source(session: Session, reader: Reader, merge: Merge, table: TransactionTable) -> None:
    """Raise where a clause of rows that no source row matches asks for the source's columns.

    In the join these are NULL: ``NOT MATCHED BY SOURCE AND s.id IS NULL`` would be every row.
    """
    for when in merge.whens:
        if when.kind != "not matched by source":
            continue
        for span in (when.condition, *(one.span for one in when.sets or ())):
            if span is not None:
                text = take(begun(reader).add("SELECT "), reader, span, *merge.tables)
                text.add(f" FROM {merge.of.source}")
                session.asked(text, {TARGET: updates.target_rows(table)})


def _find_place(
    session: Session, reader: Reader, merge: Merge, source: DataFrame, rows: DataFrame
) -> None:
    """Raise what is wrong with an expression at its place, if that can be told."""
    by = f"{quoted(_UNNAMED)} AS {quoted(merge.alias)}"
    both = f" FROM {merge.of.source} CROSS JOIN {by}"
    views = {TARGET: rows, _UNNAMED: source}
    spans = [(merge.on, both)]
    for when in merge.whens:
        scope = f" FROM {by}" if when.kind == "not matched" else both
        spans.append((when.condition, scope))
        spans += [(one.span, scope) for one in when.sets or ()]
        spans += [(value, scope) for value in when.values or ()]
    for span, scope in spans:
        if span is not None:
            text = take(begun(reader).add("SELECT "), reader, span, *merge.tables)
            session.asked(text.add(scope), views)


__all__ = ["read", "run"]
