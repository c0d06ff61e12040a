"""DELETE and TRUNCATE."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.lake.rows.change import Condition, RowChange
from penstock.lake.rows.engine import stage
from penstock.lake.statements.answer import Answer, counts
from penstock.lake.statements.existing import existing
from penstock.lake.statements.plain import match, plain
from penstock.lake.statements.session import Session, table_ref
from penstock.lake.statements.tails import refuse_tail, refuse_tails
from penstock.lake.statements.targets import Target, place, target
from penstock.lake.statements.update import conditions
from penstock.lake.transaction import Staged, TransactionTable
from penstock.sql.statement import Reader, begun
from penstock.sql.text import Span


@dataclass(frozen=True, slots=True)
class Delete:
    """A DELETE as read: ``source`` is the span of its USING, ``where`` that of its condition."""

    of: Target
    source: Span | None
    where: Span | None


def run(session: Session, reader: Reader) -> Answer:
    """``DELETE FROM t [AS a] [USING s, ...] [WHERE ...]``"""
    delete = read(reader)
    with session.writing() as transaction:
        table = existing(session, transaction, delete.of.ref)
        staged = remove(session, table, delete.of, reader, source=delete.source, where=delete.where)
    return counts(session.spark, deleted=staged.rows_deleted)


def read(reader: Reader) -> Delete:
    """The statement's parts. Raises QueryFailed, UnsupportedFeature."""
    reader.expect("DELETE")
    if not reader.accept("FROM"):
        raise reader.wrong(
            f"FROM is expected, not {reader.shown()}", "write DELETE FROM t [USING s] [WHERE ...]"
        )
    of = target(reader)
    refuse_tail(reader)
    if reader.sees(","):
        raise reader.unsupported("DELETE from several tables", "write DELETE FROM t USING s")
    source = reader.until("WHERE", "RETURNING") if reader.accept("USING") else None
    where = reader.until("RETURNING") if reader.accept("WHERE") else None
    if reader.sees("RETURNING"):
        raise reader.unsupported("RETURNING", "SELECT the rows before the DELETE")
    refuse_tails(reader, (source, where))
    reader.finish()
    return Delete(of, source, where)


def remove(
    session: Session,
    table: TransactionTable,
    of: Target,
    reader: Reader,
    *,
    source: Span | None = None,
    where: Span | None = None,
) -> Staged:
    """Delete what the condition finds; without one, all rows."""
    if source is None and where is None:
        return stage(table, RowChange.delete(Condition()))
    text = begun(reader).add(f"SELECT {place(of)} FROM {of.source}")
    conditions(text, reader, of, source, where)
    condition = None
    if source is None and where is not None:
        condition = plain(session, reader, where, of, table.schema)
    found = match(session, table, text, condition, once=source is None)
    return stage(table, RowChange.delete(found))


def truncate(session: Session, reader: Reader) -> Answer:
    """``TRUNCATE [TABLE] t``: all rows go; older snapshots have them."""
    reader.expect("TRUNCATE")
    reader.accept("TABLE")
    ref = table_ref(reader)
    if reader.sees("PARTITION"):
        raise reader.unsupported("TRUNCATE of a partition", "use DELETE with a condition")
    reader.finish()
    with session.writing() as transaction:
        table = existing(session, transaction, ref)
        staged = remove(session, table, Target(ref, None), reader)
    return counts(session.spark, deleted=staged.rows_deleted)
