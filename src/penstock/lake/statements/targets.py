"""The table that a statement changes, in the SELECT that finds its rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.lake.format.naming import TableRef, fold
from penstock.lake.format.schema import TableSchema
from penstock.lake.reading.conversions.spark_types import quoted
from penstock.lake.reading.scan import Scan
from penstock.lake.rows import updates
from penstock.lake.statements.session import Session, table_ref
from penstock.lake.transaction import TransactionTable
from penstock.sql.predicate import of_query
from penstock.sql.statement import Reader
from penstock.sql.tables import Unreadable, analyse
from penstock.sql.text import Composed
from penstock.sql.tokens import NAME, WORD, Token, tokenize, unquoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.sql.conditions import Predicate

TARGET = "__penstock_target"
_ROWID = "ROWID"


@dataclass(frozen=True, slots=True)
class Target:
    """A table under the name that the statement has for it."""

    ref: TableRef
    alias: str | None

    @property
    def name(self) -> str:
        return self.alias or self.ref.name

    @property
    def source(self) -> str:
        """In a FROM."""
        return f"{quoted(TARGET)} AS {quoted(self.name)}"

    def column(self, name: str) -> str:
        return f"{quoted(self.name)}.{quoted(name)}"


def target(reader: Reader) -> Target:
    """``t``, ``s.t AS a``"""
    ref = table_ref(reader)
    return Target(ref, reader.alias())


def take(text: Composed, reader: Reader, span: tuple[int, int], *of: Target) -> Composed:
    """A part of the statement, in which ``main.t.c`` becomes ``t.c``."""
    tokens = [token for token in reader.tokens if span[0] <= token.start < span[1]]
    at = span[0]
    for start, end in sorted(place for one in of for place in _schemas(tokens, one, reader.lakes)):
        text.take((at, start))
        at = end
    return text.take((at, span[1]))


def without_schema(text: str, of: Target, lakes: frozenset[str]) -> str:
    """An expression in which ``main.t.c`` becomes ``t.c``; the lake's name goes, too."""
    for start, end in reversed(list(_schemas(tokenize(text), of, lakes))):
        text = text[:start] + text[end:]
    return text


def _schemas(
    tokens: Sequence[Token], of: Target, lakes: frozenset[str]
) -> Iterator[tuple[int, int]]:
    """Where the target's schema stands before its name and a column's."""
    for i, token in enumerate(tokens[:-3]):
        if of.alias is not None or not _is(tokens[i : i + 4], of.ref):
            continue
        before = tokens[max(i - 2, 0) : i]
        is_lake = len(before) == 2 and before[1].text == "." and _said(before[0]) in lakes
        yield (before[0] if is_lake else token).start, tokens[i + 2].start


def _is(tokens: Sequence[Token], ref: TableRef) -> bool:
    if tokens[1].text != "." or tokens[3].text != ".":
        return False
    return (_said(tokens[0]), _said(tokens[2])) == (fold(ref.schema), fold(ref.name))


def _said(token: Token) -> str:
    return fold(unquoted(token) if token.kind == NAME else token.text)


def unqualified(
    reader: Reader, span: tuple[int, int], of: Target, schema: TableSchema
) -> str | None:
    """An expression over the target's columns without its name before them.

    ``None`` where that name stands before anything else, such as a field of a struct that is called
    like the target.
    """
    tokens = [token for token in reader.tokens if span[0] <= token.start < span[1]]
    cuts = dict(_schemas(tokens, of, reader.lakes))
    ends = set(cuts.values())
    for at in range(1, len(tokens) - 1):
        before, token, after = tokens[at - 1 : at + 2]
        if token.text != "." or before.kind not in {NAME, WORD} or _said(before) != fold(of.name):
            continue
        inside = at > 1 and tokens[at - 2].text == "." and before.start not in ends
        if inside or schema.find(_said(after)) is None:
            return None
        cuts[before.start] = after.start
    text = reader.text[span[0] : span[1]]
    for start, end in sorted(cuts.items(), reverse=True):
        text = text[: start - span[0]] + text[end - span[0] :]
    return text


def file_filter(session: Session, text: Composed) -> Predicate | None:
    """What the conditions of a SELECT over `TARGET` say of the target's files."""
    try:
        analysis = analyse(session.names(session.transaction).expand(text.text))
        node = next(table.node for table in analysis.tables if table.name == TARGET)
        return of_query(analysis.text, node, zone=session.zone(), args=session.args)
    except (Unreadable, StopIteration):
        return None


def select(session: Session, table: TransactionTable, text: Composed, source: Scan) -> DataFrame:
    """The rows of a SELECT over `TARGET`, which is this scan."""
    has_rowid = table.schema.find(_ROWID) is not None
    named = not has_rowid and _ROWID in text.text.upper()
    return session.asked(text, {TARGET: updates.rows_of(table, source, row_ids=named)})


def place(of: Target) -> str:
    """What tells the target's rows apart, for a SELECT."""
    return ", ".join(of.column(name) for name in (updates.FILE, updates.POSITION, updates.ROW_ID))
