"""What a lake asks of every commit: a message, where ``require_commit_message`` is set."""

from __future__ import annotations

from sqlalchemy import ScalarSelect, select

from penstock.errors import CommitError
from penstock.lake.catalog import tables as t


def value() -> ScalarSelect[str]:
    """The option's value, to be selected with others.

    The lake's own option counts, not those of a schema or table, as in DuckDB 1.5.5 (measured).
    """
    c = t.metadata.c
    query = select(c.value).where(c.key == "require_commit_message", c.scope.is_(None))
    return query.limit(1).scalar_subquery()


def is_on(value: str | None) -> bool:
    return value == "true"


def check_message(author: str | None, message: str | None) -> None:
    """Raise CommitError unless there is a message or an author, where the lake asks for one."""
    if message is None and author is None:
        raise CommitError(
            "the lake wants a message for every commit, and this one has none",
            hint="use lake.transaction(author=..., message=...), or in SQL set_commit_message; "
            "set_option('require_commit_message', false) ends it",
        )
