"""DROP of tables, schemas, views and macros."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from penstock.lake.statements.answer import Answer, nothing
from penstock.lake.statements.session import Session, name_of, table_ref
from penstock.lake.transaction import Transaction
from penstock.sql.statement import Reader, if_exists

_Drop = Callable[[Transaction, str, bool, bool], None]


def run(session: Session, reader: Reader) -> Answer:
    """``DROP TABLE | SCHEMA | VIEW | MACRO [IF EXISTS] name [CASCADE | RESTRICT]``"""
    reader.expect("DROP")
    at = reader.token.start
    if reader.token.upper in _ELSEWHERE:
        raise reader.unsupported(f"DROP {reader.token.upper}", "a lake has none of these")
    kind = reader.one_of(_KINDS.keys() - {"MACRO TABLE"}, "TABLE, SCHEMA, VIEW or MACRO")
    of_tables = kind in {"MACRO", "FUNCTION"} and reader.accept("TABLE")
    kind = "MACRO TABLE" if of_tables else kind
    missing_ok = if_exists(reader)
    if kind in {"SCHEMA", "DATABASE", "NAMESPACE"}:
        *_, name = reader.qualified(1, "a schema")
    else:
        name = name_of(table_ref(reader, "a name"))
    if reader.sees(","):
        raise reader.unsupported("DROP of several", "write a statement for each, after BEGIN")
    cascade = reader.accept_any("CASCADE", "RESTRICT", "PURGE")
    if cascade == "PURGE":
        raise reader.unsupported("PURGE", "DROP, expire the snapshots, then clean up", at)
    if cascade == "CASCADE" and kind not in {"SCHEMA", "DATABASE", "NAMESPACE"}:
        raise reader.unsupported(
            f"DROP {kind} CASCADE", "leave CASCADE out: nothing depends on it in the catalog", at
        )
    reader.finish()
    with session.writing() as transaction:
        _KINDS[kind](transaction, name, missing_ok, cascade == "CASCADE")
    return nothing(session.spark)


_ELSEWHERE = frozenset(
    {"SECRET", "INDEX", "TYPE", "SEQUENCE", "USER", "ROLE", "CATALOG", "VOLUME", "CONNECTION"}
    | {"TEMP", "TEMPORARY", "VARIABLE", "BLOOMFILTER"}
)


def _table(transaction: Transaction, name: str, missing_ok: bool, _: bool) -> None:
    transaction.drop_table(name, if_exists=missing_ok)


def _schema(transaction: Transaction, name: str, missing_ok: bool, cascade: bool) -> None:
    transaction.drop_schema(name, if_exists=missing_ok, cascade=cascade)


def _view(transaction: Transaction, name: str, missing_ok: bool, _: bool) -> None:
    transaction.drop_view(name, if_exists=missing_ok)


def _macro(transaction: Transaction, name: str, missing_ok: bool, _: bool) -> None:
    transaction.drop_macro(name, if_exists=missing_ok)


def _table_macro(transaction: Transaction, name: str, missing_ok: bool, _: bool) -> None:
    transaction.drop_macro(name, kind="table", if_exists=missing_ok)


_KINDS: Mapping[str, _Drop] = {
    "MACRO TABLE": _table_macro,
    "TABLE": _table,
    "SCHEMA": _schema,
    "DATABASE": _schema,
    "NAMESPACE": _schema,
    "VIEW": _view,
    "MACRO": _macro,
    "FUNCTION": _macro,
}
