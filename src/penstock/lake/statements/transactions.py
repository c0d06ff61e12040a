"""BEGIN, COMMIT and ROLLBACK: one transaction for each lake and thread."""

from __future__ import annotations

from penstock.errors import LakeError
from penstock.lake.statements.answer import Answer, nothing
from penstock.lake.statements.session import Session
from penstock.sql.statement import Reader


def begin(session: Session, reader: Reader) -> Answer:
    """``BEGIN [TRANSACTION | WORK]``, ``START TRANSACTION``."""
    _words(session, reader)
    if session.current.transaction is not None:
        raise LakeError("a transaction is open already", hint="COMMIT or ROLLBACK ends it")
    session.current.transaction = session.begin()
    return nothing(session.spark)


def commit(session: Session, reader: Reader) -> Answer:
    """``COMMIT`` publishes what the statements since BEGIN did, as one snapshot or as none."""
    _words(session, reader)
    found = session.current.transaction
    if found is None:
        raise LakeError("no transaction is open", hint="BEGIN opens one")
    if session.current.failed:
        raise LakeError(
            "the transaction has failed and cannot be committed", hint="ROLLBACK ends it"
        )
    try:
        found.commit()
    finally:
        session.current.clear()
    return nothing(session.spark)


def rollback(session: Session, reader: Reader) -> Answer:
    """``ROLLBACK`` (or ``ABORT``) forgets what the statements since BEGIN did."""
    _words(session, reader)
    found = session.current.transaction
    if found is None:
        raise LakeError("no transaction is open", hint="BEGIN opens one")
    session.current.clear()
    found.rollback()
    return nothing(session.spark)


def _words(session: Session, reader: Reader) -> None:
    if session.current.given:
        raise reader.unsupported(
            f"{reader.token.upper} in Transaction.sql", "use its methods commit() and rollback()"
        )
    reader.next()
    reader.accept_any("TRANSACTION", "WORK")
    if reader.sees("TO"):
        raise reader.unsupported("a savepoint", "use a transaction for each part")
    if not reader.done:
        raise reader.unsupported(
            f"{reader.shown()} of a transaction",
            "leave it out: each sees one snapshot, and commits if no other commit excludes it",
        )
