"""What a lake asks of every commit: a message, where ``require_commit_message`` is set."""

from __future__ import annotations

from sqlalchemy import Connection, select

from penstock.errors import CommitError
from penstock.lake.catalog import tables as t


def check_message(connection: Connection, author: str | None, message: str | None) -> None:
    """Raise CommitError where a message is asked for and neither it nor an author is given.

    The lake's own option counts, not those of a schema or table, as in DuckDB 1.5.5 (measured).
    """
    if message is not None or author is not None:
        return
    c = t.metadata.c
    query = select(c.value).where(c.key == "require_commit_message", c.scope.is_(None))
    if connection.execute(query).scalar() == "true":
        raise CommitError(
            "the lake wants a message for every commit, and this one has none",
            hint="use lake.transaction(author=..., message=...), or in SQL set_commit_message; "
            "set_option('require_commit_message', false) ends it",
        )
