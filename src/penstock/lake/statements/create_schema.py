"""CREATE SCHEMA, which Spark calls DATABASE or NAMESPACE as well."""

from __future__ import annotations

from penstock.lake.statements.answer import Answer, nothing
from penstock.lake.statements.session import Session
from penstock.sql.statement import Reader, if_not_exists


def run(session: Session, reader: Reader, or_replace: bool) -> Answer:
    """``CREATE SCHEMA [IF NOT EXISTS] s``"""
    if or_replace:
        raise reader.unsupported("CREATE OR REPLACE SCHEMA", "DROP SCHEMA s CASCADE before")
    there_may_be = if_not_exists(reader)
    at = reader.token.start
    *outside, name = reader.qualified(1, "a schema")
    if outside:
        raise reader.unsupported("a schema inside another", "write one name", at)
    if not reader.done:
        raise reader.unsupported(f"{reader.shown()} of a schema", "set it of the tables")
    with session.writing() as transaction:
        transaction.create_schema(name, if_not_exists=there_may_be)
    return nothing(session.spark)
