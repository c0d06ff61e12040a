"""Finding out which statement a text is, and running it; queries go to Spark."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from penstock.errors import PenstockError, QueryFailed
from penstock.lakes.statements import (
    alter,
    call,
    create,
    delete,
    drop,
    insert,
    merge,
    settings,
    show,
    transactions,
    translated,
    update,
)
from penstock.lakes.statements.session import Answer, Session
from penstock.sql.statement import Reader, place_error
from penstock.sql.text import blank
from penstock.sql.tokens import Token, split

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Form(Generic[Value]):
    """A kind of statement: the function that parses it into a value, before anything is looked up
    or done, and the function that executes the value.
    """

    parse: Callable[[Reader], Value]
    execute: Callable[[Session, Value], DataFrame | Answer]


_COMMIT = Form(transactions.parse, transactions.commit)
_ROLLBACK = Form(transactions.parse, transactions.rollback)
_BEGIN = Form(transactions.parse, transactions.begin)
_DESCRIBE = Form(show.parse_describe, show.describe)
FORMS: Mapping[str, Form[Any]] = {
    "ABORT": _ROLLBACK,
    "ALTER": Form(alter.parse, alter.execute),
    "BEGIN": _BEGIN,
    "CALL": Form(call.parse, call.execute),
    "CHECKPOINT": Form(call.parse_checkpoint, call.checkpoint),
    "COMMENT": Form(alter.parse_comment, alter.comment),
    "COMMIT": _COMMIT,
    "CREATE": Form(create.parse, create.execute),
    "DELETE": Form(delete.parse, delete.execute),
    "DESC": _DESCRIBE,
    "DESCRIBE": _DESCRIBE,
    "DROP": Form(drop.parse, drop.execute),
    "END": _COMMIT,
    "INSERT": Form(insert.parse, insert.execute),
    "MERGE": Form(merge.parse, merge.execute),
    "RESET": Form(settings.parse_reset, settings.execute),
    "ROLLBACK": _ROLLBACK,
    "SET": Form(settings.parse, settings.execute),
    "SHOW": Form(show.parse, show.execute),
    "START": _BEGIN,
    "TRUNCATE": Form(delete.parse_truncate, delete.execute),
    "UPDATE": Form(update.parse, update.execute),
    "USE": Form(settings.parse_use, settings.use),
}
# Unsupported statements, and their nearest alternative.
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

    Raises QueryFailed with the line and column, UnsupportedFeature for unsupported statements; the
    effects of statements before a failed one remain.
    """
    if ";" not in text:
        return _single(session, text, 0, len(text))
    answer: DataFrame | Answer | None = None
    for start, end in split(text, session.dialect):
        answer = _single(session, text, start, end)
    if answer is None:
        raise QueryFailed("the text holds no statement", hint="write one")
    return answer


def first_word(text: str) -> str:
    """The first word of a text, after comments, in capitals."""
    match = _FIRST.match(text)
    return match[1].upper() if match is not None else ""


def is_statement(text: str, dialect: str = "spark") -> bool:
    """Return whether a text has other statements than queries and the settings before them."""
    parts = split(text, dialect) if ";" in text else [(0, len(text))]
    return any(_is_statement(text[start:end], dialect) for start, end in parts)


def _is_statement(text: str, dialect: str) -> bool:
    word = first_word(text)
    if word == "WITH":
        reader = Reader(text, dialect=dialect)
        return bool(_WRITES.search(text)) and _past_with(reader) is not None
    if word in _QUERIES:
        return call.is_read(text, dialect)
    return word not in _SETTINGS and (word in FORMS or word in _NEAREST)


def _single(session: Session, text: str, start: int, end: int) -> DataFrame | Answer:
    if session.dialect == "duckdb":
        written = translated.in_spark(session, text, start, end)
        last = len(written.text) - (len(text) - end)
        in_spark = replace(session, dialect="spark")
        if written.is_edited:  # a function of Spark's may be called like a macro
            in_spark = replace(
                in_spark, names=lambda t: replace(session.names(t), has_no_calls=True)
            )
        with translated.placed(written, text):
            return _single(in_spark, written.text, start, last)
    named: list[tuple[str, Token]] = []
    try:
        return _run(session, text, start, end, named)
    except PenstockError as error:
        place_error(error, text, start, end, named)
        raise


def _run(
    session: Session, text: str, start: int, end: int, named: list[tuple[str, Token]]
) -> DataFrame | Answer:
    word = first_word(text[start:end])
    form = FORMS.get(word)
    if form is not None or (word == "WITH" and _WRITES.search(text, start, end)):
        reader = Reader(text, start, end, lakes=session.lakes, args=session.args, named=named)
        form = form or _past_with(reader)
        if form is not None:
            return form.execute(session, form.parse(reader))
    if word in _NEAREST:
        raise Reader(text, start, end).unsupported(word, _NEAREST[word])
    if word not in _QUERIES:
        raise _unknown(Reader(text, start, end), word)
    answer = call.read_from(
        session, Reader(text, start, end, lakes=session.lakes, args=session.args)
    )
    if answer is not None:
        return answer
    whole = start == 0 and end == len(text)
    return session.query(text if whole else blank(text[:start]) + text[start:end])


def _unknown(reader: Reader, word: str) -> QueryFailed:
    """The error for an unknown statement; Spark does not get it, as it has commands of its own."""
    if not word:
        return reader.wrong("the text holds no statement", "write one")
    near = get_close_matches(word, (*FORMS, *_QUERIES), n=1)
    hint = f"did you mean {near[0]}?" if near else "docs/sql.md lists the statements"
    return reader.wrong(f"no statement begins with {reader.shown()}", hint)


def _past_with(reader: Reader) -> Form[Any] | None:
    """The statement after a WITH, if it changes rows; ``None`` for a query."""
    try:
        word = reader.past_with()
    except QueryFailed:  # Spark says better what is wrong
        return None
    return FORMS[word] if word in _AFTER_WITH else None
