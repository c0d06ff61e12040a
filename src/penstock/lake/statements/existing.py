"""The table that a statement changes, as the transaction has it."""

from __future__ import annotations

from penstock.errors import TableNotFound
from penstock.lake.format.naming import TableRef
from penstock.lake.statements.session import Session, name_of
from penstock.lake.transaction import Transaction, TransactionTable


def existing(session: Session, transaction: Transaction, ref: TableRef) -> TransactionTable:
    """The table. Raises TableNotFound, SchemaNotFound with the nearest."""
    table = transaction.table(name_of(ref))
    if table.exists:
        return table
    told = {"schema": ref.schema, "table": ref.name}
    if transaction.kind_of(name_of(ref)) == "view":
        raise TableNotFound(
            f"{ref} is a view, whose rows are those of its tables",
            hint="change the tables that its query reads",
            data=told,
        )
    session.catalog.table(ref.schema, ref.name, transaction.base.id)
    raise TableNotFound(f"there is no table {ref} any more", hint="it was dropped", data=told)
