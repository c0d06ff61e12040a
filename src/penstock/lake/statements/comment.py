"""COMMENT ON a table, a column or a view."""

from __future__ import annotations

from penstock.lake.format.naming import TableRef
from penstock.lake.statements.answer import Answer, nothing
from penstock.lake.statements.session import Session, name_of, table_ref
from penstock.sql.statement import Reader, comment_or_null


def run(session: Session, reader: Reader) -> Answer:
    """``COMMENT ON TABLE | COLUMN | VIEW name IS 'text' | NULL``"""
    reader.expect("COMMENT", "ON")
    kind = reader.token.upper
    if kind in {"SCHEMA", "DATABASE", "MACRO", "FUNCTION", "INDEX", "TYPE", "SEQUENCE"}:
        raise reader.unsupported(f"COMMENT ON {kind}", "comment on its tables, columns and views")
    kind = reader.one_of({"TABLE", "COLUMN", "VIEW"}, "TABLE, COLUMN or VIEW")
    if kind == "COLUMN":
        return _column(session, reader)
    ref = table_ref(reader)
    reader.expect("IS")
    text = comment_or_null(reader)
    reader.finish()
    with session.writing() as transaction:
        if kind == "TABLE":
            transaction.comment_on_table(name_of(ref), text)
        else:
            transaction.comment_on_view(name_of(ref), text)
    return nothing(session.spark)


def _column(session: Session, reader: Reader) -> Answer:
    at = reader.token.start
    parts = reader.qualified(3, "a column")
    if not 2 <= len(parts) <= 3:
        raise reader.wrong("table.column or schema.table.column is expected", at=at)
    reader.expect("IS")
    text = comment_or_null(reader)
    reader.finish()
    ref = TableRef(reader.schema_of(parts[:-2], parts[-2]), parts[-2])
    with session.writing() as transaction:
        transaction.comment_on_column(name_of(ref), parts[-1], text)
    return nothing(session.spark)
