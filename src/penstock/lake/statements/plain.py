"""Parts of a statement that mean by themselves what they say: no WITH before them, no macros."""

from __future__ import annotations

from functools import partial

from penstock.lake.format.schema import TableSchema
from penstock.lake.rows.change import Condition
from penstock.lake.statements.session import Session
from penstock.lake.statements.targets import Target, file_filter, select, unqualified
from penstock.lake.transaction import TransactionTable
from penstock.sql.expression import SqlExpression
from penstock.sql.statement import Reader
from penstock.sql.tables import Unreadable
from penstock.sql.text import Composed


def plain(
    session: Session, reader: Reader, span: tuple[int, int], of: Target, schema: TableSchema
) -> str | None:
    """The text of an expression over the target's columns, unless it may mean something else to
    this lake.
    """
    text = reader.text[span[0] : span[1]]
    if reader.with_ is not None:
        return None
    query = f"SELECT {text}"
    try:
        same = "(" not in text or session.names(session.transaction).expand(query) == query
    except Unreadable:
        return None
    return unqualified(reader, span, of, schema) if same else None


def match(
    session: Session,
    table: TransactionTable,
    text: Composed,
    condition: str | None,
    *,
    once: bool,
) -> Condition:
    """The rows that a SELECT over the target finds: by ``condition`` alone, or by what only the
    SELECT says.
    """
    return Condition(
        None if condition is None else SqlExpression(condition),
        partial(select, session, table, text),
        files=None if condition is not None else file_filter(session, text),
        once=once,
        args=session.args,
    )
