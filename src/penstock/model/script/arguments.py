"""Arguments of a script: ``-- $name (type) [= default]`` lines, and their values in a run.

A partitioned script has ``$partition``, ``$partition_start`` and ``$partition_end`` of its slice
without declaring them (seeds/partitioned-pipelines.md; the bounds are Penstock's own).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time
from pathlib import Path

from penstock.errors import ArgumentError, Diagnostic, Location
from penstock.model.script.argument_types import NAMES, TYPES, WRONG, ArgumentType, Wrong, type_of
from penstock.model.time.interval import Interval
from penstock.model.time.partition import TIME_KINDS, PartitionSpec, bounds
from penstock.model.time.time_macros import TYPES as TYPES_OF_TIMES
from penstock.model.time.time_macros import value_of
from penstock.sql.identifiers import nearest

PARTITION, PARTITION_START, PARTITION_END = "partition", "partition_start", "partition_end"
#: what a run's slice says, and the types that it has unless the script declares others
OF_SLICE = {PARTITION: "text", PARTITION_START: "timestamptz", PARTITION_END: "timestamptz"}
_DECLARED = re.compile(
    r"^\s*(?:--|//|#)\s*\$(?P<name>\w+)\s*"
    r"\(\s*(?P<type>\w+(?:\s*\([\d\s,]*\))?(?:\s*\[\s*\])*)\s*\)\s*(?:=\s*(?P<default>.*?))?\s*$"
)
_NEARLY = re.compile(r"^\s*(?:--|//|#)\s*\$(?P<name>\w+)\s*[(:]?\s*(?P<type>\w+)?.*$")


@dataclass(frozen=True, slots=True)
class Argument:
    """``type`` is the name of an `ArgumentType`: ``int``, ``decimal(10,2)``, ``text[]``.

    ``default`` is text as written, ``None`` when there is none. ``automatic`` are those of the
    slice that a partitioned script has without declaring them.
    """

    name: str
    type: str
    default: str | None = None
    location: Location | None = None
    automatic: bool = False

    @property
    def kind(self) -> ArgumentType:
        return type_of(self.type) or TYPES["text"]


def declared(
    text: str, path: Path, *, partition: PartitionSpec | None, by_time: bool = False
) -> tuple[tuple[Argument, ...], tuple[Diagnostic, ...]]:
    """Arguments that comment lines of ``text`` declare, in order, and what is wrong with them.

    A partitioned script has those of `OF_SLICE` unless it declares them itself; a dynamic
    partition has no bounds, and a model ``by_time`` has nothing else.
    """
    found: dict[str, Argument] = {}
    findings: list[Diagnostic] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if "$" in line:
            _read_line(line, Location(path, number, line.find("$") + 1), found, findings)
    names = () if partition is None else OF_SLICE if partition.pattern else (PARTITION,)
    for name in (*names, *(_BOUNDS if by_time else ())):
        found.setdefault(name, Argument(name, OF_SLICE[name], automatic=True))
    return tuple(found.values()), tuple(findings)


def _read_line(
    line: str, where: Location, found: dict[str, Argument], findings: list[Diagnostic]
) -> None:
    match = _DECLARED.match(line)
    if match is None:
        nearly = _NEARLY.match(line)
        if nearly and (nearly["type"] or "").lower() in NAMES:
            hint = f"write `-- ${nearly['name']} ({nearly['type']})`"
            findings.append(_wrong("this declares no argument as it is written", where, hint))
            name = nearly["name"]
            found.setdefault(name, Argument(name, "text", None, where))
        return
    name, kind = match["name"], type_of(match["type"])
    if kind is None:
        guess = nearest(match["type"], NAMES) or "text"
        hint = f"write `-- ${name} ({guess})`; the types are {', '.join(TYPES)}, and lists: text[]"
        findings.append(_wrong(f"${name} has the unknown type {match['type']!r}", where, hint))
        found.setdefault(name, Argument(name, "text", None, where))  # its uses are no fault
        return
    if name in found:
        findings.append(_wrong(f"${name} is declared twice", where, "keep one declaration"))
        return
    argument = Argument(name, kind.name, match["default"], where)
    try:
        if name in _BOUNDS and kind.name not in _OF_BOUNDS:
            raise ArgumentError(
                f"${name} is a time, and {kind.name} is not a type of times",
                hint=f"declare it as {', '.join(_OF_BOUNDS)}, or take the line away",
            )
        default_of(argument)
    except ArgumentError as error:
        findings.append(_wrong(error.message, where, error.hint))
    found[name] = argument  # declared, if not well: its uses are not to be reported too


def _wrong(message: str, where: Location, hint: str | None) -> Diagnostic:
    return Diagnostic("error", message, where, hint, "argument")


def convert(argument: Argument, text: str) -> object:
    """``text`` as a value of the argument's type. Raises :class:`ArgumentError`."""
    try:
        return argument.kind.read(text)
    except WRONG as error:
        why = f": {error}" if isinstance(error, Wrong) and str(error) else ""
        raise ArgumentError(
            f"argument {argument.name}: {text!r} is not a valid {argument.type}{why}",
            hint=f"write it like {argument.name}={argument.kind.example}",
            data={"argument": argument.name, "value": text},
        ) from None


def default_of(argument: Argument) -> object:
    """The default as a value: quotes are taken off a text, ``null`` is ``None``."""
    text = argument.default or ""
    if text.lower() == "null":
        return None
    if len(text) >= 2 and text[0] == text[-1] == "'":
        text = text[1:-1].replace("''", "'")
    return convert(argument, text) if argument.default is not None else None


def text_of(argument: Argument, value: object) -> str | None:
    """A value of JSON as the text of an argument; None for ``null``, which is NULL."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool | int | float) or argument.kind.takes_json:
        return json.dumps(value, ensure_ascii=False)
    raise ArgumentError(
        f"argument {argument.name} ({argument.type}) is a "
        f"{'list' if isinstance(value, list) else 'object'} in the payload",
        hint="send a text, a number, true, false or null",
        location=argument.location,
    )


def bind(
    arguments: Sequence[Argument],
    texts: Mapping[str, str | None],
    *,
    partition: str | None = None,
    spec: PartitionSpec | None = None,
    interval: Interval | None = None,
    now: datetime | None = None,
) -> dict[str, object]:
    """A value for every argument: that of ``texts``, else of the run's slice, else its default.

    The slice is the ``partition`` of ``spec``, or an ``interval``; ``now`` is the moment that the
    run is about (`time_macros`). A text that is None is NULL. Names that no argument
    has are left to the caller: they may be another script's (:func:`unknown`). Raises
    :class:`ArgumentError` naming the argument.
    """
    known = {PARTITION: partition} if partition is not None else {}
    texts = {**known, **texts}
    span = None if interval is None else (interval.start, interval.end)
    if partition is not None and spec is not None and spec.kind in TIME_KINDS:
        span = bounds(spec, partition)
        interval = Interval(*(moment.astimezone(UTC) for moment in span))
    found: dict[str, object] = {}
    for argument in arguments:
        if argument.name in TYPES_OF_TIMES:
            found[argument.name] = value_of(argument.name, interval, now)
        elif argument.name in _BOUNDS and (span is not None or spec is not None):
            found[argument.name] = _of_bound(argument, span)
        else:
            found[argument.name] = _value(argument, texts)
    return found


def _of_bound(argument: Argument, span: tuple[datetime, datetime] | None) -> object:
    """A bound of the slice as the argument's type has it: instants, or wall time in its zone."""
    if span is None:
        raise ArgumentError(
            f"${argument.name} has no value: a dynamic partition has no bounds in time",
            hint="use $partition, or another kind of partition",
            location=argument.location,
        )
    start, end = span
    moment = start if argument.name == PARTITION_START else end
    if argument.type == "date" and moment.time() != time():
        raise ArgumentError(
            f"${argument.name} is {moment.isoformat()}, which is not a date",
            hint="declare it as timestamp or timestamptz",
            location=argument.location,
        )
    return _OF_BOUNDS[argument.type](moment)


_BOUNDS = (PARTITION_START, PARTITION_END)
_OF_BOUNDS: Mapping[str, Callable[[datetime], object]] = {
    "timestamptz": lambda moment: moment,
    "timestamp": lambda moment: moment.replace(tzinfo=None),
    "date": lambda moment: moment.date(),
    "text": lambda moment: moment.isoformat(),
}


def unknown(args: Iterable[str], names: Collection[str]) -> None:
    """Raise :class:`ArgumentError` for the first of ``args`` that is not among ``names``."""
    for name in args:
        if name not in names:
            guess = nearest(name, names)
            hint = f"did you mean {guess}?" if guess else f"declared: {', '.join(names) or 'none'}"
            raise ArgumentError(f"no script has an argument {name!r}", hint=hint)


def _value(argument: Argument, texts: Mapping[str, str | None]) -> object:
    if argument.name in texts:
        text = texts[argument.name]
        return None if text is None else convert(argument, text)
    if argument.default is not None or argument.automatic:
        return default_of(argument)
    of_slice = argument.name in OF_SLICE  # which come from --partition, never from --arg
    raise ArgumentError(
        f"argument {argument.name} ({argument.type}) has no value",
        hint="a script has it by a line `-- partitioned daily` in its header"
        if of_slice
        else f"give it: --arg {argument.name}=VALUE",
        location=argument.location,
        data={"argument": argument.name},
    )
