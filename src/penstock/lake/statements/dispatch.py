"""Which statement a text is; a query goes to Spark as before, at the price of one look at it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from penstock.errors import PenstockError, QueryFailed
from penstock.lake.statements import (
    alter,
    call,
    comment,
    create,
    delete,
    describe,
    drop,
    insert,
    merge,
    settings,
    show,
    transactions,
    translated,
    update,
    use,
)
from penstock.lake.statements.answer import Answer
from penstock.lake.statements.session import Session
from penstock.sql.places import place
from penstock.sql.statement import Reader
from penstock.sql.tokens import Token, split

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Statement = Callable[[Session, Reader], "DataFrame | Answer"]

STATEMENTS: Mapping[str, Statement] = {
    "ABORT": transactions.rollback,
    "ALTER": alter.run,
    "BEGIN": transactions.begin,
    "CALL": call.run,
    "CHECKPOINT": call.checkpoint,
    "COMMENT": comment.run,
    "COMMIT": transactions.commit,
    "CREATE": create.run,
    "DELETE": delete.run,
    "DESC": describe.run,
    "DESCRIBE": describe.run,
    "DROP": drop.run,
    "END": transactions.commit,
    "INSERT": insert.run,
    "MERGE": merge.run,
    "RESET": settings.reset,
    "ROLLBACK": transactions.rollback,
    "SET": settings.set_,
    "SHOW": show.run,
    "START": transactions.begin,
    "TRUNCATE": delete.truncate,
    "UPDATE": update.run,
    "USE": use.run,
}
# What is not there, and the nearest that is.
_TRANSACTION = "use a transaction for each part: BEGIN, COMMIT or ROLLBACK"
_ARGUMENTS = "use lake.sql(text, args={...}) with :name markers"
_FILES_FROM_ELSEWHERE = "use CALL ducklake_add_data_files('lake', 't', path)"
_LEFT_BEHIND = "use CALL ducklake_delete_orphaned_files('lake', cleanup_all => true)"
_NEAREST: Mapping[str, str] = {
    "ADD": "give jars and files to the session when it starts",
    "ANALYZE": "statistics are exact at every commit: nothing is to be done",
    "ATTACH": "use Lake.attach(uri), or [lakes.NAME] in penstock.toml",
    "CACHE": "use lake.sql(query).cache()",
    "CLEAR": "use unpersist() of the DataFrame that was cached",
    "CONVERT": _FILES_FROM_ELSEWHERE,
    "COPY": "use INSERT INTO ... SELECT, or lake.sql(query).write",
    "DEALLOCATE": _ARGUMENTS,
    "DECLARE": _ARGUMENTS,
    "DENY": "take rights in the catalog's database and on the files",
    "DETACH": "use lake.close()",
    "EXECUTE": _ARGUMENTS,
    "EXPLAIN": "use lake.explain(query), or lake.sql(query).explain() for Spark's own plan",
    "EXPORT": "use penstock backup",
    "FORCE": "use CHECKPOINT",
    "FSCK": _LEFT_BEHIND,
    "GENERATE": "readers ask the catalog: SELECT * FROM ducklake_list_files('lake', 't')",
    "GRANT": "give rights in the catalog's database and on the files",
    "IMPORT": "use penstock restore",
    "INSTALL": "nothing is to be installed",
    "LIST": "spark.sparkContext lists them, where there is one",
    "LOAD": "nothing is to be loaded",
    "LOCK": "nothing is to be locked: commits that exclude each other are found",
    "MSCK": _FILES_FROM_ELSEWHERE,
    "OPTIMIZE": "use CALL ducklake_merge_adjacent_files('lake')",
    "PIVOT": "use SELECT * FROM t PIVOT (...)",
    "PRAGMA": "use CALL set_option(...), or SELECT * FROM options()",
    "PREPARE": _ARGUMENTS,
    "REFRESH": "every query sees the latest snapshot: nothing is to be done",
    "RELEASE": _TRANSACTION,
    "REORG": "use CALL ducklake_rewrite_data_files('lake', 't')",
    "REPAIR": _FILES_FROM_ELSEWHERE,
    "REPLACE": "use MERGE INTO, or INSERT INTO ... REPLACE WHERE",
    "RESTORE": "use lake.table(name).rollback(version=snapshot)",
    "REVOKE": "take rights in the catalog's database and on the files",
    "SAVEPOINT": _TRANSACTION,
    "SUMMARIZE": "use SELECT with aggregates, or lake.table(name).to_df().summary()",
    "SYNC": _FILES_FROM_ELSEWHERE,
    "UNCACHE": "use unpersist() of the DataFrame that was cached",
    "UNDROP": "use CREATE TABLE t AS SELECT * FROM t AT (VERSION => n), n before it was dropped",
    "UNLOCK": "nothing is locked",
    "UNPIVOT": "use SELECT * FROM t UNPIVOT (...)",
    "UPSERT": "use MERGE INTO",
    "VACUUM": "use CALL ducklake_cleanup_old_files('lake', cleanup_all => true)",
}
_SETTINGS = frozenset(  # of a script
    {"ADD", "ATTACH", "DECLARE", "DETACH", "INSTALL", "LIST", "LOAD", "RESET", "SET", "USE"}
)
_QUERIES = frozenset({"SELECT", "WITH", "FROM", "VALUES", "TABLE", "("})
_AFTER_WITH = frozenset({"DELETE", "INSERT", "MERGE", "UPDATE"})
_FIRST = re.compile(r"(?:\s+|--[^\n]*(?:\n|\Z)|/\*.*?\*/|;)*(\w+|\(|)", re.S)
_WRITES = re.compile(r"\b(?:insert|update|delete|merge)\b", re.I)


def run(session: Session, text: str) -> DataFrame | Answer:
    """Run the statements of a text, in order; the last one's answer.

    Raises QueryFailed with the line and column, UnsupportedFeature for what is not there; what the
    statements before one that fails did stays done.
    """
    if ";" not in text:
        return _one(session, text, 0, len(text))
    answer: DataFrame | Answer | None = None
    for start, end in split(text, session.dialect):
        answer = _one(session, text, start, end)
    if answer is None:
        raise QueryFailed("the text holds no statement", hint="write one")
    return answer


def first_word(text: str) -> str:
    """The word that a text begins with, after comments, in capitals."""
    found = _FIRST.match(text)
    return found[1].upper() if found is not None else ""


def is_statement(text: str, dialect: str = "spark") -> bool:
    """Whether a text has other statements than queries and the settings before them."""
    parts = split(text, dialect) if ";" in text else [(0, len(text))]
    return any(_is_statement(text[start:end], dialect) for start, end in parts)


def _is_statement(text: str, dialect: str) -> bool:
    word = first_word(text)
    if word == "WITH":
        reader = Reader(text, dialect=dialect)
        return bool(_WRITES.search(text)) and _past_with(reader) is not None
    return word not in _SETTINGS and (word in STATEMENTS or word in _NEAREST)


def _one(session: Session, text: str, start: int, end: int) -> DataFrame | Answer:
    if session.dialect == "duckdb":
        written = translated.in_spark(session, text, start, end)
        last = len(written.text) - (len(text) - end)
        with translated.placed(written, text):
            return _one(replace(session, dialect="spark"), written.text, start, last)
    named: list[tuple[str, Token]] = []
    try:
        return _run(session, text, start, end, named)
    except PenstockError as error:
        place(error, text, start, end, named)
        raise


def _run(
    session: Session, text: str, start: int, end: int, named: list[tuple[str, Token]]
) -> DataFrame | Answer:
    word = first_word(text[start:end])
    statement = STATEMENTS.get(word)
    if statement is not None:
        return statement(session, _reader(session, text, start, end, named))
    if word == "WITH" and _WRITES.search(text, start, end):
        reader = _reader(session, text, start, end, named)
        statement = _past_with(reader)
        if statement is not None:
            return statement(session, reader)
    if word in _NEAREST:
        raise Reader(text, start, end).unsupported(word, _NEAREST[word])
    if word not in _QUERIES:
        raise _unknown(Reader(text, start, end), word)
    whole = start == 0 and end == len(text)
    return session.query(text if whole else _kept(text, start, end))


def _reader(
    session: Session, text: str, start: int, end: int, named: list[tuple[str, Token]]
) -> Reader:
    return Reader(
        text,
        start,
        end,
        lakes=session.lakes,
        named=named,
        schema=session.current.schema,
        has_schema=session.has_schema,
        schema_with=session.schema_with,
    )


def _unknown(reader: Reader, word: str) -> QueryFailed:
    """No statement begins like that; Spark is not asked, which would run commands of its own."""
    if not word:
        return reader.wrong("the text holds no statement", "write one")
    near = get_close_matches(word, (*STATEMENTS, *_QUERIES), n=1)
    hint = f"did you mean {near[0]}?" if near else "docs/sql.md lists the statements"
    return reader.wrong(f"no statement begins with {reader.shown()}", hint)


def _kept(text: str, start: int, end: int) -> str:
    """One statement of several, at its lines and columns."""
    before = "".join(c if c == "\n" else " " for c in text[:start])
    return before + text[start:end]


def _past_with(reader: Reader) -> Statement | None:
    """The statement that a WITH stands before, which changes rows; ``None`` for a query."""
    try:
        word = reader.past_with()
    except QueryFailed:  # Spark says better what is wrong
        return None
    return STATEMENTS[word] if word in _AFTER_WITH else None
