"""The events of a run, as frozen values, and the protocol of who listens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Protocol

from penstock.errors import PenstockError

SCHEMA_VERSION = 1
"""The version of what commands print as JSON and logs hold, as docs/json.md describes it: raised
where a field goes or means something else, not where one is added.
"""


@dataclass(frozen=True, slots=True)
class RunStarted:
    """``slices``: how many of each step are to be made; empty where each has one."""

    run_id: str
    steps: tuple[str, ...]
    partition: str | None = None
    slices: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SparkStarting:
    """A Spark session is being started; it takes seconds. ``master`` is that of a cluster."""

    master: str | None = None


@dataclass(frozen=True, slots=True)
class SparkWaiting:
    """The session has not started after ``seconds``; ``state`` says where that stands."""

    master: str
    seconds: float
    state: str


@dataclass(frozen=True, slots=True)
class SparkStarted:
    """The session is there; starting it took ``seconds``.

    On this machine it may fill a heap of so many bytes, and the run takes ``memory`` bytes in all,
    Python too: those of a ``container``, its share of a ``machine``, or what a ``setting`` says.
    """

    seconds: float
    heap: int | None = None
    memory: int | None = None
    memory_of: str | None = None


@dataclass(frozen=True, slots=True)
class StepStarted:
    """``slice``: what is made now, of a step of many slices one batch after the other."""

    step: str
    slice: str | None


@dataclass(frozen=True, slots=True)
class StepProgress:
    """``phase`` is ``querying``, ``writing``, ``testing`` or ``publishing``."""

    step: str
    phase: str


@dataclass(frozen=True, slots=True)
class StepQuery:
    """The query of a step as it runs; ``values`` are those of its markers. For logs only."""

    step: str
    slice: str | None
    sql: str
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StepOutput:
    """A line that the code of a step printed. ``stream`` is ``stdout`` or ``stderr``."""

    step: str
    line: str
    stream: str = "stdout"


@dataclass(frozen=True, slots=True)
class CheckFinished:
    step: str
    check: str
    passed: bool
    failures: int
    severity: str = "error"  # a failed test of "warn" stops nothing


@dataclass(frozen=True, slots=True)
class StepFinished:
    """A batch of ``slices`` has ended; ``slice`` says which.

    ``state``: ``done``, ``unchanged``, ``failed``, ``skipped``, ``waiting`` or ``cancelled``; of a
    batch the worst. ``failed``: how many of the slices did. ``states``: how many ended in each
    state, intervals counted by their units of time. ``errors`` are those of slices, for logs.
    """

    step: str
    state: str
    seconds: float
    rows: int | None = None
    snapshot_id: int | None = None
    reason: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    slice: str | None = None
    slices: int = 1
    failed: int = 0
    states: Mapping[str, int] = field(default_factory=dict)
    errors: tuple[tuple[str | None, PenstockError], ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Notice:
    """Something worth knowing that stops nothing."""

    message: str
    step: str | None = None


@dataclass(frozen=True, slots=True)
class RunProgress:
    """The progress of a run of many slices, sent every few seconds.

    ``left`` are the seconds that the rest will take, as the slices so far took; None at first.
    """

    ended: int
    slices: int
    left: float | None = None


@dataclass(frozen=True, slots=True)
class RunFinished:
    """``states``: how many slices of all steps ended in each state. ``result`` is the RunResult."""

    run_id: str
    state: str  # done, failed, waiting or cancelled
    seconds: float
    states: Mapping[str, int] = field(default_factory=dict)
    result: Any = field(default=None, compare=False, repr=False)


Event = (
    RunStarted
    | SparkStarting
    | SparkWaiting
    | SparkStarted
    | StepStarted
    | StepProgress
    | StepQuery
    | StepOutput
    | CheckFinished
    | StepFinished
    | Notice
    | RunProgress
    | RunFinished
)


def values_of(event: Event) -> dict[str, Any]:
    """Return the fields of an event as logs and JSON have them, without those for sinks alone.

    Args:
        event: The event.

    Returns:
        The values by name.
    """
    return {part.name: getattr(event, part.name) for part in fields(event) if part.repr}


class EventSink(Protocol):
    """Called from the threads of a run; must not raise."""

    def __call__(self, event: Event, /) -> None: ...


def ignore(event: Event) -> None:
    """The sink of a caller that does not listen."""
