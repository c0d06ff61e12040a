"""ALTER TABLE and ALTER VIEW, one action a statement (several columns of ADD or DROP)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from penstock.errors import TableNotFound
from penstock.lake import alter as columns_of
from penstock.lake.naming import TableRef
from penstock.lake.schema import TableSchema
from penstock.lake.statements import columns
from penstock.lake.statements.answer import Answer, nothing
from penstock.lake.statements.layout import partition_fields, sort_keys
from penstock.lake.statements.reader import Reader
from penstock.lake.statements.session import Session, name_of, table_ref
from penstock.lake.statements.types import column_type
from penstock.lake.statements.words import comment_or_null, if_exists, if_not_exists

if TYPE_CHECKING:
    from penstock.lake.transaction import Transaction

# What an action does once the table is known: read first, so that errors of the text come first.
Action = Callable[["Transaction", TableRef], None]
Change = Callable[[TableSchema], TableSchema]


def run(session: Session, reader: Reader) -> Answer:
    """``ALTER TABLE [IF EXISTS] t ADD | DROP | RENAME | ALTER | SET | RESET ...``"""
    reader.expect("ALTER")
    kind = reader.token.upper
    if kind not in {"TABLE", "VIEW"}:
        raise reader.unsupported(f"ALTER {kind}", "ALTER TABLE and ALTER VIEW are there")
    reader.next()
    missing_ok = if_exists(reader)
    ref = table_ref(reader)
    action = _view(reader) if kind == "VIEW" else _table(session, reader)
    reader.finish()
    with session.writing() as transaction:
        found = transaction.kind_of(name_of(ref))
        if found != kind.lower():
            if missing_ok and found is None:
                return nothing(session.spark)
            raise _missing(session, transaction, ref, kind, found)
        action(transaction, ref)
    return nothing(session.spark)


def _missing(
    session: Session, transaction: Transaction, ref: TableRef, kind: str, found: str | None
) -> TableNotFound:
    if found is None and kind == "TABLE":
        session.catalog.table(ref.schema, ref.name, transaction.base.id)  # names the nearest
    return TableNotFound(
        f"there is no {kind.lower()} {ref}" + (f": it is a {found}" if found else ""),
        hint=f"write ALTER {found.upper()}" if found else "SHOW TABLES lists what there is",
        data={"schema": ref.schema, "table": ref.name},
    )


def _table(session: Session, reader: Reader) -> Action:
    word = reader.one_of(_ACTIONS, "ADD, DROP, RENAME, ALTER, SET or RESET")
    return _ACTIONS[word](session, reader)


def _view(reader: Reader) -> Action:
    if not reader.accept("RENAME", "TO"):
        raise reader.unsupported(
            f"ALTER VIEW {reader.token.upper}", "use CREATE OR REPLACE VIEW, or RENAME TO"
        )
    name = _new_name(reader)
    return lambda transaction, ref: transaction.rename_view(name_of(ref), name)


def _new_name(reader: Reader) -> str:
    """A name; with a schema only Spark allows it, and it would move the table."""
    at = reader.token.start
    name = reader.name("the new name")
    if reader.sees("."):
        raise reader.unsupported("another schema", "give the name alone: it stays where it is", at)
    return name


def _altered(change: Change) -> Action:
    def act(transaction: Transaction, ref: TableRef) -> None:
        table = transaction.table(name_of(ref))
        table.alter(change(table.schema))

    return act


def _add(session: Session, reader: Reader) -> Action:
    """``ADD [COLUMN] [IF NOT EXISTS] a INT``, ``ADD COLUMNS (a INT, s.x INT)``"""
    _refuse_constraint(reader)
    several = reader.accept("COLUMNS")
    if not several:
        reader.accept("COLUMN")
    there_may_be = if_not_exists(reader)
    closed = several and reader.accept("(")
    changes: list[Change] = []
    comments: list[tuple[str, str]] = []
    while True:
        path = reader.dotted("a column")
        one = columns.definition(reader, path[-1], session.args)
        if one.comment is not None:
            if len(path) > 1:
                raise reader.unsupported("a comment on a field", "comment on its column")
            comments.append((path[-1], one.comment))
        changes.append(_adds(path, one, there_may_be))
        if reader.token.upper in {"FIRST", "AFTER"}:
            raise reader.unsupported(
                f"the place {reader.token.upper}", "columns come last; SELECT orders them"
            )
        if not (closed and reader.accept(",")):
            break
    if closed:
        reader.expect(")")
    return _with_comments(_all(changes), comments)


def _adds(path: tuple[str, ...], one: columns.Defined, there_may_be: bool) -> Change:
    return lambda schema: columns_of.add_column(
        schema, path[:-1], one.column, if_not_exists=there_may_be
    )


def _all(changes: list[Change]) -> Change:
    def change(schema: TableSchema) -> TableSchema:
        for one in changes:
            schema = one(schema)
        return schema

    return change


def _with_comments(change: Change, comments: list[tuple[str, str]]) -> Action:
    alter = _altered(change)

    def act(transaction: Transaction, ref: TableRef) -> None:
        alter(transaction, ref)
        for name, text in comments:
            transaction.comment_on_column(name_of(ref), name, text)

    return act


def _drop(_: Session, reader: Reader) -> Action:
    """``DROP [COLUMN] [IF EXISTS] a``, ``DROP COLUMNS (a, b)``"""
    _refuse_constraint(reader)
    several = reader.accept("COLUMNS")
    if not several:
        reader.accept("COLUMN")
    missing_ok = if_exists(reader)
    closed = several and reader.accept("(")
    changes: list[Change] = []
    while True:
        changes.append(_drops(reader.dotted("a column"), missing_ok))
        if not (several and reader.accept(",")):
            break
    if closed:
        reader.expect(")")
    if reader.accept("CASCADE"):
        raise reader.unsupported("DROP COLUMN CASCADE", "leave CASCADE out")
    reader.accept("RESTRICT")
    return _altered(_all(changes))


def _drops(path: tuple[str, ...], missing_ok: bool) -> Change:
    return lambda schema: columns_of.drop_column(schema, path, if_exists=missing_ok)


def _rename(_: Session, reader: Reader) -> Action:
    """``RENAME TO t``, ``RENAME [COLUMN] a TO b``"""
    if reader.accept("TO"):
        name = _new_name(reader)
        return lambda transaction, ref: transaction.rename_table(name_of(ref), name)
    reader.accept("COLUMN")
    path = reader.dotted("a column")
    reader.expect("TO")
    new = _new_name(reader)
    return _altered(lambda schema: columns_of.rename_column(schema, path, new))


def _alter(session: Session, reader: Reader) -> Action:
    """``ALTER [COLUMN] a [SET DATA] TYPE ... | SET DEFAULT | DROP DEFAULT | SET NOT NULL ...``"""
    reader.accept("COLUMN")
    path = reader.dotted("a column")
    if reader.accept("COMMENT"):
        text = comment_or_null(reader)
        return lambda transaction, ref: transaction.comment_on_column(
            name_of(ref), ".".join(path), text
        )
    if reader.accept("DROP", "DEFAULT"):
        return _altered(lambda schema: columns_of.set_default(schema, path, None))
    if reader.accept("DROP", "NOT", "NULL"):
        return _altered(lambda schema: columns_of.set_nullable(schema, path, True))
    if reader.accept("SET", "NOT", "NULL"):
        return _altered(lambda schema: columns_of.set_nullable(schema, path, False))
    if reader.accept("SET", "DEFAULT"):
        return _altered(_sets_default(session, reader, path))
    if reader.token.upper in {"FIRST", "AFTER"}:
        raise reader.unsupported("another place of a column", "SELECT orders the columns")
    typed = reader.accept("SET", "DATA", "TYPE") or reader.accept("SET", "TYPE")
    if not (typed or reader.accept("TYPE")):
        raise reader.wrong(f"SET TYPE, SET DEFAULT or NOT NULL is expected, not {reader.shown()}")
    new = column_type(reader, path[-1])
    if reader.sees("USING"):
        raise reader.unsupported("USING", "add a column, UPDATE it, drop the other")
    return _altered(lambda schema: columns_of.set_type(schema, path, new))


def _sets_default(session: Session, reader: Reader, path: tuple[str, ...]) -> Change:
    """Checked against the column's type when that is known."""
    at = reader.at
    reader.until()
    end = reader.at

    def change(schema: TableSchema) -> TableSchema:
        reader.at = at
        found = columns.default(reader, columns_of.column_at(schema, path), session.args)
        reader.at = end
        return columns_of.set_default(schema, path, found.default, found.default_kind)

    return change


def _set(_: Session, reader: Reader) -> Action:
    """``SET PARTITIONED BY (...)``, ``SET SORTED BY (...)``"""
    if reader.accept("PARTITIONED", "BY"):
        fields = partition_fields(reader)
        return lambda transaction, ref: transaction.table(name_of(ref)).set_partitioning(fields)
    if reader.accept("SORTED", "BY"):
        keys = sort_keys(reader)
        return lambda transaction, ref: transaction.table(name_of(ref)).set_sorting(keys)
    word = reader.token.upper
    nearest = {
        "SCHEMA": "CREATE TABLE s.t AS SELECT * FROM t, then DROP t",
        "TBLPROPERTIES": "use CALL set_option(..., table_name => ...), or COMMENT ON TABLE",
        "LOCATION": "set data_path when the lake is attached",
    }
    if word in nearest:
        raise reader.unsupported(f"SET {word}", nearest[word])
    raise reader.wrong(f"PARTITIONED BY or SORTED BY is expected, not {reader.shown()}")


def _reset(_: Session, reader: Reader) -> Action:
    if reader.accept("PARTITIONED", "BY"):
        return lambda transaction, ref: transaction.table(name_of(ref)).set_partitioning(())
    if reader.accept("SORTED", "BY"):
        return lambda transaction, ref: transaction.table(name_of(ref)).set_sorting(())
    raise reader.wrong(f"PARTITIONED BY or SORTED BY is expected, not {reader.shown()}")


def _refuse_constraint(reader: Reader) -> None:
    for word, nearest in _NOT_COLUMNS.items():
        if reader.sees(word) and reader.ahead(1).text != "":
            raise reader.unsupported(f"a {word.lower()}", nearest)


_NOT_COLUMNS = {
    "CONSTRAINT": "test the rows in a model (not_null, unique)",
    "PRIMARY": "test the rows in a model (not_null, unique)",
    "PARTITION": "use ALTER TABLE t SET PARTITIONED BY (...)",
}
_ACTIONS: Mapping[str, Callable[[Session, Reader], Action]] = {
    "ADD": _add,
    "ALTER": _alter,
    "CHANGE": _alter,
    "DROP": _drop,
    "RENAME": _rename,
    "RESET": _reset,
    "SET": _set,
}
