"""INSERT: add the rows of a query or of VALUES.

INSERT OVERWRITE, PARTITION (c = v) and REPLACE WHERE replace others by them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from penstock.errors import QueryFailed, UnsupportedFeature
from penstock.lakes.format.naming import TableRef, fold
from penstock.lakes.format.schema import Column, TableSchema
from penstock.lakes.format.values.bounds import base_type
from penstock.lakes.reading.conversions import casts
from penstock.lakes.reading.conversions.spark_types import is_writable, spark_type
from penstock.lakes.reading.conversions.spark_types import literal as spark_literal
from penstock.lakes.rows import append, engine
from penstock.lakes.rows.change import Condition, RowChange
from penstock.lakes.statements import values
from penstock.lakes.statements.assignments import by_position, columns_of, default_text
from penstock.lakes.statements.session import Answer, Session, counts
from penstock.lakes.statements.targets import Target, add_conditions, existing, match, plain, take
from penstock.lakes.transaction import Staged, TransactionTable
from penstock.sql.identifiers import quoted
from penstock.sql.literals import Literal, NoLiteral, literal
from penstock.sql.statement import Reader, StatementText, TableName, alone, begun
from penstock.sql.text import Composed, Span, SqlExpression
from penstock.sql.tokens import MARKER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NEW = "__penstock_rows"
_QUERIES = frozenset({"SELECT", "WITH", "FROM", "VALUES", "TABLE"})
_SOURCES = frozenset({"VALUES", "SELECT", "WITH", "FROM", "TABLE", "("})


@dataclass(frozen=True)
class Insert:
    """An INSERT: ``source`` is the span of its query, ``None`` for DEFAULT VALUES.

    ``rows`` are those of a VALUES that has nothing but literals. ``fixed`` are the values of
    ``PARTITION (c = v)``, ``replaces`` what REPLACE WHERE says.
    """

    table: TableName
    statement: StatementText
    source: Span | None = None
    rows: values.Literals | None = None
    names: tuple[str, ...] | None = None
    by_name: bool = False
    overwrite: bool = False
    replaces: SqlExpression | None = None
    fixed: Mapping[str, Literal] | None = None

    @cached_property
    def computed(self) -> values.ComputedRows | None:
        """The rows of a VALUES as expressions; ``None`` of another query."""
        if self.source is None:
            return None
        reader = self.statement.reader(self.source)
        return values.computed_rows(reader) if reader.sees("VALUES") else None

    @property
    def replaces_rows(self) -> bool:
        return self.overwrite or self.replaces is not None


def parse(reader: Reader) -> Insert:
    """``INSERT INTO t [BY NAME] [(a, b)] VALUES ... | SELECT ... | DEFAULT VALUES``

    Raises QueryFailed, UnsupportedFeature, ArgumentError for a marker without a value.
    """
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
    table = reader.table()
    if reader.accept("AS"):
        reader.name("an alias")
    fixed = _partition(reader)
    names, by_name = _columns(reader)
    replaces = _replaces(reader)
    source: Span | None = None
    rows = None
    if reader.accept("DEFAULT", "VALUES"):
        names = ()
        reader.finish()
    else:
        if reader.token.upper not in _SOURCES:
            raise reader.wrong(f"VALUES or SELECT is expected, not {reader.shown()}")
        _refuse_tail(reader)
        rows = _literal_rows(reader)
        source = reader.rest()
    insert = Insert(
        table, reader.statement, source, rows, names, by_name, overwrite, replaces, fixed
    )
    if rows is None:
        _ = insert.computed  # what is wrong with them is known before anything is done
    return insert


def _columns(reader: Reader) -> tuple[tuple[str, ...] | None, bool]:
    """``(a, b)`` or BY NAME, which says that the query has the names."""
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
    return names, by_name


def _partition(reader: Reader) -> dict[str, Literal] | None:
    if not reader.accept("PARTITION"):
        return None
    reader.expect("(")
    fixed: dict[str, Literal] = {}
    while True:
        at, name = reader.token.start, reader.name("a column")
        if not reader.accept("="):
            raise reader.unsupported(
                f"PARTITION ({name}) without a value",
                f"write PARTITION ({name} = ...), or REPLACE WHERE a condition",
                at,
            )
        try:
            fixed[name] = literal(reader, reader.args)
        except NoLiteral:
            raise reader.wrong("a value is expected", "write a literal or :marker") from None
        if not reader.accept(","):
            break
    reader.expect(")")
    if reader.sees("IF"):
        raise reader.unsupported("IF NOT EXISTS of a partition", "use MERGE INTO")
    return fixed


def _replaces(reader: Reader) -> SqlExpression | None:
    if not reader.accept("REPLACE"):
        return None
    if not reader.accept("WHERE"):
        raise reader.unsupported("REPLACE USING and REPLACE ON", "use REPLACE WHERE a condition")
    stops = ("VALUES", "SELECT", "WITH", "FROM", "TABLE", ("DEFAULT", "VALUES"))
    return reader.expression(*stops, what="a condition")


def _refuse_tail(reader: Reader) -> None:
    """Refuse what other databases allow after the rows."""
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


def _literal_rows(reader: Reader) -> values.Literals | None:
    """Literal rows; ``None`` where they have to be computed."""
    if not reader.sees("VALUES"):
        return None
    at = reader.at
    try:
        return values.literal_rows(reader)
    except NoLiteral:
        return None
    finally:
        reader.at = at


def execute(session: Session, insert: Insert) -> Answer:
    ref = session.ref(insert.table)
    with session.writing() as transaction:
        table = existing(session, transaction, ref)
        staged = _stage(session, table, insert, ref)
    return counts(session.spark, inserted=staged.rows_inserted, deleted=staged.rows_deleted)


def _stage(session: Session, table: TransactionTable, insert: Insert, ref: TableRef) -> Staged:
    schema, fixed = table.written_schema, insert.fixed or {}
    columns_of(schema, list(fixed), str(ref))
    wanted = _wanted(insert, schema, str(ref))
    typed = _typed(session, insert, wanted, schema, str(ref))
    if insert.replaces_rows or fixed:
        if typed is not None:
            df = _frame_of(session, typed, schema)
        else:
            df = _frame(session, insert, wanted, schema, str(ref))
        return _replacing(session, table, insert, ref, df)
    if typed is not None and not append.needs_spark(schema):
        return append.append_rows(table, typed)
    if typed is not None:
        return table.append(_frame_of(session, typed, schema))
    df = _frame(session, insert, wanted, schema, str(ref))
    if all(map(is_writable, schema.columns)):
        return table.append(df)
    return append.append_collected(table, df)


def _wanted(insert: Insert, schema: TableSchema, name: str) -> list[Column] | None:
    """The columns that get values, in order; ``None`` where the query's names decide."""
    if insert.by_name:
        return None
    if insert.names is not None:
        return columns_of(schema, insert.names, name)
    fixed = {fold(column) for column in insert.fixed or {}}
    return [column for column in schema.columns if fold(column.name) not in fixed]


def _typed(
    session: Session,
    insert: Insert,
    wanted: list[Column] | None,
    schema: TableSchema,
    name: str,
) -> list[dict[str, Any]] | None:
    """Rows that need no Spark; ``None`` where Spark has to compute or parse a value."""
    rows: values.Literals | None = ((),) if insert.source is None else insert.rows
    if rows is None or wanted is None or not _takes_literals(schema):
        return None
    if rows[0] and len(rows[0]) != len(wanted):
        raise _other_width(len(rows[0]), wanted, name)
    try:
        typed = values.typed(rows, wanted, schema, session.zone)
    except NoLiteral:
        return None
    odd = append.needs_spark(schema) and any(values.is_infinite(row.values()) for row in typed)
    return None if odd else typed


def _takes_literals(schema: TableSchema) -> bool:
    """Return whether values can be written: only Spark writes geometries, from their bytes."""
    others = tuple(c for c in schema.columns if base_type(c.type) != "geometry")
    if append.needs_spark(TableSchema(others)):
        return False
    return len(others) == len(schema.columns) or all(map(is_writable, others))


def _other_width(width: int, wanted: list[Column], name: str) -> QueryFailed:
    listed = ", ".join(column.name for column in wanted)
    return QueryFailed(
        f"{width} values are given for {len(wanted)} columns of {name}: {listed}",
        hint="name the columns, INSERT INTO t (a, b) VALUES ..., or write DEFAULT for the others",
        data={"table": name},
    )


def _frame_of(session: Session, rows: list[dict[str, Any]], schema: TableSchema) -> DataFrame:
    """Rows of Python values as a DataFrame."""
    from penstock.lakes.reading.conversions.spark_types import spark_schema

    items = [tuple(_for_spark(row[c.name], c) for c in schema.columns) for row in rows]
    return session.spark().createDataFrame(items, spark_schema(schema))


def _for_spark(value: Any, column: Column) -> Any:
    """Convert values for Spark: pairs to maps, and structs to rows."""
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
    name: str,
) -> DataFrame:
    """The rows of the query as columns of the table."""
    if insert.source is None:
        return session.spark().range(1).select()  # a row of defaults
    query = alone(insert.statement, insert.source)
    if wanted is None:
        return casts.cast(session.query(query), schema)
    text = _by_select(insert, wanted, name)
    df = session.query(query) if text is None else session.asked(text, {})
    return casts.cast(by_position(df, wanted, name), schema)


def _by_select(insert: Insert, wanted: list[Column], name: str) -> Composed | None:
    """The rows of a VALUES as SELECTs; ``None`` where Spark runs the whole VALUES or query.

    Each value of a VARIANT keeps its own type, where Spark would give all of a column one.
    """
    computed = insert.computed
    variants = {at: "VARIANT" for at, column in enumerate(wanted) if column.type == "variant"}
    if computed is None or not (computed.by_select or variants):
        return None
    alike = {} if len(computed.rows) == 1 else variants  # a single row is cast as any query's are
    return computed.as_query(insert.statement, _defaults(insert, wanted, name), alike)


def _defaults(insert: Insert, wanted: list[Column], name: str) -> Callable[[int, int], str]:
    """The SQL of DEFAULT for Spark, by its position in a row."""
    from penstock.lakes.reading.conversions.spark_types import spark_type

    assert insert.source is not None, "it is a VALUES"
    at = insert.source[0]

    def default_of(width: int, place: int) -> str:
        if width != len(wanted):
            raise _other_width(width, wanted, name)
        column = wanted[place]
        default = default_text(insert.statement, column, at)
        return f"CAST({default} AS {spark_type(column).simpleString()})"

    return default_of


def _replacing(
    session: Session, table: TransactionTable, insert: Insert, ref: TableRef, df: DataFrame
) -> Staged:
    """Replace the rows that the statement names by those of ``df``, as `Table.overwrite` does;
    with PARTITION alone they are added.

    With REPLACE WHERE a new row for which the condition is not true fails the statement, as in
    Delta: it would not be replaced the next time.
    """
    target, statement = Target(ref, None), insert.statement
    fixed = insert.fixed or {}
    columns = columns_of(table.schema, list(fixed), str(ref))
    pairs = zip(columns, fixed.values(), strict=True)
    slice_values = [(column, _value(session, column, value)) for column, value in pairs]
    for column, value in slice_values:
        df = df.withColumn(column.name, spark_literal(value).cast(spark_type(column)))
    if not insert.replaces_rows:
        return table.append(df)
    replaced = Condition()
    if insert.replaces is not None:
        replaced = _satisfying(session, table, target, insert.replaces, statement)
        if replaced.where is None:  # only a SELECT says which rows satisfy it, new ones too
            df = _checked(session, target, insert.replaces, statement, df)
    elif slice_values:
        replaced = _slice(session, table, target, slice_values, statement)
    return engine.stage(table, RowChange.overwrite(df, replaced))


def by_row_alone(statement: StatementText, where: SqlExpression) -> bool:
    """Return whether a condition depends on a row alone, so that new rows can be checked by it: it
    has no marker and no subquery.
    """
    return not any(
        token.kind == MARKER or token.upper in _QUERIES for token in statement.words(where.span)
    )


def _satisfying(
    session: Session,
    table: TransactionTable,
    target: Target,
    where: SqlExpression,
    statement: StatementText,
) -> Condition:
    """The rows for which the condition is true."""
    text = begun(statement).add(f"SELECT {target.place} FROM {target.source}")
    add_conditions(text, statement, target, None, where)
    condition = None
    if by_row_alone(statement, where):
        condition = plain(session, statement, where, target, table.schema)
    return match(session, table, text, condition, once=True)


def _slice(
    session: Session,
    table: TransactionTable,
    target: Target,
    slice_values: Sequence[tuple[Column, Any]],
    statement: StatementText,
) -> Condition:
    """The rows that have these values."""
    parts: list[str] = []
    args: dict[str, Any] = {}
    for at, (column, value) in enumerate(slice_values):
        args[f"penstock_value_{at}"] = value
        kind = spark_type(column).simpleString()
        parts.append(f"{target.column(column.name)} <=> CAST(:penstock_value_{at} AS {kind})")
    text = begun(statement).add(f"SELECT {target.place} FROM {target.source} WHERE ")
    text.add(" AND ".join(parts))
    session = replace(session, args={**session.args, **args})
    return match(session, table, text, None, once=True)


def _value(session: Session, column: Column, value: Literal) -> Any:
    try:
        return values.fitted(value, column, session.zone)
    except NoLiteral:
        raise UnsupportedFeature(
            f"PARTITION ({column.name} = ...) of {column.type} is not supported",
            hint="use REPLACE WHERE a condition",
        ) from None


def _checked(
    session: Session,
    target: Target,
    where: SqlExpression,
    statement: StatementText,
    df: DataFrame,
) -> DataFrame:
    """The new rows, with a check that each satisfies the condition."""
    text = begun(statement)
    text.add(f"SELECT * FROM {quoted(_NEW)} AS {quoted(target.name)} WHERE CASE WHEN (")
    take(text, statement, where.span, target)
    message = f"a new row of {target.ref} is not what REPLACE WHERE says, so it would not be "
    message += "replaced the next time"
    message = message.replace("\\", "\\\\").replace("'", "\\'")
    text.add(f") THEN true ELSE raise_error('{message}') END")
    return session.asked(text, {_NEW: df})
