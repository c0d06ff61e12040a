"""MERGE INTO, with any number of WHEN clauses, in the spellings of Spark, Delta and DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.errors import QueryFailed
from penstock.lakes.format.schema import TableSchema
from penstock.lakes.rows.change import Action, Clause, Kind, On, RowChange
from penstock.lakes.rows.engine import stage
from penstock.lakes.rows.spark_finder import target_rows
from penstock.lakes.statements.assignments import (
    Expressions,
    Set,
    assignments,
    default_text,
    places_of,
    value_or_default,
    variables,
)
from penstock.lakes.statements.session import Answer, Session, counts
from penstock.lakes.statements.targets import (
    TARGET,
    AliasedName,
    Target,
    aliased,
    existing,
    refuse_tail,
    take,
)
from penstock.lakes.transaction import TransactionTable
from penstock.sql.identifiers import quoted
from penstock.sql.statement import Reader, StatementText, TableName, begun
from penstock.sql.text import Composed, Span, SqlExpression

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_UNNAMED = "__penstock_source"
_STOPS = ("WHEN", "RETURNING")
_SHAPE = "write MERGE INTO t USING s ON ... WHEN ...; s is a table or a query in brackets"
_NEW_COLUMNS = (
    "new columns come by UPDATE SET * and INSERT *, or by ALTER TABLE ... ADD COLUMN before"
)
_AS_OF = (("VERSION", "AS", "OF"), ("TIMESTAMP", "AS", "OF"), ("SYSTEM_TIME", "AS", "OF"))
_TRAVELS = (("AT",), *_AS_OF, *(("FOR", *phrase) for phrase in _AS_OF))


@dataclass(frozen=True, slots=True)
class When:
    """One WHEN. ``action`` may also be ``nothing`` or ``error``.

    ``sets`` are assignments; ``names`` and ``values`` those of an INSERT; ``all_`` is ``name`` or
    ``position`` for all columns of the source. ``at`` is its place in the text.
    """

    kind: Kind
    at: int
    condition: SqlExpression | None = None
    action: str = ""
    sets: tuple[Set, ...] | None = None
    names: tuple[str, ...] | None = None
    values: tuple[SqlExpression | None, ...] | None = None
    all_: str | None = None
    message: str | None = None

    @property
    def expressions(self) -> Iterator[SqlExpression]:
        """All its expressions."""
        sets = (assigned.value for assigned in self.sets or ())
        for expression in (self.condition, *sets, *(self.values or ())):
            if expression is not None:
                yield expression


@dataclass(frozen=True, slots=True)
class Merge:
    """A MERGE: ``source`` is the span of its USING, called ``alias``.

    ``named`` is the source where it has no alias but a schema.
    """

    target: AliasedName
    source: Span
    alias: str
    named: TableName | None
    on: SqlExpression | None
    using: tuple[str, ...]
    whens: tuple[When, ...]
    evolve: bool
    statement: StatementText


@dataclass(frozen=True, slots=True)
class _Sides:
    """Names in the expressions of a MERGE: the target and, by its schema, the source."""

    merge: Merge
    target: Target
    source: Target | None

    def select(self, written: SqlExpression, scope: str) -> Composed:
        """A SELECT of one expression."""
        statement = self.merge.statement
        sides = (self.target,) if self.source is None else (self.target, self.source)
        return take(begun(statement).add("SELECT "), statement, written.span, *sides).add(scope)


def parse(reader: Reader) -> Merge:
    """``MERGE [WITH SCHEMA EVOLUTION] INTO t USING s ON ... WHEN ...``

    Raises QueryFailed, UnsupportedFeature.
    """
    reader.expect("MERGE")
    evolve = reader.accept("WITH", "SCHEMA", "EVOLUTION")
    if not reader.accept("INTO"):
        raise reader.wrong(f"INTO is expected, not {reader.shown()}", _SHAPE)
    target = aliased(reader)
    refuse_tail(reader)
    if not reader.accept("USING"):
        raise reader.wrong(f"USING is expected, not {reader.shown()}", _SHAPE)
    source, alias, named = _source(reader)
    on: SqlExpression | None = None
    using: tuple[str, ...] = ()
    if reader.accept("USING"):
        using = reader.names()
    else:
        if not reader.accept("ON"):
            raise reader.wrong(f"ON is expected, not {reader.shown()}", _SHAPE)
        on = reader.expression(*_STOPS, what="a condition")
    whens: list[When] = []
    while reader.accept("WHEN"):
        whens.append(_when(reader))
    if reader.sees("RETURNING"):
        raise reader.unsupported("RETURNING", "SELECT the rows after the MERGE")
    if reader.sees("WHERE"):
        raise reader.unsupported("WHERE in MERGE", "write WHEN MATCHED AND a condition THEN ...")
    if reader.sees("EXCEPT"):
        raise reader.unsupported("* EXCEPT", "name the columns: SET a = s.a, or a query as source")
    reader.finish()
    if not whens:
        raise reader.wrong("WHEN MATCHED or WHEN NOT MATCHED is expected")
    return Merge(target, source, alias, named, on, using, tuple(whens), evolve, reader.statement)


def _source(reader: Reader) -> tuple[Span, str, TableName | None]:
    """A table (at a snapshot), or a query in brackets, with its alias."""
    start = reader.token.start
    name, named = _UNNAMED, None
    if reader.token.text == "(":
        end = reader.skip()
    elif reader.accept("VALUES"):  # a table of constants, as Spark writes one of DuckDB
        _skip_rows(reader)
        end = reader.tokens[reader.at - 1].end
    else:
        *schema, name = reader.qualified(2, "a table")
        if reader.token.text == "(":  # a table function
            reader.skip()
        elif len(schema) == 1:
            named = TableName(tuple(schema), name)
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


def _skip_rows(reader: Reader) -> None:
    """Go past ``(1, 'a'), (2, 'b')``."""
    while True:
        if reader.token.text != "(":
            raise reader.wrong(f"a row in brackets is expected, not {reader.shown()}", _SHAPE)
        reader.skip()
        if not reader.accept(","):
            return


def _when(reader: Reader) -> When:
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
    condition = reader.expression("THEN", what="a condition") if reader.accept("AND") else None
    reader.expect("THEN")
    word = reader.one_of(_ACTIONS, "an action")
    when = _ACTIONS[word](reader, When(kind, at, condition))
    if kind == "not matched by source" and when.action == "update" and when.all_ is not None:
        raise reader.unsupported(
            "UPDATE of all columns WHEN NOT MATCHED BY SOURCE",
            "no source row is there to take them from: SET the columns",
            at,
        )
    changes = word in {"UPDATE", "DELETE", "INSERT"}
    if changes and (kind == "not matched") != (when.action == "insert"):
        raise reader.unsupported(
            f"{word} WHEN {kind.upper()}",
            "rows that match nothing are inserted, others updated or deleted",
            at,
        )
    return when


def _update(reader: Reader, when: When) -> When:
    if not reader.accept("SET"):
        return replace(when, action="update", all_=_all(reader))
    if reader.accept("*"):
        return replace(when, action="update", all_="name")
    return replace(when, action="update", sets=assignments(reader, *_STOPS, "WHERE"))


def _insert(reader: Reader, when: When) -> When:
    when = replace(when, action="insert")
    if reader.accept("DEFAULT", "VALUES"):
        return replace(when, names=(), values=())
    names: tuple[str, ...] | None = None
    if reader.token.text == "(":
        names = reader.names()
        reader.accept("BY", "POSITION")
    if not reader.accept("VALUES"):
        if names is not None:
            raise reader.wrong(f"VALUES is expected, not {reader.shown()}")
        return replace(when, all_=_all(reader))
    reader.expect("(")
    values = [value_or_default(reader, ",")]
    while reader.accept(","):
        values.append(value_or_default(reader, ","))
    reader.expect(")")
    return replace(when, names=names, values=tuple(values))


def _all(reader: Reader) -> str:
    """``*`` means by name, as in Spark; the word alone by position, as in DuckDB."""
    named, placed = reader.accept("BY", "NAME"), reader.accept("BY", "POSITION")
    star = reader.accept("*")
    return "name" if named or (star and not placed) else "position"


def _delete(_: Reader, when: When) -> When:
    return replace(when, action="delete")


def _nothing(reader: Reader, when: When) -> When:
    reader.expect("NOTHING")
    return replace(when, action="nothing")


def _error(reader: Reader, when: When) -> When:
    message = reader.string() if reader.token.kind in {"string", "name"} else None
    return replace(when, action="error", message=message)


_ACTIONS: Mapping[str, Callable[[Reader, When], When]] = {
    "UPDATE": _update,
    "INSERT": _insert,
    "DELETE": _delete,
    "DO": _nothing,
    "ERROR": _error,
}


def execute(session: Session, merge: Merge) -> Answer:
    target = Target.of(session, merge.target)
    named = None if merge.named is None else Target(session.ref(merge.named), None)
    sides = _Sides(merge, target, named)
    with session.writing() as transaction:
        table = existing(session, transaction, target.ref)
        _require_names(session, merge)
        text = begun(merge.statement).add("SELECT * FROM ").take(merge.source)
        source = session.asked(text, {})
        _refuse_source(session, sides, table)
        with variables(session) as names:
            expressions = Expressions(session, merge.statement, target, names, named)
            try:
                change = _change(sides, expressions, table.written_schema, source)
            except QueryFailed as problem:
                if merge.evolve and "has no column" in problem.message:
                    problem.hint = _NEW_COLUMNS
                raise
            try:
                staged = stage(table, change)
            except QueryFailed as problem:
                _find_place(session, sides, source, target_rows(table))
                raise problem from problem.__cause__
    return counts(
        session.spark,
        updated=staged.rows_updated,
        deleted=staged.rows_deleted,
        inserted=staged.rows_inserted,
    )


def _change(
    sides: _Sides, expressions: Expressions, schema: TableSchema, source: DataFrame
) -> RowChange:
    merge, target = sides.merge, sides.target
    if merge.on is not None:
        on = _condition(expressions, merge.on)
    else:
        by = quoted(merge.alias)
        pairs = [f"{target.column(name)} = {by}.{quoted(name)}" for name in merge.using]
        on = " AND ".join(pairs)
    clauses: list[Clause] = []
    passed: dict[str, list[str]] = {}
    for when in merge.whens:
        before = passed.setdefault(when.kind, [])
        own = None if when.condition is None else _condition(expressions, when.condition)
        condition = _without(own, before)
        if when.action == "nothing":
            before.append("true" if own is None else f"({own})")
            continue
        values = _values(sides, when, expressions, schema, source)
        action: Action = "delete" if when.action == "delete" else "update"
        if when.kind == "not matched":
            action = "insert"
        clauses.append(Clause(when.kind, action, condition, values))
    return RowChange(
        On.of(on, target.name, merge.alias),
        tuple(clauses) or (Clause("matched", "delete", "false"),),
        source,
        evolve=merge.evolve,
    )


def _condition(expressions: Expressions, written: SqlExpression) -> str:
    """Give a bare NULL a type, which conditions need in Spark."""
    text = expressions.text(written)
    return "CAST(NULL AS BOOLEAN)" if text.strip().upper() == "NULL" else text


def _without(condition: str | None, before: Sequence[str]) -> str | None:
    """The condition of a clause that follows clauses that do nothing."""
    parts = [f"NOT coalesce({passed}, false)" for passed in before]
    if condition is not None:
        parts.append(f"({condition})")
    return " AND ".join(parts) or None


def _values(
    sides: _Sides,
    when: When,
    expressions: Expressions,
    schema: TableSchema,
    source: DataFrame,
) -> Mapping[str, object] | None:
    """The new values by column; ``None`` for all of the source by name, and for DELETE."""
    statement = sides.merge.statement
    if when.action == "error":
        message = expressions.value(when.message or f"WHEN {when.kind.upper()} THEN ERROR")
        return {schema.names[0]: f"raise_error({message})"}
    if when.all_ == "position":
        names = source.columns
        _same_width(statement, when, len(names), len(schema.columns))
        by = quoted(sides.merge.alias)
        pairs = zip(schema.names, names, strict=True)
        return {column: f"{by}.{quoted(name)}" for column, name in pairs}
    sets = when.sets
    if sets is None:
        if when.values is None:
            return None
        wanted = schema.names if when.names is None else when.names
        _same_width(statement, when, len(when.values), len(wanted))
        both = zip(wanted, when.values, strict=True)
        sets = tuple(Set((name,), value, when.at) for name, value in both)
    return {
        place.name: default_text(statement, place.leaf, assigned.at)
        if assigned.value is None
        else expressions.text(assigned.value)
        for place, assigned in zip(
            places_of(statement, sets, schema, sides.target), sets, strict=True
        )
    }


def _same_width(statement: StatementText, when: When, values: int, columns: int) -> None:
    if values != columns:
        raise statement.wrong(
            f"{values} values are given for {columns} columns",
            when.at,
            "name the columns, or write BY NAME",
        )


def _refuse_source(session: Session, sides: _Sides, table: TransactionTable) -> None:
    """Raise where a clause for rows without a source row uses the source's columns.

    In the join they are NULL: ``NOT MATCHED BY SOURCE AND s.id IS NULL`` would be every row.
    """
    for when in sides.merge.whens:
        if when.kind == "not matched by source":
            for written in when.expressions:
                text = sides.select(written, f" FROM {sides.target.source}")
                session.asked(text, {TARGET: target_rows(table)})


def _require_names(session: Session, merge: Merge) -> None:
    """Raise for unknown names in the conditions and values, before Spark starts."""
    whens = (expression for when in merge.whens for expression in when.expressions)
    for written in (*(() if merge.on is None else (merge.on,)), *whens):
        session.require_names(begun(merge.statement).add("SELECT ").take(written.span))


def _find_place(session: Session, sides: _Sides, source: DataFrame, rows: DataFrame) -> None:
    """Raise the error of an expression with its place, if it is known."""
    merge = sides.merge
    by = f"{quoted(_UNNAMED)} AS {quoted(merge.alias)}"
    both = f" FROM {sides.target.source} CROSS JOIN {by}"
    views = {TARGET: rows, _UNNAMED: source}
    if merge.on is not None:
        session.asked(sides.select(merge.on, both), views)
    for when in merge.whens:
        scope = f" FROM {by}" if when.kind == "not matched" else both
        for written in when.expressions:
            session.asked(sides.select(written, scope), views)
