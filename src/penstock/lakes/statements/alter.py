"""ALTER TABLE and ALTER VIEW, one action a statement (of several columns: ADD, DROP, ALTER), and
COMMENT ON.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from penstock.errors import TableNotFound
from penstock.lakes import alter as columns_of
from penstock.lakes.format.naming import TableRef, fold
from penstock.lakes.format.schema import TableSchema
from penstock.lakes.statements import columns
from penstock.lakes.statements.columns import column_type, partition_fields, sort_keys
from penstock.lakes.statements.session import Answer, Session, name_of, nothing
from penstock.lakes.transaction import Transaction
from penstock.sql.statement import Reader, TableName, comment_or_null, if_exists, if_not_exists

_PARTITIONS = "partitions come and go with their rows: use DELETE or UPDATE with a condition"
_RIGHTS = "give rights in the catalog's database and on the files"
_COMMENT = "use COMMENT ON TABLE t IS '...'"
_OPTION = "use CALL set_option(..., table_name => ...)"

_NEAREST: Mapping[str, str] = {
    "CLUSTER": "use SET SORTED BY (...)",
    "COMMENT": _COMMENT,
    "COMPACT": "use CALL ducklake_merge_adjacent_files('lake', 't')",
    "EXECUTE": "use CALL ducklake_merge_adjacent_files('lake', 't') and its like",
    "OWNER": _RIGHTS,
    "PARTITION": _PARTITIONS,
    "RECOVER": "use CALL ducklake_add_data_files('lake', 't', path) for files from elsewhere",
    "REPLACE": "use DROP COLUMNS (a, b), then ADD COLUMNS (c INT), or CREATE OR REPLACE TABLE",
    "UNSET": _OPTION,
    "WRITE": "use SET SORTED BY (...) or SET PARTITIONED BY (...)",
}
_NEAREST_OF_SET: Mapping[str, str] = {
    "COMMENT": _COMMENT,
    "LOCATION": "set data_path when the lake is attached",
    "OWNER": _RIGHTS,
    "SCHEMA": "CREATE TABLE s.t AS SELECT * FROM t, then DROP t",
    "SERDE": "leave it out: files are Parquet",
    "SERDEPROPERTIES": "leave it out: files are Parquet",
    "TAGS": _COMMENT,
    "TBLPROPERTIES": f"{_OPTION}, or COMMENT ON TABLE",
}
_NOT_COLUMNS = {
    "CONSTRAINT": ("a constraint", "test the rows in a model (not_null, unique)"),
    "PRIMARY": ("a primary key", "test the rows in a model (not_null, unique)"),
    "FOREIGN": ("a foreign key", "test the rows in a model"),
    "PARTITION": ("a partition on its own", f"{_PARTITIONS}, or SET PARTITIONED BY (...)"),
}

# What an action does once the table is known: read first, so that errors of the text come first.
Action = Callable[["Transaction", TableRef], None]
Change = Callable[[TableSchema], TableSchema]


@dataclass(frozen=True, slots=True)
class Alter:
    """An ALTER TABLE or ALTER VIEW: ``action`` changes the object of this name and ``kind``."""

    kind: str
    table: TableName
    missing_ok: bool
    action: Action


@dataclass(frozen=True, slots=True)
class Comment:
    """A COMMENT ON a table, a view or, if it is named, a column; without text it is removed."""

    kind: str
    table: TableName
    column: str
    text: str | None


def parse(reader: Reader) -> Alter:
    """``ALTER TABLE [IF EXISTS] t ADD | DROP | RENAME | ALTER | SET | RESET ...``"""
    reader.expect("ALTER")
    kind = reader.token.upper
    if kind not in {"TABLE", "VIEW"}:
        raise reader.unsupported(f"ALTER {kind}", "use ALTER TABLE or ALTER VIEW")
    reader.next()
    missing_ok = if_exists(reader)
    table = reader.table()
    action = _view(reader) if kind == "VIEW" else _table(reader)
    reader.finish()
    return Alter(kind, table, missing_ok, action)


def execute(session: Session, alter: Alter) -> Answer:
    ref = session.ref(alter.table)
    with session.writing() as transaction:
        kind = transaction.kind_of(name_of(ref))
        if kind != alter.kind.lower():
            if alter.missing_ok and kind is None:
                return nothing(session.spark)
            raise _missing(session, transaction, ref, alter.kind, kind)
        alter.action(transaction, ref)
    return nothing(session.spark)


def parse_comment(reader: Reader) -> Comment:
    """``COMMENT ON TABLE | COLUMN | VIEW name IS 'text' | NULL``"""
    reader.expect("COMMENT", "ON")
    kind = reader.token.upper
    if kind in {"SCHEMA", "DATABASE", "MACRO", "FUNCTION", "INDEX", "TYPE", "SEQUENCE"}:
        raise reader.unsupported(f"COMMENT ON {kind}", "comment on its tables, columns and views")
    kind, column = reader.one_of(_COMMENTED, "TABLE, COLUMN or VIEW"), ""
    if kind == "COLUMN":
        at = reader.token.start
        parts = reader.qualified(3, "a column")
        if not 2 <= len(parts) <= 3:
            raise reader.wrong("table.column or schema.table.column is expected", at=at)
        table, column = TableName(parts[:-2], parts[-2]), parts[-1]
    else:
        table = reader.table()
    reader.expect("IS")
    text = comment_or_null(reader)
    reader.finish()
    return Comment(kind, table, column, text)


def comment(session: Session, comment: Comment) -> Answer:
    name = name_of(session.ref(comment.table))
    with session.writing() as transaction:
        _COMMENTED[comment.kind](transaction, name, comment)
    return nothing(session.spark)


_COMMENTED: Mapping[str, Callable[[Transaction, str, Comment], None]] = {
    "TABLE": lambda transaction, name, comment: transaction.comment_on_table(name, comment.text),
    "VIEW": lambda transaction, name, comment: transaction.comment_on_view(name, comment.text),
    "COLUMN": lambda transaction, name, comment: transaction.comment_on_column(
        name, comment.column, comment.text
    ),
}


def _missing(
    session: Session, transaction: Transaction, ref: TableRef, kind: str, there: str | None
) -> TableNotFound:
    if there is None and kind == "TABLE":
        session.catalog.table(ref.schema, ref.name, transaction.base.id)  # names the nearest
    return TableNotFound(
        f"{kind.lower()} {ref} does not exist" + (f": it is a {there}" if there else ""),
        hint=f"write ALTER {there.upper()}" if there else "SHOW TABLES lists what there is",
        data={"schema": ref.schema, "table": ref.name},
    )


def _table(reader: Reader) -> Action:
    word = reader.token.upper
    if word in _NEAREST:
        raise reader.unsupported(f"ALTER TABLE ... {word}", _NEAREST[word])
    word = reader.one_of(_ACTIONS, "ADD, DROP, RENAME, ALTER, SET or RESET")
    return _ACTIONS[word](reader)


def _view(reader: Reader) -> Action:
    if not reader.accept("RENAME", "TO"):
        raise reader.unsupported(
            f"ALTER VIEW {reader.token.upper}", "use CREATE OR REPLACE VIEW, or RENAME TO"
        )
    name = _new_name(reader)
    return lambda transaction, ref: transaction.rename_view(name_of(ref), name(ref))


def _new_name(reader: Reader) -> Callable[[TableRef], str]:
    """A new name, possibly with the present schema; another schema would be a move."""
    at, statement = reader.token.start, reader.statement
    parts = reader.qualified(2, "the new name")

    def of(ref: TableRef) -> str:
        if len(parts) > 1 and fold(".".join(parts[:-1])) != fold(ref.schema):
            raise statement.unsupported(
                "another schema", "give the name alone: it stays where it is", at
            )
        return parts[-1]

    return of


def _altered(change: Change) -> Action:
    def act(transaction: Transaction, ref: TableRef) -> None:
        table = transaction.table(name_of(ref))
        table.alter(change(table.schema))

    return act


def _add(reader: Reader) -> Action:
    """``ADD [COLUMN] [IF NOT EXISTS] a INT``, ``ADD COLUMNS (a INT, s.x INT)``, as Spark has it."""
    _refuse_constraint(reader)
    reader.accept_any("COLUMNS", "COLUMN")
    there_may_be = if_not_exists(reader)
    closed = reader.accept("(")
    changes: list[Change] = []
    comments: list[tuple[str, str]] = []
    while True:
        path = reader.dotted("a column")
        defined = columns.definition(reader, path[-1])
        if defined.comment is not None:
            if len(path) > 1:
                raise reader.unsupported("a comment on a field", "comment on its column")
            comments.append((path[-1], defined.comment))
        changes.append(_adds(path, defined, there_may_be))
        _refuse_place(reader)
        if not reader.accept(","):
            break
        _refuse_second(reader)
    if closed:
        reader.expect(")")
    return _with_comments(_all(changes), comments)


def _adds(path: tuple[str, ...], defined: columns.Defined, there_may_be: bool) -> Change:
    return lambda schema: columns_of.add_column(
        schema, path[:-1], defined.column, if_not_exists=there_may_be
    )


def _all(changes: list[Change]) -> Change:
    def change(schema: TableSchema) -> TableSchema:
        for step in changes:
            schema = step(schema)
        return schema

    return change


def _with_comments(change: Change, comments: list[tuple[str, str]]) -> Action:
    alter = _altered(change)

    def act(transaction: Transaction, ref: TableRef) -> None:
        there = transaction.table(name_of(ref)).schema
        alter(transaction, ref)
        for name, text in comments:
            if there.find(name) is None:  # else IF NOT EXISTS has left the column as it was
                transaction.comment_on_column(name_of(ref), name, text)

    return act


def _drop(reader: Reader) -> Action:
    """``DROP [COLUMN] [IF EXISTS] a``, ``DROP COLUMNS (a, b)``, ``DROP COLUMN a, b``"""
    _refuse_constraint(reader)
    reader.accept_any("COLUMNS", "COLUMN")
    missing_ok = if_exists(reader)
    if reader.sees("PARTITION", "("):
        _refuse_constraint(reader)
    closed = reader.accept("(")
    changes: list[Change] = []
    while True:
        changes.append(_drops(reader.dotted("a column"), missing_ok))
        if not reader.accept(","):
            break
        _refuse_second(reader)
    if closed:
        reader.expect(")")
    if reader.accept("CASCADE"):
        raise reader.unsupported("DROP COLUMN CASCADE", "leave CASCADE out")
    reader.accept("RESTRICT")
    return _altered(_all(changes))


def _drops(path: tuple[str, ...], missing_ok: bool) -> Change:
    return lambda schema: columns_of.drop_column(schema, path, if_exists=missing_ok)


def _rename(reader: Reader) -> Action:
    """``RENAME TO t``, ``RENAME [COLUMN] a TO b``"""
    if reader.accept("TO"):
        name = _new_name(reader)
        return lambda transaction, ref: transaction.rename_table(name_of(ref), name(ref))
    reader.accept("COLUMN")
    path = reader.dotted("a column")
    reader.expect("TO")
    at, new = reader.token.start, reader.name("the new name")
    if reader.sees("."):
        raise reader.unsupported("another place of a field", "give its new name alone", at)
    return _altered(lambda schema: columns_of.rename_column(schema, path, new))


def _alter(reader: Reader) -> Action:
    """``ALTER [COLUMN] a TYPE ..., b COMMENT ...``; as Spark has it, several with one COLUMN."""
    reader.accept("COLUMN")
    actions = [_parsed_action(reader)]
    while reader.accept(","):
        _refuse_second(reader)
        actions.append(_parsed_action(reader))
    return _one_by_one(actions)


def _one_by_one(actions: list[Action]) -> Action:
    def act(transaction: Transaction, ref: TableRef) -> None:
        for action in actions:
            action(transaction, ref)

    return act


def _parsed_action(reader: Reader) -> Action:
    """``a [SET DATA] TYPE ... | SET DEFAULT | DROP DEFAULT | SET NOT NULL | COMMENT ...``"""
    path = reader.dotted("a column")
    if reader.sees("COMMENT"):
        return _comments(reader, path)
    if reader.accept("DROP", "DEFAULT"):
        return _altered(lambda schema: columns_of.set_default(schema, path, None))
    if reader.accept("DROP", "NOT", "NULL"):
        return _altered(lambda schema: columns_of.set_nullable(schema, path, True))
    if reader.accept("SET", "NOT", "NULL"):
        return _altered(lambda schema: columns_of.set_nullable(schema, path, False))
    if reader.accept("SET", "DEFAULT"):
        return _altered(_sets_default(reader, path))
    _refuse_place(reader)
    typed = reader.accept("SET", "DATA", "TYPE") or reader.accept("SET", "TYPE")
    if not (typed or reader.accept("TYPE")):
        raise reader.wrong(f"SET TYPE, SET DEFAULT or NOT NULL is expected, not {reader.shown()}")
    new = column_type(reader, path[-1])
    if reader.sees("USING"):
        raise reader.unsupported("USING", "add a column, UPDATE it, drop the other")
    return _altered(lambda schema: columns_of.set_type(schema, path, new))


def _comments(reader: Reader, path: tuple[str, ...]) -> Action:
    """``COMMENT 'text'``"""
    if len(path) > 1:
        raise reader.unsupported("a comment on a field", "comment on its column")
    reader.expect("COMMENT")
    text = comment_or_null(reader)
    return lambda transaction, ref: transaction.comment_on_column(name_of(ref), path[0], text)


def _change(reader: Reader) -> Action:
    """``CHANGE [COLUMN] a b INT [COMMENT 'text']``, Hive's; or what ALTER COLUMN has."""
    at = reader.at
    reader.accept("COLUMN")
    path = reader.dotted("a column")
    if reader.token.upper in _OF_ALTER:
        reader.at = at
        return _alter(reader)
    name = reader.name("the column's name from now on")
    new = column_type(reader, name)
    if reader.sees("NOT", "NULL"):
        raise reader.unsupported(
            "NOT NULL in CHANGE COLUMN", "use ALTER COLUMN a SET NOT NULL or DROP NOT NULL"
        )
    after = (*path[:-1], name)
    actions = [_altered(lambda schema: columns_of.set_type(schema, path, new))]
    if name != path[-1]:
        actions.append(_altered(lambda schema: columns_of.rename_column(schema, path, name)))
    if reader.sees("COMMENT"):
        actions.append(_comments(reader, after))
    _refuse_place(reader)
    return _one_by_one(actions)


def _sets_default(reader: Reader, path: tuple[str, ...]) -> Change:
    """Set a default, which is checked against the column's type once that is known."""
    default, statement = columns.default(reader), reader.statement

    def change(schema: TableSchema) -> TableSchema:
        column = columns.with_default(statement, columns_of.column_at(schema, path), default)
        return columns_of.set_default(schema, path, column.default, column.default_kind)

    return change


def _set(reader: Reader) -> Action:
    """``SET PARTITIONED BY (...)``, ``SET SORTED BY (...)``"""
    if reader.accept("PARTITIONED", "BY"):
        fields = partition_fields(reader)
        return lambda transaction, ref: transaction.table(name_of(ref)).set_partitioning(fields)
    if reader.accept("SORTED", "BY"):
        keys = sort_keys(reader)
        return lambda transaction, ref: transaction.table(name_of(ref)).set_sorting(keys)
    word = reader.token.upper
    if word == "(":
        raise reader.unsupported("SET (...), as DuckDB 2.0 has it,", _OPTION)
    if word in _NEAREST_OF_SET:
        raise reader.unsupported(f"SET {word}", _NEAREST_OF_SET[word])
    raise reader.wrong(f"PARTITIONED BY or SORTED BY is expected, not {reader.shown()}")


def _reset(reader: Reader) -> Action:
    if reader.accept("PARTITIONED", "BY"):
        return lambda transaction, ref: transaction.table(name_of(ref)).set_partitioning(())
    if reader.accept("SORTED", "BY"):
        return lambda transaction, ref: transaction.table(name_of(ref)).set_sorting(())
    raise reader.wrong(f"PARTITIONED BY or SORTED BY is expected, not {reader.shown()}")


def _refuse_constraint(reader: Reader) -> None:
    """Refuse ``ADD CONSTRAINT ...`` and the like; ``DROP primary`` alone drops a column."""
    word = reader.token.upper
    if word in _NOT_COLUMNS and reader.ahead(1).text != "":
        raise reader.unsupported(*_NOT_COLUMNS[word])


def _refuse_place(reader: Reader) -> None:
    """``FIRST``, ``AFTER a``"""
    if reader.token.upper in {"FIRST", "AFTER"}:
        raise reader.unsupported(
            f"the place {reader.token.upper} of a column", "columns come last; SELECT orders them"
        )


def _refuse_second(reader: Reader) -> None:
    """Refuse ``ADD COLUMN a INT, ADD COLUMN b INT``: lists of columns are supported instead."""
    if reader.token.upper in {"ADD", "DROP", "ALTER", "RENAME"} and reader.ahead(1).kind == "word":
        raise reader.unsupported(
            "several actions in one ALTER TABLE",
            "use a statement for each between BEGIN and COMMIT, or ADD COLUMNS (a INT, b INT)",
        )


_OF_ALTER = frozenset({"TYPE", "SET", "DROP", "COMMENT", "FIRST", "AFTER"})
_ACTIONS: Mapping[str, Callable[[Reader], Action]] = {
    "ADD": _add,
    "ALTER": _alter,
    "CHANGE": _change,
    "DROP": _drop,
    "RENAME": _rename,
    "RESET": _reset,
    "SET": _set,
}
