"""Keep every version of a table's rows (slowly changing dimensions, type 2).

One strategy for two forms: ``materialize ... history`` compares columns at the time of the run and
keeps ``is_current`` and a view of it (seeds/materialization.md); the kinds SCD_TYPE_2 go by time or
by column (kinds.md). A version is valid in ``[valid_from, valid_to)``, an open one has no
``valid_to`` (history.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from penstock.lazy import exp
from penstock.model.values.asset import TableName
from penstock.sql.dialect import parse
from penstock.sql.identifiers import fold
from penstock.sql.text import Unreadable
from penstock.sql.types import spark_type

IS_CURRENT = "is_current"
SUFFIX = "_current"
#: the types of Spark's SQL that the validity columns may have
TIME_TYPES = ("TIMESTAMP_NTZ", "TIMESTAMP", "DATE")
TIME_TYPE = "TIMESTAMP_NTZ"

#: percent of the keys that one load may close; not asked of up to so many keys
MAX_CLOSED, FEW_CLOSED = 50, 10

Start = Literal["epoch", "updated_at", "execution"]


@dataclass(frozen=True, slots=True)
class History:
    """``by_time``: a newer ``updated_at`` opens a version, else a change in one of the columns
    ``track`` (all but the keys where it is empty) does.

    ``start`` is when a key of the first load begins: 1970-01-01, its ``updated_at`` or the run's
    time. ``closes``: a key that the load lacks is closed; one load closes at most ``max_closed``
    percent of the keys. ``time_type`` is that of the validity columns in Spark's SQL;
    ``is_current`` is a third of them, which comes with a view.
    """

    by_time: bool = False
    updated_at: str | None = None
    track: tuple[str, ...] = ()
    closes: bool = False
    max_closed: int = MAX_CLOSED
    start: Start = "execution"
    valid_from: str = "valid_from"
    valid_to: str = "valid_to"
    is_current: str | None = None
    time_type: str = TIME_TYPE

    @property
    def managed(self) -> tuple[str, ...]:
        """The columns that the engine writes, in the order of the table."""
        last = () if self.is_current is None else (self.is_current,)
        return self.valid_from, self.valid_to, *last

    @property
    def limit(self) -> int | None:
        """The percentage of keys that a load may close, where it is not the default."""
        return self.max_closed if self.closes and self.max_closed != MAX_CLOSED else None

    @property
    def kind(self) -> str:
        """The kind of MODEL that it is, the view aside."""
        return "SCD_TYPE_2_BY_TIME" if self.by_time else "SCD_TYPE_2_BY_COLUMN"

    @property
    def texts(self) -> tuple[object, ...]:
        """All that it says, for the definition's hash."""
        names = (self.valid_from, self.valid_to, self.is_current, self.time_type)
        return self.by_time, self.updated_at, list(self.track), self.closes, self.start, *names


def annotated(track: tuple[str, ...], *, closes: bool, max_closed: int | None = None) -> History:
    """``materialize ... history [track=...] [deletes=close [max_closed=...]]``."""
    most = MAX_CLOSED if max_closed is None else max_closed
    return History(track=track, closes=closes, max_closed=most, is_current=IS_CURRENT)


def current_view(target: TableName, history: History | None) -> TableName | None:
    """The view of the current versions, where the table has one."""
    if history is None or history.is_current is None:
        return None
    return replace(target, table=f"{target.table}{SUFFIX}")


def read_time_type(text: str, dialect: str) -> str:
    """``time_data_type`` in Spark's SQL. Raises ValueError.

    ``TIMESTAMP`` is one in UTC without a zone in whatever dialect, as the documents have it.
    """
    kind = TIME_TYPE if text.strip().upper() == "TIMESTAMP" else spark_type(text, dialect)
    kind = "TIMESTAMP" if kind == "TIMESTAMP_LTZ" else kind
    if kind not in TIME_TYPES:
        raise ValueError(f"`{text}` is not a type of moments: write TIMESTAMP, TIMESTAMPTZ or DATE")
    return kind


def clashes(history: History, keys: tuple[str, ...]) -> Iterator[str]:
    """Yield what is wrong with the names of a declaration."""
    managed = [fold(name) for name in history.managed]
    if len(set(managed)) < len(managed):
        yield f"`{history.valid_from}` is the name of two validity columns"
    said = {"key": keys, "tracked column": history.track}
    said["updated_at_name"] = (history.updated_at,) if history.updated_at else ()
    for what, names in said.items():
        for name in names:
            if fold(name) in managed:
                yield f"the {what} {name} has the name of a validity column, which is reserved"


def taken_names(history: History, text: str, dialect: str) -> Iterator[tuple[str, int]]:
    """Names of validity columns that a SELECT gives to columns of its own, each with its place in
    ``text``; what it selects by ``*`` is seen when it runs."""
    try:
        (tree,) = parse(text, dialect)
    except (Unreadable, ValueError):
        return
    managed = set(map(fold, history.managed))
    first = tree.find(exp.Select)
    for column in first.expressions if first is not None else ():
        name = column.args.get("alias") if isinstance(column, exp.Alias) else column.this
        if isinstance(name, exp.Identifier) and fold(name.name) in managed:
            yield name.name, name.meta.get("start", 0)
