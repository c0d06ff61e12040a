"""Identifiers of SQL, quoted and compared as DuckDB does; the nearest to one that is not known.

The names of a lake's functions are here, folded.
"""

from __future__ import annotations

import re
import string
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from penstock.errors import ArgumentError

_PART = re.compile(r'\s*(?:"((?:[^"]|"")+)"|`((?:[^`]|``)+)`|([^\s."`]+))\s*')
DEFAULT_SCHEMA = "main"
_LISTED = 10
LAKES = frozenset({"lake", "ducklake"})  # what a lake is called in SQL, whatever else its name is
_UPPER_TO_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def quote_identifier(name: str, *, mark: str = '"') -> str:
    """``name`` as one SQL identifier. Spark wants a backtick as ``mark``.

    Raises ArgumentError for what no engine accepts: an empty name or a NUL character.
    """
    if not name or "\x00" in name:
        raise ArgumentError(f"{name!r} is not a name", hint="use a name without NUL characters")
    return f"{mark}{name.replace(mark, mark * 2)}{mark}"


def quoted(name: str) -> str:
    """``name`` as one part of a name in Spark's SQL and in its column references."""
    return f"`{name.replace('`', '``')}`"


def fold(name: str) -> str:
    """The form in which names are compared. DuckDB folds ASCII letters and no others."""
    return name.translate(_UPPER_TO_LOWER)


def dotted(text: str) -> list[str]:
    """The parts of ``a.b``, each plain or in quotes of either kind; none if it is malformed."""
    parts: list[str] = []
    position = 0
    while True:
        match = _PART.match(text, position)
        if match is None:
            return []
        double, back, plain = match.groups()
        parts.append(
            double.replace('""', '"') if double else back.replace("``", "`") if back else plain
        )
        position = match.end()
        if position == len(text):
            return parts
        if text[position] != ".":
            return []
        position += 1


def called(lakes: Collection[str]) -> str:
    """The names of a lake, for a message."""
    return " or ".join(sorted(set(lakes) - {"ducklake"}))


def nearest(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The known word most like ``word`` (case does not count), or ``None``."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    matches = get_close_matches(word.casefold(), list(by_folded), n=1, cutoff=cutoff)
    return by_folded[matches[0]] if matches else None


def did_you_mean(name: str, candidates: Iterable[str], kind: str) -> str:
    """``candidates`` may be qualified like ``name``: what they share in front says nothing."""
    known = sorted(candidates)
    shared = f"{fold(name.rpartition('.')[0])}."
    by_fold = {fold(candidate).removeprefix(shared): candidate for candidate in known}
    close = get_close_matches(fold(name).removeprefix(shared), by_fold, n=1)
    if close:
        return f"did you mean {by_fold[close[0]]}?"
    return f"the {kind} there are: {listed(known)}" if known else f"there are no {kind} yet"


def listed(names: Sequence[str]) -> str:
    """The first of the names, as a message has room for."""
    return ", ".join(names[:_LISTED]) + (", ..." if len(names) > _LISTED else "")


def names_of(names: str | Iterable[str], argument: str) -> tuple[str, ...]:
    """The names that a caller gave as ``argument``: a text is one name, not its letters.

    Raises ArgumentError for anything that is not a name.
    """
    if isinstance(names, str):
        names = (names,)
    elif not isinstance(names, Iterable):
        raise _not_names(names, argument)
    listed = tuple(names)
    for name in listed:
        if not isinstance(name, str) or not name:
            raise _not_names(name, argument)
    return listed


def _not_names(value: object, argument: str) -> ArgumentError:
    return ArgumentError(
        f"{argument} takes names, and {value!r} is not a name",
        hint=f'write {argument}="a", or {argument}=["a", "b"]',
    )


@dataclass(frozen=True, slots=True)
class TableRef:
    """A table's name within one lake."""

    schema: str
    name: str

    @classmethod
    def parse(cls, text: str, *, default_schema: str = DEFAULT_SCHEMA) -> TableRef:
        """Read ``table`` or ``schema.table``; parts may be quoted with ``"`` or a backtick."""
        parts = dotted(text)
        if len(parts) == 1:
            return cls(default_schema, parts[0])
        if len(parts) == 2:
            return cls(parts[0], parts[1])
        raise ArgumentError(
            f"{text!r} is not the name of a table",
            hint="write table or schema.table, with quotes around parts that hold dots",
        )

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"


#: these take a table first
FEEDS = frozenset({"table_changes", "table_insertions", "table_deletions"})
OF_LAKE = FEEDS | {
    *("current_snapshot", "last_committed_snapshot", "options", "settings", "snapshots"),
    "table_info",
}
#: these take the lake's name first, and the feeds the schema after it
PREFIX = "ducklake_"
NAMES = OF_LAKE | {f"{PREFIX}{name}" for name in (*OF_LAKE, "list_files")}
#: functions of CALL, which a statement may also read from: ``SELECT ... FROM lake.checkpoint()``
MAINTENANCE = frozenset(
    {
        *("add_data_files", "checkpoint", "cleanup_old_files", "delete_orphaned_files"),
        *("expire_snapshots", "flush_inlined_data", "merge_adjacent_files"),
        *("rewrite_data_files", "set_option"),
    }
)
