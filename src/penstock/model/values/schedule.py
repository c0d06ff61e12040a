"""The times when a step runs and is tried again: triggers, freshness, debounce, retries.

A duration (`penstock.settings.quantities`) is a text in these values, as it was written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.model.values.asset import Asset
from penstock.settings.quantities import is_duration, seconds_of

#: the events of ``on`` lines, with their options; `penstock serve` has none of those in `UNSERVED`
OPTIONS: Mapping[str, tuple[str, ...]] = {
    "schedule": ("cron", "tz"),
    "webhook": ("name", "debounce"),
    "email": (),
    "kafka": ("topic", "debounce"),
    "mqtt": (),
    "nats": (),
    "postgres": ("channel", "debounce"),
    "sqs": (),
    "gcp": (),
    "data_upload": ("name", "debounce"),
}
EVENTS = tuple(OPTIONS)
UNSERVED = frozenset({"email", "mqtt", "nats", "sqs", "gcp"})
#: events whose messages have a name, and how the option is called that has it
NAME_OPTIONS = {"webhook": "name", "data_upload": "name", "postgres": "channel", "kafka": "topic"}
#: events whose messages arrive under a name of another system, not by ``POST /events/NAME``
_FOREIGN = frozenset({"postgres", "kafka"})


@dataclass(frozen=True, slots=True)
class Trigger:
    """A line ``on``: ``kind`` is ``asset`` or one of :data:`EVENTS`.

    ``name`` is that of its messages: of a webhook, a channel or a topic. ``cron`` and ``tz`` are
    those of a schedule. Assets and messages may have a debounce.
    """

    kind: str
    asset: Asset | None = None
    debounce: str | None = None
    name: str | None = None
    cron: str | None = None
    tz: str | None = None

    @property
    def bears_partition(self) -> bool:
        """Return whether it takes part in a join by partition (``trigger all``)."""
        return self.asset is not None and "{partition}" in self.asset.path

    @property
    def is_served(self) -> bool:
        """Return whether `penstock serve` notices when it happens."""
        return self.asset.is_made if self.asset is not None else self.kind not in UNSERVED

    @property
    def takes_debounce(self) -> bool:
        """Return whether a debounce can delay it."""
        return self.asset is not None or "debounce" in OPTIONS[self.kind]

    @property
    def options(self) -> tuple[tuple[str, str], ...]:
        """Return its options by the names that its line has for them."""
        named = NAME_OPTIONS.get(self.kind, "name")
        values = ((named, self.name), ("cron", self.cron), ("tz", self.tz))
        return tuple(
            (name, text)
            for name, text in (*values, ("debounce", self.debounce))
            if text is not None
        )

    def message(self, model: str) -> str | None:
        """Return the name under which its messages reach the scheduler.

        Args:
            model: The name of the model: that of messages whose line names none.

        Returns:
            ``NAME`` of ``POST /events/NAME``, ``postgres:CHANNEL`` or ``kafka:TOPIC``; None of a
            trigger that has no messages, or whose name is missing.
        """
        if self.kind in _FOREIGN:
            return self.name and f"{self.kind}:{self.name}"
        return (self.name or model) if self.kind in NAME_OPTIONS else None

    def to_dict(self) -> dict[str, Any]:
        if self.asset is None:
            return {"kind": self.kind, **dict(self.options)}
        found = {"kind": self.kind, "asset_kind": self.asset.kind, "path": self.asset.path}
        return found if self.debounce is None else {**found, "debounce": self.debounce}


CATCHUP_MODES = ("none", "latest", "all")


@dataclass(frozen=True, slots=True)
class CatchupLine:
    """The times of a schedule that fire although nothing served when they were due.

    ``mode`` is one of `CATCHUP_MODES`. Of ``all``, the newest ``limit`` times fire; times older
    than ``window`` never do.
    """

    mode: str
    limit: int | None = None
    window: str | None = None

    def __str__(self) -> str:
        """Return the text that `read_catchup` reads.

        Returns:
            The mode and its options.
        """
        options = (("max", self.limit), ("window", self.window))
        texts = (f"{name}={value}" for name, value in options if value is not None)
        return " ".join((self.mode, *texts))

    def to_dict(self) -> dict[str, Any]:
        """Return what is set, for JSON.

        Returns:
            The mode, and the options that are there.
        """
        options = {"max": self.limit, "window": self.window}
        return {"mode": self.mode} | {name: it for name, it in options.items() if it is not None}


def read_catchup(text: str) -> CatchupLine:
    """Read ``none``, ``latest [window=30d]`` or ``all [max=N] [window=30d]``.

    Args:
        text: What follows the keyword.

    Returns:
        The line.

    Raises:
        ValueError: The text says something else.
    """
    mode, *words = text.split() or [""]
    if mode not in CATCHUP_MODES:
        raise ValueError(f"a mode is one of {', '.join(CATCHUP_MODES)}")
    options: dict[str, str] = {}
    for word in words:
        name, _, value = word.partition("=")
        if name not in _OF_MODES[mode]:
            allowed = " and ".join(f"`{option}=`" for option in _OF_MODES[mode]) or "no option"
            raise ValueError(f"`{word}` means nothing: `{mode}` takes {allowed}")
        if name in options:
            raise ValueError(f"`{name}=` is given twice")
        options[name] = value
    limit, window = options.get("max"), options.get("window")
    if limit is not None and not (limit.isascii() and limit.isdigit() and int(limit)):
        raise ValueError(f"`max={limit}` is not a whole number, 1 or more")
    if window is not None and not (is_duration(window) and seconds_of(window)):
        raise ValueError(f"`window={window}` is not a duration")
    return CatchupLine(mode, None if limit is None else int(limit), window)


_OF_MODES: Mapping[str, tuple[str, ...]] = {
    "none": (),
    "latest": ("window",),
    "all": ("max", "window"),
}


@dataclass(frozen=True, slots=True)
class Schedule:
    """``join`` is how several triggers combine, ``all`` or ``any``; None where nothing says."""

    triggers: tuple[Trigger, ...] = ()
    join: str | None = None
    freshness: str | None = None
    debounce: str | None = None
    catchup: CatchupLine | None = None


@dataclass(frozen=True, slots=True)
class Retry:
    """``count`` >= 1 further attempts, ``delay`` between them as written."""

    count: int
    delay: str | None = None


@dataclass(frozen=True, slots=True)
class Cadence:
    """The times when a model of MODEL (...) is due, and the intervals that it has. All as written.

    ``cron`` None is ``@daily``; ``cron_tz`` shifts when it is due, not the intervals.
    """

    cron: str | None = None
    cron_tz: str | None = None
    interval_unit: str | None = None
    start: str | None = None
    end: str | None = None
    allow_partials: bool = False
