"""CREATE, by kind of object; CREATE SCHEMA, which Spark also calls DATABASE or NAMESPACE."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.lakes.statements import create_macro, create_table, create_view
from penstock.lakes.statements.session import Answer, Session, nothing
from penstock.sql.statement import Reader, if_not_exists

_NEAREST = {
    "TEMP": "use a common table expression, or views= of lake.sql",
    "TEMPORARY": "use a common table expression, or views= of lake.sql",
    "GLOBAL": "use a common table expression, or views= of lake.sql",
    "LOCAL": "use a common table expression, or views= of lake.sql",
    "EXTERNAL": "use CREATE TABLE, then CALL ducklake_add_data_files",
    "INDEX": "partition or sort the table: ALTER TABLE t SET SORTED BY (...)",
    "MATERIALIZED": "use a model of a project, or CREATE TABLE AS",
    "RECURSIVE": "use WITH RECURSIVE in the view's query",
    "CATALOG": "use Lake.attach(uri)",
    "CONNECTION": "use Lake.attach(uri), and spark.read for other databases",
    "FOREIGN": "use Lake.attach(uri), and spark.read for other databases",
    "ROLE": "make it in the catalog's database",
    "SECRET": "use the settings of Spark's storage",
    "SEQUENCE": "use row_number() in the SELECT, or a column that has the value",
    "TYPE": "use VARCHAR, or a struct",
    "STREAMING": "use a model of a project, or INSERT INTO",
    "UNIQUE": "test the rows in a model (unique)",
    "USER": "make it in the catalog's database",
    "VOLUME": "keep files under a path of their own; ducklake_add_data_files takes Parquet in",
}


@dataclass(frozen=True, slots=True)
class CreateSchema:
    name: str
    there_may_be: bool


def parse(reader: Reader) -> object:
    """``CREATE [OR REPLACE] TABLE | SCHEMA | VIEW | MACRO ...``: a value for `execute`."""
    reader.expect("CREATE")
    or_replace = reader.accept("OR", "REPLACE")
    if reader.sees("OR", "REFRESH"):
        at = reader.ahead(1).start
        raise reader.unsupported("REFRESH", "use CREATE OR REPLACE, or a model of a project", at)
    word = reader.token.upper
    parse_kind = _KINDS.get(word)
    if parse_kind is None:
        if word in _NEAREST:
            raise reader.unsupported(f"CREATE {word}", _NEAREST[word])
        raise reader.wrong(f"TABLE, SCHEMA, VIEW or MACRO is expected, not {reader.shown()}")
    reader.next()
    return parse_kind(reader, or_replace)


def execute(session: Session, create: object) -> Answer:
    return _EXECUTE[type(create)](session, create)


def _parse_schema(reader: Reader, or_replace: bool) -> CreateSchema:
    """``[IF NOT EXISTS] s``"""
    if or_replace:
        raise reader.unsupported("CREATE OR REPLACE SCHEMA", "DROP SCHEMA s CASCADE before")
    there_may_be = if_not_exists(reader)
    at = reader.token.start
    *outside, name = reader.qualified(1, "a schema")
    if outside:
        raise reader.unsupported("a schema inside another", "write one name", at)
    if not reader.done:
        raise reader.unsupported(f"{reader.shown()} of a schema", "set it of the tables")
    return CreateSchema(name, there_may_be)


def _create_schema(session: Session, create: CreateSchema) -> Answer:
    with session.writing() as transaction:
        transaction.create_schema(create.name, if_not_exists=create.there_may_be)
    return nothing(session.spark)


_KINDS: Mapping[str, Callable[[Reader, bool], object]] = {
    "TABLE": create_table.parse,
    **dict.fromkeys(("SCHEMA", "DATABASE", "NAMESPACE"), _parse_schema),
    "VIEW": create_view.parse,
    **dict.fromkeys(("MACRO", "FUNCTION"), create_macro.parse),
}
_EXECUTE: Mapping[type, Callable[[Session, Any], Answer]] = {
    CreateSchema: _create_schema,
    create_macro.CreateMacro: create_macro.execute,
    create_table.CreateTable: create_table.execute,
    create_view.CreateView: create_view.execute,
}
