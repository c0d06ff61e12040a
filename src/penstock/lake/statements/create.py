"""CREATE, by what is created."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from penstock.lake.statements import create_macro, create_schema, create_table, create_view
from penstock.lake.statements.session import Session
from penstock.sql.statement import Reader

if TYPE_CHECKING:
    from penstock.lake.statements.answer import Answer

_KINDS: Mapping[str, Callable[[Session, Reader, bool], Answer]] = {
    "TABLE": create_table.run,
    "SCHEMA": create_schema.run,
    "DATABASE": create_schema.run,
    "NAMESPACE": create_schema.run,
    "VIEW": create_view.run,
    "MACRO": create_macro.run,
    "FUNCTION": create_macro.run,
}
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


def run(session: Session, reader: Reader) -> Answer:
    """``CREATE [OR REPLACE] TABLE | SCHEMA | VIEW | MACRO ...``"""
    reader.expect("CREATE")
    or_replace = reader.accept("OR", "REPLACE")
    if reader.sees("OR", "REFRESH"):
        at = reader.ahead(1).start
        raise reader.unsupported("REFRESH", "use CREATE OR REPLACE, or a model of a project", at)
    word = reader.token.upper
    create = _KINDS.get(word)
    if create is None:
        if word in _NEAREST:
            raise reader.unsupported(f"CREATE {word}", _NEAREST[word])
        raise reader.wrong(f"TABLE, SCHEMA, VIEW or MACRO is expected, not {reader.shown()}")
    reader.next()
    return create(session, reader, or_replace)
