"""What queries may have after their WHERE, and UPDATE and DELETE may not.

They run as a SELECT of the rows they change: without this, ``DELETE FROM t WHERE a GROUP BY b``
would be one as well, and mean who knows what.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.sql.statement import Reader
from penstock.sql.tokens import MARKER, NUMBER

Span = tuple[int, int]

_FIRST_ROWS = "name the rows: WHERE id IN (SELECT id FROM t ORDER BY ... LIMIT ...)"
_OTHER = "put the query into a WHERE: WHERE id IN (SELECT id FROM ...)"
_LATEST = "leave it out: statements change the latest snapshot"
_TAILS = {
    ("ORDER", "BY"): _FIRST_ROWS,
    ("SORT", "BY"): _FIRST_ROWS,
    ("CLUSTER", "BY"): _FIRST_ROWS,
    ("DISTRIBUTE", "BY"): _FIRST_ROWS,
    ("LIMIT",): _FIRST_ROWS,
    ("OFFSET",): _FIRST_ROWS,
    ("TABLESAMPLE",): _FIRST_ROWS,
    ("GROUP", "BY"): _OTHER,
    ("HAVING",): _OTHER,
    ("QUALIFY",): _OTHER,
    ("WINDOW",): _OTHER,
    ("UNION",): _OTHER,
    ("INTERSECT",): _OTHER,
    ("EXCEPT",): _OTHER,
    ("MINUS",): _OTHER,
    ("|>",): _OTHER,
    ("VERSION", "AS", "OF"): _LATEST,
    ("TIMESTAMP", "AS", "OF"): _LATEST,
    ("FOR",): _LATEST,
    ("PARTITION",): "use WHERE with the values of the partition",
}
# Words that may be a column's name, unless a value or a name follows.
_NEEDS_VALUE = frozenset({"LIMIT", "OFFSET", "WINDOW", "HAVING", "QUALIFY"})


def refuse_tail(reader: Reader) -> None:
    """Raise UnsupportedFeature where one comes next."""
    for phrase, nearest in _TAILS.items():
        if reader.sees(*phrase) and _is_tail(reader, phrase):
            raise reader.unsupported(f"{' '.join(phrase)} of what is changed", nearest)


def refuse_tails(reader: Reader, spans: Sequence[Span | None]) -> None:
    """Raise UnsupportedFeature where one stands in these spans, outside of brackets."""
    at = reader.at
    for span in spans:
        if span is None or span[1] <= span[0]:
            continue
        reader.at = next(i for i, one in enumerate(reader.tokens) if one.start >= span[0])
        while not reader.done and reader.token.start < span[1]:
            if reader.token.start > span[0]:
                refuse_tail(reader)
            reader.skip()
    reader.at = at


def _is_tail(reader: Reader, phrase: tuple[str, ...]) -> bool:
    if phrase[0] not in _NEEDS_VALUE:
        return True
    follows = reader.ahead(1)
    return follows.kind in {NUMBER, MARKER, "word", "name"} and follows.upper not in _OPERATORS


_OPERATORS = frozenset({"IS", "IN", "NOT", "AND", "OR", "LIKE", "BETWEEN", "RLIKE", "ILIKE"})
