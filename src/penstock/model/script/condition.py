"""Conditions that stand on their own, outside of a script: those of ``data_test expression``."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.errors import UnsupportedFeature
from penstock.lazy import exp
from penstock.model.time.partition_token import TOKEN
from penstock.sql.dialect import SPARK, normalized, to_spark
from penstock.sql.text import Unreadable, misread
from penstock.sql.tokens import ARGUMENT, STRING, Unclosed, words

_SCRIPT = "write the test as a script in tests/, which may have them"


@dataclass(frozen=True, slots=True)
class Problem:
    """``at`` is where in the text it is."""

    message: str
    hint: str
    at: int = 0


def misread_condition(text: str, dialect: str) -> Problem | None:
    """Return what is wrong with a condition, as far as that shows without its columns."""
    try:
        tokens = words(text, dialect)
    except Unclosed as error:
        return Problem(
            f"`{error.opener}` is opened here and never closed", "close it", error.offset
        )
    for token in tokens:
        if token.kind == ARGUMENT or (token.kind == STRING and token.value == TOKEN):
            return Problem(f"a condition has no {token.text}", _SCRIPT, token.start)
        if token.text == ";":
            return Problem("a condition is one expression", "remove the `;`", token.start)
        if token.upper in {"SELECT", "OVER"}:
            message = "a condition is of one row: it has no subquery and no window"
            return Problem(message, "write the test as a script in tests/", token.start)
    return _unparsed(text, dialect)


def _unparsed(text: str, dialect: str) -> Problem | None:
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        in_spark = to_spark(normalized(text, dialect), dialect, expression=True)
        tree = sqlglot.parse_one(in_spark, read=SPARK, into=exp.Condition)
    except UnsupportedFeature as error:
        at = int(error.data.get("start", 0))
        return Problem(f"the condition: {error.message}", error.hint or _SCRIPT, at)
    except Unreadable as error:
        return Problem(f"the condition cannot be read{error}", "write one condition", error.at)
    except SqlglotError as error:
        reason, at = misread(error, text)
        return Problem(f"the condition cannot be read{reason}", "write one condition", at)
    aggregate = tree.find(exp.AggFunc)
    if aggregate is not None:
        message = f"a condition is of one row: {aggregate.sql_name().lower()} is of many"
        return Problem(message, "write the test as a script in tests/")
    return None
