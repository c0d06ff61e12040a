"""INSERT: rows of a query or written out, added or in place of others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.lake.format.naming import TableRef, fold
from penstock.lake.format.schema import Column, TableSchema
from penstock.lake.reading.conversions import casts
from penstock.lake.rows import append
from penstock.lake.statements import assignment, computed_rows, values
from penstock.lake.statements.answer import Answer, counts
from penstock.lake.statements.default_text import default_text
from penstock.lake.statements.existing import existing
from penstock.lake.statements.session import Session, table_ref
from penstock.lake.transaction import Staged, TransactionTable
from penstock.sql.literals import Literal, NoLiteral
from penstock.sql.statement import Reader, alone
from penstock.sql.text import Composed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SOURCES = frozenset({"VALUES", "SELECT", "WITH", "FROM", "TABLE", "("})


@dataclass(frozen=True, slots=True)
class Insert:
    """An INSERT as read; ``source`` is the query's span, ``None`` for DEFAULT VALUES.

    ``fixed`` are the values of ``PARTITION (c = v)``; ``replaces`` the span of what REPLACE WHERE
    says; ``at`` the number of the query's first word.
    """

    ref: TableRef
    source: tuple[int, int] | None
    rows: list[list[Any]] | None = None
    names: tuple[str, ...] | None = None
    by_name: bool = False
    overwrite: bool = False
    replaces: tuple[int, int] | None = None
    fixed: Mapping[str, Literal] | None = None
    at: int = 0


def run(session: Session, reader: Reader) -> Answer:
    """``INSERT INTO t [BY NAME] [(a, b)] VALUES ... | SELECT ... | DEFAULT VALUES``."""
    insert = read(reader, session.args)
    with session.writing() as transaction:
        table = existing(session, transaction, insert.ref)
        staged = _stage(session, table, insert, reader)
    return counts(session.spark, inserted=staged.rows_inserted, deleted=staged.rows_deleted)


def read(reader: Reader, args: Mapping[str, Any]) -> Insert:
    """The statement's parts. Raises QueryFailed, UnsupportedFeature."""
    reader.expect("INSERT")
    if reader.sees("OR"):
        raise reader.unsupported("INSERT OR ...", "use MERGE INTO: tables have no keys")
    if reader.sees("WITH", "SCHEMA", "EVOLUTION"):
        raise reader.unsupported(
            "INSERT WITH SCHEMA EVOLUTION",
            "use ALTER TABLE ... ADD COLUMN before, or MERGE WITH SCHEMA EVOLUTION",
        )
    overwrite = reader.accept("OVERWRITE")
    if overwrite and (reader.sees("DIRECTORY") or reader.sees("LOCAL", "DIRECTORY")):
        raise reader.unsupported("INSERT OVERWRITE DIRECTORY", "use lake.sql(query).write")
    if not overwrite:
        reader.expect("INTO")
    reader.accept("TABLE")
    ref = table_ref(reader)
    if reader.accept("AS"):
        reader.name("an alias")
    fixed = _partition(reader, args)
    by_name = reader.accept("BY", "NAME")
    reader.accept("BY", "POSITION")
    names: tuple[str, ...] | None = None
    if reader.token.text == "(" and reader.ahead(1).upper not in _SOURCES:
        names = reader.names()
    at = reader.token.start
    by_name = reader.accept("BY", "NAME") or by_name
    reader.accept("BY", "POSITION")
    if by_name and names is not None:
        raise reader.unsupported(
            "BY NAME with a list of columns", "leave the list out: the query's names say it", at
        )
    replaces = _replaces(reader)
    if reader.accept("DEFAULT", "VALUES"):
        reader.finish()
        return Insert(ref, None, names=(), overwrite=overwrite, replaces=replaces, fixed=fixed)
    if reader.token.upper not in _SOURCES:
        raise reader.wrong(f"VALUES or SELECT is expected, not {reader.shown()}")
    _refuse_tail(reader)
    rows = _literal_rows(reader, args)
    first, source = reader.at, reader.rest()
    return Insert(ref, source, rows, names, by_name, overwrite, replaces, fixed, first)


def _partition(reader: Reader, args: Mapping[str, Any]) -> dict[str, Literal] | None:
    from penstock.sql.literals import literal

    if not reader.accept("PARTITION"):
        return None
    reader.expect("(")
    found: dict[str, Literal] = {}
    while True:
        at, name = reader.token.start, reader.name("a column")
        if not reader.accept("="):
            raise reader.unsupported(
                f"PARTITION ({name}) without a value",
                f"write PARTITION ({name} = ...), or REPLACE WHERE a condition",
                at,
            )
        try:
            found[name] = literal(reader, args)
        except NoLiteral:
            raise reader.wrong("a value is expected", "write a literal or :marker") from None
        if not reader.accept(","):
            break
    reader.expect(")")
    if reader.sees("IF"):
        raise reader.unsupported("IF NOT EXISTS of a partition", "use MERGE INTO")
    return found


def _replaces(reader: Reader) -> tuple[int, int] | None:
    if not reader.accept("REPLACE"):
        return None
    if not reader.accept("WHERE"):
        raise reader.unsupported("REPLACE USING and REPLACE ON", "use REPLACE WHERE a condition")
    span = reader.until("VALUES", "SELECT", "WITH", "FROM", "TABLE", ("DEFAULT", "VALUES"))
    reader.written(span, "a condition")
    return span


def _refuse_tail(reader: Reader) -> None:
    """What other databases allow after the rows."""
    at = reader.at
    while not reader.done:
        if reader.sees("ON", "CONFLICT"):
            raise reader.unsupported("ON CONFLICT", "use MERGE INTO: tables have no keys")
        if reader.sees("ON", "DUPLICATE", "KEY"):
            raise reader.unsupported("ON DUPLICATE KEY", "use MERGE INTO: tables have no keys")
        if reader.sees("RETURNING"):
            raise reader.unsupported("RETURNING", "SELECT the rows after the INSERT")
        reader.skip()
    reader.at = at


def _literal_rows(reader: Reader, args: Mapping[str, Any]) -> list[list[Any]] | None:
    """Rows that are written out; ``None`` where they have to be computed."""
    if not reader.sees("VALUES"):
        return None
    at = reader.at
    try:
        return values.rows(reader, args)
    except NoLiteral:
        return None
    finally:
        reader.at = at


def _stage(session: Session, table: TransactionTable, insert: Insert, reader: Reader) -> Staged:
    schema, name = table.written_schema, str(insert.ref)
    fixed = insert.fixed or {}
    assignment.columns_of(schema, list(fixed), name)
    wanted = _wanted(insert, schema, name)
    if insert.overwrite or insert.replaces is not None or fixed:
        from penstock.lake.statements import overwrite

        typed = _typed(session, insert, wanted, schema, name)
        if typed is not None:
            df = frame_of(session, typed, schema)
        else:
            df = _frame(session, insert, wanted, schema, reader)
        return overwrite.stage(session, table, insert, df, reader)
    typed = _typed(session, insert, wanted, schema, name)
    if typed is not None:
        return append.append_rows(table, typed)
    return table.append(_frame(session, insert, wanted, schema, reader))


def _wanted(insert: Insert, schema: TableSchema, name: str) -> list[Column] | None:
    """The columns that get values, in their order; ``None`` where the query's names say it."""
    if insert.by_name:
        return None
    if insert.names is not None:
        return assignment.columns_of(schema, insert.names, name)
    fixed = {fold(one) for one in insert.fixed or {}}
    return [column for column in schema.columns if fold(column.name) not in fixed]


def _typed(
    session: Session,
    insert: Insert,
    wanted: list[Column] | None,
    schema: TableSchema,
    name: str,
) -> list[dict[str, Any]] | None:
    """Rows that need no Spark; ``None`` where it has to compute or to read a value."""
    given = [[]] if insert.source is None else insert.rows
    if given is None or wanted is None or append.needs_spark(schema):
        return None
    if given[0] and len(given[0]) != len(wanted):
        _refuse_width(len(given[0]), wanted, name)
    try:
        return values.typed(given, wanted, schema, session.zone)
    except NoLiteral:
        return None


def _refuse_width(width: int, wanted: list[Column], name: str) -> None:
    from penstock.errors import QueryFailed

    listed = ", ".join(column.name for column in wanted)
    raise QueryFailed(
        f"{width} values are given for {len(wanted)} columns of {name}: {listed}",
        hint="name the columns, INSERT INTO t (a, b) VALUES ..., or write DEFAULT for the others",
        data={"table": name},
    )


def frame_of(session: Session, rows: list[dict[str, Any]], schema: TableSchema) -> DataFrame:
    """Rows of Python values as a DataFrame."""
    from penstock.lake.reading.conversions.spark_types import spark_schema

    values = [tuple(_for_spark(row[c.name], c) for c in schema.columns) for row in rows]
    return session.spark().createDataFrame(values, spark_schema(schema))


def _for_spark(value: Any, column: Column) -> Any:
    """Maps are pairs until here, and Python's own structs are rows."""
    if value is None or not column.children:
        return value
    if column.type == "list":
        return [_for_spark(item, column.children[0]) for item in value]
    if column.type == "map":
        key, item = column.children
        return {_for_spark(k, key): _for_spark(v, item) for k, v in value}
    return tuple(_for_spark(value[child.name], child) for child in column.children)


def _frame(
    session: Session,
    insert: Insert,
    wanted: list[Column] | None,
    schema: TableSchema,
    reader: Reader,
) -> DataFrame:
    """The rows of the query as columns of the table."""
    if insert.source is None:
        return session.spark().range(1).select()  # a row of defaults
    if wanted is None:
        return casts.cast(session.query(alone(reader, insert.source)), schema)
    text = _one_by_one(reader, insert, wanted)
    df = session.query(alone(reader, insert.source)) if text is None else session.asked(text, {})
    return casts.cast(assignment.by_position(df, wanted, str(insert.ref)), schema)


def _one_by_one(reader: Reader, insert: Insert, wanted: list[Column]) -> Composed | None:
    """The rows of a VALUES as SELECTs; ``None`` where Spark takes it, or another query, whole.

    Each value of a VARIANT keeps its own type, where Spark would give all of a column one.
    """
    end, reader.at = reader.at, insert.at
    variants = {at: "VARIANT" for at, column in enumerate(wanted) if column.type == "variant"}
    rows = computed_rows.read(reader, each=bool(variants))
    reader.at = end
    if rows is None:
        return None
    alike = {} if len(rows) == 1 else variants  # a single row is cast as any query's are
    return computed_rows.as_query(reader, rows, _defaults(reader, insert, wanted), alike)


def _defaults(reader: Reader, insert: Insert, wanted: list[Column]) -> Callable[[int, int], str]:
    """What DEFAULT means in Spark's SQL, by its place in a row."""
    from penstock.lake.reading.conversions.spark_types import spark_type

    at = reader.token.start if insert.source is None else insert.source[0]

    def default_of(width: int, place: int) -> str:
        if width != len(wanted):
            _refuse_width(width, wanted, str(insert.ref))
        column = wanted[place]
        return f"CAST({default_text(reader, column, at)} AS {spark_type(column).simpleString()})"

    return default_of
