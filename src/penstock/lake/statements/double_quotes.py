"""Names in double quotes inside expressions, which are texts in Spark's SQL.

``DELETE FROM t WHERE "kind" <> 'eel'`` would compare two texts, and delete the eels as well. So
what may be a name is refused in statements that change rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from penstock.lake.naming import fold
from penstock.lake.statements import tokens as words
from penstock.lake.statements.reader import Reader
from penstock.lake.statements.session import Session
from penstock.lake.statements.tokens import NAME, Token

Span = tuple[int, int]


def refuse_names(
    session: Session, reader: Reader, spans: Iterable[Span | None], columns: Iterable[str]
) -> None:
    """Raise UnsupportedFeature for a text in double quotes that names a column.

    ``columns`` are the target's; those of the lake's other tables that the statement names count
    as well, and whatever has a dot beside it.
    """
    found = list(_quoted(reader, [span for span in spans if span is not None]))
    if not found:
        return
    known = {fold(name) for name in columns} | set(_columns_named(session, reader))
    for token, dotted in found:
        name = words.unquoted(token)
        if dotted or fold(name) in known:
            raise reader.unsupported(
                f"{token.text}, a text in Spark's SQL and a name in DuckDB's,",
                f"write `{name}` for the name, or '{name}' for the text",
                token.start,
            )


def _quoted(reader: Reader, spans: list[Span]) -> Iterator[tuple[Token, bool]]:
    """Texts in double quotes inside the spans, and whether a dot is beside them."""
    tokens = reader.tokens
    for at, token in enumerate(tokens):
        if token.kind != NAME or token.text[0] != '"':
            continue
        if any(start <= token.start < end for start, end in spans):
            beside = [one.text for one in tokens[max(at - 1, 0) : at + 2]]
            yield token, "." in beside


def _columns_named(session: Session, reader: Reader) -> Iterator[str]:
    """The columns of the tables whose names are among the statement's words."""
    said = {
        fold(words.unquoted(one) if one.kind == NAME else one.text)
        for one in reader.tokens
        if one.kind in {NAME, words.WORD}
    }
    for table in session.catalog.tables(session.snapshot_id()):
        if fold(table.name) in said:
            yield from (fold(column.name) for column in table.schema.columns)
