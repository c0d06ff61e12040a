"""USE: the schema of names without one, for this lake in this thread."""

from __future__ import annotations

from penstock.lake.format import naming
from penstock.lake.format.naming import DEFAULT_SCHEMA, fold
from penstock.lake.statements.answer import Answer, nothing
from penstock.lake.statements.session import Session
from penstock.sql.statement import Reader


def run(session: Session, reader: Reader) -> Answer:
    """``USE schema``, ``USE lake`` (its schema ``main``) or ``USE lake.schema``.

    Names are looked up in it first, then in ``main``; what is created is created in it.
    """
    reader.expect("USE")
    at = reader.token.start
    *lake, name = reader.qualified(1, "a schema")
    reader.finish()
    if not lake and session.has_schema(name):
        session.current.schema = name
    elif not lake and fold(name) in reader.lakes:
        session.current.schema = DEFAULT_SCHEMA
    else:
        called = naming.called(reader.lakes)
        raise reader.wrong(
            f"there is no schema {'.'.join((*lake, name))!r}",
            f"CREATE SCHEMA makes one; the lake is called {called}",
            at,
        )
    return nothing(session.spark)
