"""DELETE and TRUNCATE."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.lakes.rows.change import Condition, RowChange
from penstock.lakes.rows.engine import stage
from penstock.lakes.statements.session import Answer, Session, counts
from penstock.lakes.statements.targets import (
    AliasedName,
    Target,
    add_conditions,
    aliased,
    existing,
    match,
    others_and_condition,
    plain,
    refuse_tail,
    refuse_tails,
)
from penstock.lakes.transaction import TransactionTable
from penstock.sql.statement import Reader, StatementText, begun
from penstock.sql.text import Span, SqlExpression


@dataclass(frozen=True, slots=True)
class Delete:
    """A DELETE: ``using`` is the span of the other tables that its condition names."""

    target: AliasedName
    using: Span | None
    where: SqlExpression | None
    statement: StatementText


def parse(reader: Reader) -> Delete:
    """``DELETE FROM t [AS a] [USING s, ...] [WHERE ...]``

    Raises QueryFailed, UnsupportedFeature.
    """
    reader.expect("DELETE")
    if not reader.accept("FROM"):
        raise reader.wrong(
            f"FROM is expected, not {reader.shown()}", "write DELETE FROM t [USING s] [WHERE ...]"
        )
    target = aliased(reader)
    refuse_tail(reader)
    if reader.sees(","):
        raise reader.unsupported("DELETE from several tables", "write DELETE FROM t USING s")
    using, where = others_and_condition(reader, "USING", "SELECT the rows before the DELETE")
    refuse_tails(reader, using, where)
    reader.finish()
    return Delete(target, using, where, reader.statement)


def parse_truncate(reader: Reader) -> Delete:
    """``TRUNCATE [TABLE] t``: deletes all rows; older snapshots still have them."""
    reader.expect("TRUNCATE")
    reader.accept("TABLE")
    target = AliasedName(reader.table())
    if reader.sees("PARTITION"):
        raise reader.unsupported("TRUNCATE of a partition", "use DELETE with a condition")
    reader.finish()
    return Delete(target, None, None, reader.statement)


def execute(session: Session, delete: Delete) -> Answer:
    target = Target.of(session, delete.target)
    with session.writing() as transaction:
        table = existing(session, transaction, target.ref)
        staged = stage(table, RowChange.delete(_matching(session, table, target, delete)))
    return counts(session.spark, deleted=staged.rows_deleted)


def _matching(
    session: Session, table: TransactionTable, target: Target, delete: Delete
) -> Condition:
    """The rows to delete; all rows without a condition."""
    where, using, statement = delete.where, delete.using, delete.statement
    if using is None and where is None:
        return Condition()
    text = begun(statement).add(f"SELECT {target.place} FROM {target.source}")
    add_conditions(text, statement, target, using, where)
    condition = None
    if using is None and where is not None:
        condition = plain(session, statement, where, target, table.schema)
    return match(session, table, text, condition, once=using is None)
