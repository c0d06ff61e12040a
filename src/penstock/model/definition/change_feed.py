"""Change feeds: what a merge with ``sequence`` and ``deletes`` goes with, in both forms."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.errors import Diagnostic
from penstock.model.script.constants import misread_condition
from penstock.model.script.declaration import Declaration
from penstock.model.values.names import Names
from penstock.sql.identifiers import fold


def findings(declaration: Declaration, names: Names) -> Iterator[Diagnostic]:
    """Yield why the rows cannot be merged as the events of a change feed."""
    upsert = declaration.upsert
    where = declaration.place("sequence" if upsert.sequence is not None else "deletes")
    for message, hint in _problems(declaration, names):
        yield Diagnostic("error", message, where, hint, "sequence")


def _problems(declaration: Declaration, names: Names) -> Iterator[tuple[str, str]]:
    upsert = declaration.upsert
    if upsert.sequence is None:
        yield (
            "`deletes` needs `sequence`, the column that orders the events of a key",
            ("write sequence with the name of the column"),
        )
        return
    if fold(upsert.sequence) in map(fold, declaration.keys):
        yield (
            f"`sequence` orders the events of a key, and {upsert.sequence} is one",
            ("name another column"),
        )
    if upsert.has_rules:
        yield (
            "`sequence` says which rows match, so `when_matched` and `merge_filter` cannot",
            ("leave one of them"),
        )
    if declaration.key_expressions:
        yield (
            "`sequence` needs keys that are columns: tombstones have these columns",
            ("compute the key in the query, and name its column"),
        )
    if declaration.partition is not None:
        yield (
            "a change feed makes one table of its events, and `partitioned` one of each slice",
            ("take `partitioned` away; filter the feed by @start_dt and @end_dt for slices of it"),
        )
    if declaration.target.lake in names.roots:
        yield (
            "a commit of Delta changes one table, and not that of the tombstones",
            ("make the table in a lake"),
        )
    problem = upsert.deletes and misread_condition(upsert.deletes, declaration.dialect)
    if problem:
        yield f"`deletes`: {problem.message}", "write a condition of columns, such as op = 'D'"
