"""Read what stands for the slice of a run in a script: ``@start_ds`` and ``'{partition}'``.

Both are values that are bound and never become SQL (annotations.md, "Partition values").

{start, end, execution} x {dt, dtntz, date, ds, ts, tstz, hour, epoch, millis} (kinds.md, "macro
variables"). They are UTC. An end is the last moment that belongs to the interval, a microsecond
before the next one starts, so that BETWEEN is right with them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import product
from types import MappingProxyType

from penstock.errors import ArgumentError
from penstock.model.time.interval import Interval
from penstock.sql.tokens import NAME, STRING, Token

TOKEN = "{partition}"

Problem = tuple[str, str]  # what is wrong, and what would be right

BARE = (f"{TOKEN} stands without quotes", f"write '{TOKEN}'")
INSIDE = (
    f"{TOKEN} stands inside a longer text, where it is not replaced",
    f"concatenate: 'before' || '{TOKEN}' || 'after'",
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MARK = "penstock_at_"  # of the arguments that stand for them in a query


@dataclass(frozen=True, slots=True)
class _Unit:
    """``type`` is the argument's; ``value`` what it is of a moment."""

    type: str
    value: Callable[[datetime], object]


_UNITS: Mapping[str, _Unit] = {
    "dt": _Unit("timestamptz", lambda at: at),
    "dtntz": _Unit("timestamp", lambda at: at.replace(tzinfo=None)),
    "date": _Unit("date", lambda at: at.date()),
    "ds": _Unit("text", lambda at: at.date().isoformat()),
    "ts": _Unit("text", lambda at: at.replace(tzinfo=None).isoformat(sep=" ")),
    "tstz": _Unit("text", lambda at: at.isoformat(sep=" ")),
    "hour": _Unit("int", lambda at: at.hour),
    "epoch": _Unit("double", lambda at: (at - _EPOCH) / timedelta(seconds=1)),
    "millis": _Unit("bigint", lambda at: (at - _EPOCH) // timedelta(milliseconds=1)),
}
_OF_RUN = "execution"
TIMES = frozenset(f"{at}_{unit}" for at, unit in product(("start", "end", _OF_RUN), _UNITS))
#: the types of the arguments that stand for macros, by their names
TYPES: Mapping[str, str] = MappingProxyType(
    {f"{_MARK}{name}": _UNITS[name.partition("_")[2]].type for name in sorted(TIMES)}
)


def argument_of(macro: str) -> str:
    """The name of the argument that stands for ``@macro`` in a query."""
    return f"{_MARK}{macro}"


def as_written(name: str) -> str:
    """A name as the script has it: ``@start_ds`` of the argument that stands for that."""
    return f"@{name.removeprefix(_MARK)}" if name in TYPES else name


def is_of_interval(argument: str) -> bool:
    """Return whether an argument stands for a bound of the run's interval."""
    return argument in TYPES and not argument.startswith(f"{_MARK}{_OF_RUN}")


def value_of(argument: str, interval: Interval | None, now: datetime | None) -> object:
    """The value of an argument of `TYPES`. Raises ArgumentError where the run has none."""
    macro = argument.removeprefix(_MARK)
    at, _, unit = macro.partition("_")
    moments = {_OF_RUN: now}
    if interval is not None:
        moments |= {"start": interval.start, "end": interval.last}
    moment = moments.get(at)
    if moment is None:
        raise ArgumentError(
            f"@{macro} has no value: the run is about no interval of time",
            hint="it has one in a model by time, or in one that is partitioned by time",
        )
    return _UNITS[unit].value(moment.astimezone(UTC))


def is_bare(tokens: Sequence[Token], index: int) -> bool:
    """Tell whether a brace begins the token without quotes.

    Args:
        tokens: The words of a statement.
        index: The place of the brace.

    Returns:
        Whether it does.
    """
    following = [token.text for token in tokens[index + 1 : index + 3]]
    return following == ["partition", "}"]


def misplaced(tokens: Sequence[Token], index: int, *, partitioned: bool) -> Problem | None:
    """Find what is wrong with a token whose text contains ``{partition}``.

    Args:
        tokens: The words of a statement.
        index: The place of the token.
        partitioned: Whether the model is partitioned.

    Returns:
        What is wrong, and what would be right; None where it is right.
    """
    token = tokens[index]
    if token.kind == NAME and token.value == TOKEN:
        return f"{TOKEN} stands in quotes that make it a name", f"write '{TOKEN}'"
    if token.kind == NAME or token.value != TOKEN:
        return INSIDE
    if not partitioned:
        return "the script is not partitioned", "add `-- partitioned daily` to the header"
    neighbours = (*tokens[max(index - 1, 0) : index], *tokens[index + 1 : index + 2])
    if any(neighbour.kind == STRING for neighbour in neighbours):
        return f"'{TOKEN}' stands next to another text, where it is not replaced", INSIDE[1]
    return None
