"""The job of a step, as JSON: the process that runs it reads this from the run.

This, and all that a step's process loads, imports no Spark and no catalog.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Self
from uuid import UUID

#: how the value of an argument is made of its text (`penstock.model.script.argument_types`)
_READ: Mapping[str, Callable[[Any], Any]] = {
    "date": date.fromisoformat,
    "timestamp": datetime.fromisoformat,
    "timestamptz": datetime.fromisoformat,
    "time": time.fromisoformat,
    "decimal": Decimal,
    "uuid": UUID,
    "json": json.loads,
    "blob": bytes.fromhex,
}
_WRITTEN: tuple[tuple[type | tuple[type, ...], Callable[[Any], Any]], ...] = (
    ((date, time), lambda value: value.isoformat()),
    ((Decimal, UUID), str),
    (bytes, lambda value: value.hex()),
)


@dataclass(frozen=True, slots=True)
class Rows:
    """A parameter that gets the rows of ``table`` of ``lake`` in a ``form`` (`frames.FORMS`)."""

    form: str
    lake: str
    table: str


@dataclass(frozen=True, slots=True)
class Job:
    """``arguments`` are types and values by parameter; ``given`` are other values, as JSON has
    them; ``sessions`` are parameters that get the Spark session. ``folder`` is for rows and files
    on their way; ``lake`` is that of ``penstock.lake()``. ``remote`` is where a step joins the
    run's session over Spark Connect.
    """

    path: str
    root: str
    folder: str
    lake: str
    partition: str | None = None
    arguments: Mapping[str, tuple[str, Any]] = field(default_factory=dict)
    given: Mapping[str, Any] = field(default_factory=dict)
    rows: Mapping[str, Rows] = field(default_factory=dict)
    sessions: tuple[str, ...] = ()
    remote: str | None = None

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        said = json.loads(text)
        rows = {name: Rows(**each) for name, each in said["rows"].items()}
        arguments = {name: tuple(each) for name, each in said["arguments"].items()}
        return cls(
            **{**said, "rows": rows, "arguments": arguments, "sessions": tuple(said["sessions"])}
        )

    @property
    def values(self) -> dict[str, Any]:
        """The arguments as Python has them, and what is given besides."""
        found = {name: _value(kind, value) for name, (kind, value) in self.arguments.items()}
        return {**found, **self.given}


def to_line(message: Mapping[str, Any]) -> str:
    """A message between a step and its run: one line of JSON."""
    return json.dumps(message, default=_tagged) + "\n"


def of_line(line: str) -> Any:
    return json.loads(line, object_hook=_untagged)


def _tagged(value: object) -> object:
    """Dates, times, decimals, UUIDs and bytes, which JSON does not have."""
    if isinstance(value, datetime):
        return {_TAG: ["timestamptz", value.isoformat()]}
    kind = next((name for name, of in _KINDS.items() if isinstance(value, of)), None)
    return str(value) if kind is None else {_TAG: [kind, written(value)]}


def _untagged(said: dict[str, Any]) -> Any:
    return _value(*said[_TAG]) if set(said) == {_TAG} else said


_TAG = "$penstock"
_KINDS = {"date": date, "time": time, "decimal": Decimal, "uuid": UUID, "blob": bytes}


def written(value: object) -> object:
    """A value of an argument as JSON has it."""
    if isinstance(value, list):
        return [written(item) for item in value]
    write = next((write for kind, write in _WRITTEN if isinstance(value, kind)), None)
    return value if write is None else write(value)


def _value(kind: str, value: Any) -> Any:
    if value is None:
        return None
    if kind.endswith("[]"):
        return [_value(kind.removesuffix("[]"), item) for item in value]
    read = _READ.get(kind)
    return value if read is None else read(value)
