"""Parts of a statement that mean by themselves what they say: no WITH before them, no macros."""

from __future__ import annotations

from penstock.lake.statements.session import Session
from penstock.sql.statement import Reader
from penstock.sql.tables import Unreadable


def plain(session: Session, reader: Reader, span: tuple[int, int]) -> str | None:
    """The text of an expression, unless it may mean something else to this lake."""
    text = reader.text[span[0] : span[1]]
    if reader.with_ is not None:
        return None
    query = f"SELECT {text}"
    try:
        same = "(" not in text or session.names(session.transaction).expand(query) == query
    except Unreadable:
        return None
    return text if same else None
