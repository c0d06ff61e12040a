"""CREATE VIEW: stored in DuckDB's SQL where the translation is exact, else in Spark's SQL."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.errors import QueryFailed, UnsupportedFeature
from penstock.lakes.format.naming import TableRef, fold
from penstock.lakes.statements.session import Answer, Session, name_of, nothing
from penstock.lakes.transaction import Transaction
from penstock.sql.duckdb.translate import in_duckdb, translate
from penstock.sql.identifiers import quoted
from penstock.sql.statement import Reader, StatementText, TableName, alone, if_not_exists
from penstock.sql.tables import Analysis, analyse
from penstock.sql.text import Span, Unreadable
from penstock.sql.tokens import MARKER
from penstock.sql.trust import harmless_query


@dataclass(frozen=True, slots=True)
class CreateView:
    """``query`` is the span of its SELECT, ``names`` those of its first columns."""

    view: TableName
    or_replace: bool
    there_may_be: bool
    names: tuple[str, ...]
    comment: str | None
    query: Span
    statement: StatementText


def parse(reader: Reader, or_replace: bool) -> CreateView:
    """Return what follows ``CREATE [OR REPLACE] VIEW``: ``[IF NOT EXISTS] v [(a, b)] [COMMENT
    'text'] AS SELECT ...``.
    """
    there_may_be = if_not_exists(reader, or_replace)
    view = reader.table("a view")
    names = _names(reader) if reader.token.text == "(" else ()
    comment = reader.string("a comment") if reader.accept("COMMENT") else None
    if reader.token.upper in {"TBLPROPERTIES", "WITH", "SCHEMA"}:
        raise reader.unsupported(f"{reader.token.upper} of a view", "leave it out")
    reader.expect("AS")
    query = reader.rest()
    return CreateView(view, or_replace, there_may_be, names, comment, query, reader.statement)


def execute(session: Session, create: CreateView) -> Answer:
    ref, text = session.ref(create.view, new=True), alone(create.statement, create.query)
    with session.writing() as transaction:
        if create.there_may_be and transaction.kind_of(name_of(ref)) is not None:
            return nothing(session.spark)
        columns = session.query(text).columns
        if len(create.names) > len(columns):
            message = f"{len(create.names)} names are given for {len(columns)} columns"
            raise create.statement.wrong(message, create.query[0])
        sql = _qualified(session, text, ref).strip()
        _refuse_more(session, transaction, sql, ref)
        for_duckdb = _in_duckdb(session, text, sql)
        transaction.create_view(
            name_of(ref),
            sql if for_duckdb is None else for_duckdb,
            dialect="spark" if for_duckdb is None else "duckdb",
            columns=create.names,
            or_replace=create.or_replace,
            comment=create.comment,
        )
    if for_duckdb is not None:
        return nothing(session.spark)
    # DuckDB lists the view, and cannot read it.
    return Answer(["notice"], ("STRING",), ((ONLY_SPARK.format(ref),),), session.spark)


ONLY_SPARK = (
    "DuckDB cannot read {}: its query is not known to mean the same there. Write it in DuckDB's "
    "dialect if DuckDB is to read it"
)


def _in_duckdb(session: Session, text: str, sql: str) -> str | None:
    """``sql`` in DuckDB's dialect; ``None`` where types change its meaning.

    ``text`` is the same query with the names that this session resolves. Its columns have to have
    the same types when the text for DuckDB is read here.
    """
    stored, asked = in_duckdb(sql), in_duckdb(text)
    if stored is None or stored.guarded is None:
        return None if stored is None else stored.text
    if asked is None or asked.guarded is None:
        return None
    try:
        _ = session.query(asked.guarded).columns
        if asked.has_forms:
            read_back = session.query(translate(asked.text)).schema
            if read_back.simpleString() != session.query(text).schema.simpleString():
                return None
    except (UnsupportedFeature, QueryFailed, Unreadable):
        return None
    return stored.text


def _refuse_more(session: Session, transaction: Transaction, sql: str, ref: TableRef) -> None:
    """Refuse a query that readers of the catalog could not run."""
    names = session.names(transaction)
    book, functions = names.book(sql), names.functions()
    harmless_query(
        sql,
        f"the view {ref}",
        lambda schema, name: name in functions or bool(book.find(schema, name)),
    )


def _names(reader: Reader) -> tuple[str, ...]:
    """``(a, b)``; comments on a view's columns have no place in format 1.0."""
    reader.expect("(")
    names = [reader.name("a column")]
    while not reader.sees(")"):
        if reader.sees("COMMENT"):
            raise reader.unsupported("a comment on a view's column", "comment on the view")
        reader.expect(",")
        names.append(reader.name("a column"))
    reader.expect(")")
    for at, name in enumerate(names):
        if fold(name) in map(fold, names[:at]):
            raise reader.wrong(f"two columns are named {name!r}")
    return tuple(names)


def _qualified(session: Session, text: str, ref: TableRef) -> str:
    """The query with tables of other schemas than the view's qualified, and without the lake's
    name.

    Names of a stored view are looked up in its own schema first.
    """
    try:
        analysis = analyse(text)
    except Unreadable as problem:
        raise QueryFailed(f"the query of the view cannot be stored: {problem}") from None
    _refuse_passing(session, analysis)
    edits = [*_tables(session, analysis, ref), *_qualifiers(session, analysis)]
    for start, end, said in sorted(edits, reverse=True):
        text = f"{text[:start]}{said}{text[end:]}"
    return text


def _tables(session: Session, analysis: Analysis, ref: TableRef) -> Iterator[tuple[int, int, str]]:
    for table in analysis.tables:
        if table.catalog is not None and table.node is not None:  # another reader has another name
            yield table.start, table.node.args["db"].meta["start"], ""
        elif table.schema is None:
            schema = session.schema_with(table.name)
            if fold(ref.schema) != fold(schema):
                yield table.start, table.start, f"{quoted(schema)}."
        elif _is_lake(session, table.schema) and table.node is not None:
            schema = session.schema_with(table.name)
            yield table.start, table.node.this.meta["start"], f"{quoted(schema)}."


def _qualifiers(session: Session, analysis: Analysis) -> Iterator[tuple[int, int, str]]:
    for qualifier in analysis.qualifiers:
        if qualifier.catalog is not None:
            yield qualifier.start, qualifier.end, f"{quoted(qualifier.schema)}."
        elif _is_lake(session, qualifier.schema):
            yield qualifier.start, qualifier.end, f"{quoted(session.schema_with(qualifier.name))}."


def _is_lake(session: Session, schema: str) -> bool:
    return fold(schema) in session.lakes and not session.has_schema(schema)


def _refuse_passing(session: Session, analysis: Analysis) -> None:
    """Refuse what exists for this call only: DataFrames and markers."""
    views = {fold(name) for name in session.views or {}}
    for table in analysis.tables:
        if table.schema is None and fold(table.name) in views:
            raise UnsupportedFeature(
                f"a view cannot read {table.name!r}, which is a DataFrame of this call",
                hint="write it to a table first",
            )
    if any(token.kind == MARKER for token in analysis.tokens) and session.args:
        raise UnsupportedFeature(
            "a view cannot have :markers, whose values it would forget",
            hint="write the value, or make a macro with a parameter",
        )
