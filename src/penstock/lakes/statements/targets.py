"""The table that a statement changes: as written, as the transaction has it, and in the SELECT that
finds its rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from penstock.errors import TableNotFound
from penstock.lakes.format.naming import TableRef, fold
from penstock.lakes.format.schema import TableSchema
from penstock.lakes.queries.rewriters import Rows
from penstock.lakes.reading.hidden import lacking
from penstock.lakes.reading.scan import FILE, POSITION, ROW_ID, Scan
from penstock.lakes.rows.change import Condition
from penstock.lakes.rows.spark_finder import refused, rows_of
from penstock.lakes.statements.session import Session, name_of
from penstock.lakes.transaction import Transaction, TransactionTable
from penstock.sql.identifiers import quoted
from penstock.sql.predicate import of_query
from penstock.sql.statement import Reader, StatementText, TableName
from penstock.sql.tables import analyse
from penstock.sql.text import Composed, Span, SqlExpression, Unreadable
from penstock.sql.tokens import MARKER, NAME, NUMBER, WORD, Token, tokenize, unquoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.sql.text import Predicate

TARGET = "__penstock_target"
_FIRST_ROWS = "name the rows: WHERE id IN (SELECT id FROM t ORDER BY ... LIMIT ...)"
_OTHER = "put the query into a WHERE: WHERE id IN (SELECT id FROM ...)"
_LATEST = "leave it out: statements change the latest snapshot"
_TAILS = {
    ("ORDER", "BY"): _FIRST_ROWS,
    ("SORT", "BY"): _FIRST_ROWS,
    ("CLUSTER", "BY"): _FIRST_ROWS,
    ("DISTRIBUTE", "BY"): _FIRST_ROWS,
    ("LIMIT",): _FIRST_ROWS,
    ("OFFSET",): _FIRST_ROWS,
    ("TABLESAMPLE",): _FIRST_ROWS,
    ("GROUP", "BY"): _OTHER,
    ("HAVING",): _OTHER,
    ("QUALIFY",): _OTHER,
    ("WINDOW",): _OTHER,
    ("UNION",): _OTHER,
    ("INTERSECT",): _OTHER,
    ("EXCEPT",): _OTHER,
    ("MINUS",): _OTHER,
    ("|>",): _OTHER,
    ("VERSION", "AS", "OF"): _LATEST,
    ("TIMESTAMP", "AS", "OF"): _LATEST,
    ("FOR",): _LATEST,
    ("PARTITION",): "use WHERE with the values of the partition",
}
# Words that may be a column's name, unless a value or a name follows.
_NEEDS_VALUE = frozenset({"LIMIT", "OFFSET", "WINDOW", "HAVING", "QUALIFY"})
_OPERATORS = frozenset({"IS", "IN", "NOT", "AND", "OR", "LIKE", "BETWEEN", "RLIKE", "ILIKE"})


@dataclass(frozen=True, slots=True)
class AliasedName:
    """``t``, ``s.t AS a``, as written."""

    table: TableName
    alias: str | None = None


def aliased(reader: Reader) -> AliasedName:
    name = reader.table()
    return AliasedName(name, reader.alias())


@dataclass(frozen=True, slots=True)
class Target:
    """A table under its name in the statement."""

    ref: TableRef
    alias: str | None

    @classmethod
    def of(cls, session: Session, written: AliasedName) -> Target:
        return cls(session.ref(written.table), written.alias)

    @property
    def name(self) -> str:
        return self.alias or self.ref.name

    @property
    def source(self) -> str:
        """The table as an item of a FROM clause."""
        return f"{quoted(TARGET)} AS {quoted(self.name)}"

    @property
    def place(self) -> str:
        """The columns that identify a row, for a SELECT."""
        names = (FILE, POSITION, ROW_ID)
        return ", ".join(self.column(name) for name in names)

    def column(self, name: str) -> str:
        return f"{quoted(self.name)}.{quoted(name)}"


def others_and_condition(
    reader: Reader, word: str, instead: str
) -> tuple[Span | None, SqlExpression | None]:
    """The span of other tables after ``word``, and the condition, each if it comes next; RETURNING
    is refused, with what to do ``instead``.
    """
    others = where = None
    if reader.accept(word):
        others = reader.until("WHERE", "RETURNING")
        reader.written(others, "a table")
    if reader.accept("WHERE"):
        where = reader.expression("RETURNING", what="a condition")
    if reader.sees("RETURNING"):
        raise reader.unsupported("RETURNING", instead)
    return others, where


def refuse_tail(reader: Reader) -> None:
    """Raise UnsupportedFeature if the next clause is one that only queries have.

    UPDATE and DELETE run as a SELECT of the rows they change: ``DELETE FROM t WHERE a GROUP BY b``
    would make a valid SELECT, with an unclear meaning.
    """
    for phrase, nearest in _TAILS.items():
        if reader.sees(*phrase) and _is_tail(reader, phrase):
            raise reader.unsupported(f"{' '.join(phrase)} of what is changed", nearest)


def refuse_tails(reader: Reader, *parts: Span | SqlExpression | None) -> None:
    """Raise UnsupportedFeature for such a clause in these parts, outside of brackets."""
    at = reader.at
    for part in parts:
        if part is None:
            continue
        span = part.span if isinstance(part, SqlExpression) else part
        reader.at = next(i for i, token in enumerate(reader.tokens) if token.start >= span[0])
        while not reader.done and reader.token.start < span[1]:
            if reader.token.start > span[0]:
                refuse_tail(reader)
            reader.skip()
    reader.at = at


def _is_tail(reader: Reader, phrase: tuple[str, ...]) -> bool:
    if phrase[0] not in _NEEDS_VALUE:
        return True
    follows = reader.ahead(1)
    return follows.kind in {NUMBER, MARKER, WORD, NAME} and follows.upper not in _OPERATORS


def existing(session: Session, transaction: Transaction, ref: TableRef) -> TransactionTable:
    """The table as the transaction has it.

    Raises TableNotFound, SchemaNotFound with the nearest.
    """
    table = transaction.table(name_of(ref))
    if table.exists:
        return table
    data = {"schema": ref.schema, "table": ref.name}
    if transaction.kind_of(name_of(ref)) == "view":
        raise TableNotFound(
            f"{ref} is a view, whose rows are those of its tables",
            hint="change the tables that its query reads",
            data=data,
        )
    session.catalog.table(ref.schema, ref.name, transaction.base.id)
    raise TableNotFound(f"table {ref} no longer exists", hint="it was dropped", data=data)


def take(text: Composed, statement: StatementText, span: Span, *of: Target) -> Composed:
    """A part of the statement, in which ``main.t.c`` becomes ``t.c``."""
    tokens = statement.words(span)
    at = span[0]
    cuts = (cut for target in of for cut in _schemas(tokens, target, statement.lakes))
    for start, end in sorted(cuts):
        text.take((at, start))
        at = end
    return text.take((at, span[1]))


def without_schema(text: str, of: Target, lakes: frozenset[str]) -> str:
    """An expression in which ``main.t.c`` becomes ``t.c``; the lake's name goes, too."""
    for start, end in reversed(list(_schemas(tokenize(text), of, lakes))):
        text = text[:start] + text[end:]
    return text


def _schemas(
    tokens: Sequence[Token], of: Target, lakes: frozenset[str]
) -> Iterator[tuple[int, int]]:
    """The places where the target's schema qualifies its name before a column."""
    for i, token in enumerate(tokens[:-3]):
        if of.alias is not None or not _is(tokens[i : i + 4], of.ref):
            continue
        before = tokens[max(i - 2, 0) : i]
        is_lake = len(before) == 2 and before[1].text == "." and _said(before[0]) in lakes
        yield (before[0] if is_lake else token).start, tokens[i + 2].start


def _is(tokens: Sequence[Token], ref: TableRef) -> bool:
    if tokens[1].text != "." or tokens[3].text != ".":
        return False
    return (_said(tokens[0]), _said(tokens[2])) == (fold(ref.schema), fold(ref.name))


def _said(token: Token) -> str:
    return fold(unquoted(token) if token.kind == NAME else token.text)


def add_conditions(
    text: Composed,
    statement: StatementText,
    of: Target,
    others: Span | None,
    where: SqlExpression | None,
) -> None:
    """The other tables and the WHERE of a statement, behind its FROM."""
    if others is not None:
        take(text.add(", "), statement, others, of)
    if where is not None:
        null = where.text.upper() == "NULL"  # of no type, in Spark
        text.add(" WHERE false AND " if null else " WHERE ")
        take(text, statement, where.span, of)


def match(
    session: Session,
    table: TransactionTable,
    text: Composed,
    condition: SqlExpression | None,
    *,
    once: bool,
) -> Condition:
    """The rows that a SELECT over the target finds: by ``condition`` alone, or by what only the
    SELECT says.
    """
    session.require_names(text, {TARGET})
    return Condition(
        condition,
        partial(_select, session, table, text),
        files=None if condition is not None else _file_filter(session, text),
        once=once,
        args=session.args,
    )


def _select(session: Session, table: TransactionTable, text: Composed, source: Scan) -> DataFrame:
    """The rows of a SELECT over `TARGET`, which is this scan."""
    return session.asked(text, {TARGET: partial(target_view, table, source)})


def target_view(table: TransactionTable, source: Scan, names: frozenset[str]) -> Rows:
    """The rows of a scan for `TARGET`, with the hidden columns that a statement names."""
    names = lacking(names, table.schema)
    problems = refused(names, table)
    given = names.difference(problems)
    return Rows(rows_of(table, source, given), given, problems)


def _file_filter(session: Session, text: Composed) -> Predicate | None:
    """The file filter by the conditions of a SELECT over `TARGET`."""
    try:
        analysis = analyse(session.names(session.transaction).expand(text.text))
        node = next(table.node for table in analysis.tables if table.name == TARGET)
        return of_query(analysis.text, node, zone=session.zone(), args=session.args)
    except (Unreadable, StopIteration):
        return None


def plain(
    session: Session,
    statement: StatementText,
    written: SqlExpression,
    of: Target,
    schema: TableSchema,
) -> SqlExpression | None:
    """An expression over the target's columns only; ``None`` where its meaning may depend on the
    lake, after a WITH or with a call of a macro.
    """
    if statement.with_ is not None:
        return None
    query = f"SELECT {written.text}"
    try:
        same = "(" not in query or session.names(session.transaction).expand(query) == query
    except Unreadable:
        return None
    return unqualified(statement, written, of, schema) if same else None


def unqualified(
    statement: StatementText, written: SqlExpression, of: Target, schema: TableSchema
) -> SqlExpression | None:
    """An expression over the target's columns without their qualifier.

    ``None`` where the name qualifies anything else, such as a field of a struct that has the
    target's name.
    """
    tokens = statement.words(written.span)
    cuts = dict(_schemas(tokens, of, statement.lakes))
    ends = set(cuts.values())
    for at in range(1, len(tokens) - 1):
        before, token, after = tokens[at - 1 : at + 2]
        if token.text != "." or before.kind not in {NAME, WORD} or _said(before) != fold(of.name):
            continue
        inside = at > 1 and tokens[at - 2].text == "." and before.start not in ends
        if inside or schema.find(_said(after)) is None:
            return None
        cuts[before.start] = after.start
    text, first = written.text, written.start
    for start, end in sorted(cuts.items(), reverse=True):
        text = text[: start - first] + text[end - first :]
    return SqlExpression(text, first) if cuts else written
