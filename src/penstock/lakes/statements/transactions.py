"""BEGIN, COMMIT and ROLLBACK: one transaction for each lake and thread."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.errors import LakeError
from penstock.lakes.statements.session import Answer, Session, nothing
from penstock.sql.statement import Reader, StatementText


@dataclass(frozen=True, slots=True)
class Boundary:
    """The start or the end of a transaction, with its word and place in the text."""

    word: str
    at: int
    statement: StatementText


def parse(reader: Reader) -> Boundary:
    """``BEGIN [TRANSACTION | WORK]``, ``START TRANSACTION``, ``COMMIT``, ``ROLLBACK``, ``ABORT``"""
    boundary = Boundary(reader.token.upper, reader.token.start, reader.statement)
    reader.next()
    reader.accept_any("TRANSACTION", "WORK")
    if reader.sees("TO"):
        raise reader.unsupported("a savepoint", "use a transaction for each part")
    if not reader.done:
        raise reader.unsupported(
            f"{reader.shown()} of a transaction",
            "leave it out: each sees one snapshot, and commits if no other commit excludes it",
        )
    return boundary


def begin(session: Session, boundary: Boundary) -> Answer:
    _refuse_passed(session, boundary)
    if session.current.transaction is not None:
        raise LakeError("a transaction is open already", hint="COMMIT or ROLLBACK ends it")
    session.current.transaction = session.begin()
    return nothing(session.spark)


def commit(session: Session, boundary: Boundary) -> Answer:
    """Publish what the statements since BEGIN did, as one snapshot or as none."""
    _refuse_passed(session, boundary)
    transaction = session.current.transaction
    if transaction is None:
        raise LakeError("no transaction is open", hint="BEGIN opens one")
    if session.current.failed:
        raise LakeError(
            "the transaction has failed and cannot be committed", hint="ROLLBACK ends it"
        )
    try:
        transaction.commit()
    finally:
        session.current.clear()
    return nothing(session.spark)


def rollback(session: Session, boundary: Boundary) -> Answer:
    """Undo what the statements since BEGIN did."""
    _refuse_passed(session, boundary)
    transaction = session.current.transaction
    if transaction is None:
        raise LakeError("no transaction is open", hint="BEGIN opens one")
    session.current.clear()
    transaction.rollback()
    return nothing(session.spark)


def _refuse_passed(session: Session, boundary: Boundary) -> None:
    """Refuse to end a Transaction object, whose owner ends it."""
    if session.current.passed:
        raise boundary.statement.unsupported(
            f"{boundary.word} in Transaction.sql",
            "use its methods commit() and rollback()",
            boundary.at,
        )
