"""DROP of tables, schemas, views and macros."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from penstock.lakes.statements.session import Answer, Session, name_of, nothing
from penstock.lakes.transaction import Transaction
from penstock.sql.statement import Reader, TableName, if_exists

_Drop = Callable[[Transaction, str, bool, bool], None]


@dataclass(frozen=True, slots=True)
class Drop:
    """``kind`` is one of `_KINDS`; the name of a schema is not qualified."""

    kind: str
    name: TableName
    missing_ok: bool
    cascade: bool


def parse(reader: Reader) -> Drop:
    """``DROP TABLE | SCHEMA | VIEW | MACRO [IF EXISTS] name [CASCADE | RESTRICT]``"""
    reader.expect("DROP")
    at = reader.token.start
    if reader.token.upper in _ELSEWHERE:
        raise reader.unsupported(f"DROP {reader.token.upper}", "a lake has none of these")
    kind = reader.one_of(_KINDS.keys() - {"MACRO TABLE"}, "TABLE, SCHEMA, VIEW or MACRO")
    of_tables = kind in {"MACRO", "FUNCTION"} and reader.accept("TABLE")
    kind = "MACRO TABLE" if of_tables else kind
    missing_ok = if_exists(reader)
    if kind in _SCHEMAS:
        name = TableName((), reader.qualified(1, "a schema")[-1])
    else:
        name = reader.table("a name")
    if reader.sees(","):
        raise reader.unsupported("DROP of several", "write a statement for each, after BEGIN")
    cascade = reader.accept_any("CASCADE", "RESTRICT", "PURGE")
    if cascade == "PURGE":
        raise reader.unsupported("PURGE", "DROP, expire the snapshots, then clean up", at)
    if cascade == "CASCADE" and kind not in _SCHEMAS:
        raise reader.unsupported(
            f"DROP {kind} CASCADE", "leave CASCADE out: nothing depends on it in the catalog", at
        )
    reader.finish()
    return Drop(kind, name, missing_ok, cascade == "CASCADE")


def execute(session: Session, drop: Drop) -> Answer:
    name = drop.name.name if drop.kind in _SCHEMAS else name_of(session.ref(drop.name))
    with session.writing() as transaction:
        _KINDS[drop.kind](transaction, name, drop.missing_ok, drop.cascade)
    return nothing(session.spark)


_SCHEMAS = frozenset({"SCHEMA", "DATABASE", "NAMESPACE"})
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
