"""Arguments of a script: ``-- $name (type) [= default]`` lines, and their values in a run.

A partitioned script has ``$partition``, ``$partition_start`` and ``$partition_end`` of its slice
without declaring them (seeds/partitioned-pipelines.md; the bounds are Penstock's own).

The types of arguments: how each is read from text, and what a query makes of its value.

A value goes to Spark as what its driver takes, and the query casts it where that is not yet the
type itself. Types that the lake has as texts (``time``, ``uuid``, ``json``) are bound as the text
that DuckDB writes, so that they compare equal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from pathlib import Path
from uuid import UUID

from penstock.errors import ArgumentError, Diagnostic, Location
from penstock.model.time.interval import Interval
from penstock.model.time.partition import TIME_KINDS, PartitionSpec, bounds
from penstock.model.time.time_macros import TYPES as TYPES_OF_TIMES
from penstock.model.time.time_macros import value_of
from penstock.sql.identifiers import nearest

Read = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class ArgumentType:
    """``read`` makes a value of text and raises `Wrong`; ``example`` is such a text.

    ``spark`` and ``duckdb`` are what the value is cast to in a query; ``None`` where it is bound
    as what it is. ``name`` is as it is shown (``decimal(10,2)``, ``int[]``).
    """

    name: str
    read: Read
    example: str
    spark: str | None = None
    duckdb: str | None = None
    element: ArgumentType | None = None

    @property
    def takes_json(self) -> bool:
        """Return whether a list or object of a payload may be a value."""
        return self.element is not None or self.name in {"json", "s3object"}


class Wrong(ValueError):
    """Text that is not a value of the type; the message may say why."""


def type_of(written: str) -> ArgumentType | None:
    """The type that a declaration names, in any case and by any of its names."""
    plain = written.strip().lower()
    if match := _LIST.fullmatch(plain):
        element = type_of(match[1])
        return None if element is None or element.name not in _IN_LISTS else _list_of(element)
    match = _DECIMAL.fullmatch(plain)
    if match:
        return _decimal_of(int(match[1]), int(match[2] or 0))
    return TYPES.get(_ALIASES.get(plain, plain))


def _integer(bits: int) -> Read:
    def read(text: str) -> object:
        value = int(text)
        if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
            raise Wrong
        return value

    return read


def _boolean(text: str) -> object:
    return {"true": True, "false": False, "1": True, "0": False}[text.strip().lower()]


def _decimal(text: str) -> object:
    value = Decimal(text.strip())
    if not value.is_finite():
        raise Wrong
    if sum(_digits(value)) > _MOST_DIGITS:
        raise Wrong(f"a decimal has at most {_MOST_DIGITS} digits")
    return value


def _digits(value: Decimal) -> tuple[int, int]:
    """Return how many there are before the point, and behind it without zeros at the end."""
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int), "it is finite"
    kept = len("".join(map(str, digits)).rstrip("0"))
    exponent += len(digits) - kept
    return (max(kept + exponent, 0), max(-exponent, 0)) if kept else (0, 0)


def _decimal_of(precision: int, scale: int) -> ArgumentType | None:
    """``decimal(precision,scale)``; None where no engine has it. A value is never rounded."""
    if not 1 <= precision <= _MOST_DIGITS or scale > precision:
        return None

    def read(text: str) -> object:
        value = _decimal(text)
        assert isinstance(value, Decimal), "it reads one"
        before, behind = _digits(value)
        if behind > scale:
            raise Wrong(f"it has {behind} digits behind the point, and the type {scale}")
        if before > precision - scale:
            raise Wrong(
                f"it has {before} digits before the point, and the type {precision - scale}"
            )
        return value

    name, example = f"decimal({precision},{scale})", f"{0:.{scale}f}"
    return ArgumentType(name, read, example, name.upper(), name.upper())


def _naive(text: str) -> object:
    value = datetime.fromisoformat(text.strip())
    if value.tzinfo is not None:
        raise Wrong("it has a time zone")
    return value


def _aware(text: str) -> object:
    value = datetime.fromisoformat(text.strip())
    if value.tzinfo is None:
        raise Wrong("it has no time zone")
    return value


def _time(text: str) -> object:
    """``10:00:00`` or ``10:00:00.5``, as DuckDB writes it."""
    value = time.fromisoformat(text.strip())
    if value.tzinfo is not None:
        raise Wrong("it has a time zone")
    written = value.isoformat()
    return written.rstrip("0") if "." in written else written


def _json(text: str) -> object:
    json.loads(text, parse_constant=_no_constant)
    return text


def _no_constant(name: str) -> object:
    raise Wrong(f"JSON has no {name}")


def _blob(text: str) -> object:
    """Hexadecimal digits, with or without ``0x`` before or ``X'...'`` around them."""
    match = _HEX.fullmatch(text.strip())
    if match is None:
        raise Wrong("a blob is written in hexadecimal digits")
    return bytes.fromhex(match[1] or match[2] or "")


def _interval(text: str) -> object:
    """Numbers with units in words, which Spark and DuckDB read alike."""
    parts = _INTERVAL_PART.findall(text)
    if not parts or _INTERVAL_PART.sub("", text).strip():
        raise Wrong("an interval is written in numbers and units")
    return " ".join(f"{number} {unit.lower()}" for number, unit in parts)


def _s3object(text: str) -> object:
    """``s3://bucket/key``, or the object ``{"s3": key, "storage": bucket}``, as that URI."""
    uri = text.strip()
    if uri.startswith("{"):
        found = json.loads(uri)
        bucket, key = found.get("storage"), found.get("s3")
        if not isinstance(bucket, str) or not isinstance(key, str):
            raise Wrong('the object has a key "s3" and a bucket "storage", both texts')
        uri = f"s3://{bucket}/{key.lstrip('/')}"
    if not _S3_OBJECT.fullmatch(uri):
        raise Wrong("an object in S3 has a bucket and a key, without patterns")
    return uri


def _list_of(element: ArgumentType) -> ArgumentType:
    def read(text: str) -> object:
        found = json.loads(text, parse_int=str, parse_float=str, parse_constant=_no_constant)
        if not isinstance(found, list):
            raise Wrong("a list is written in brackets, as JSON has it")
        return [_item(element, item) for item in found]

    shown = element.example if element.name in _BARE_IN_JSON else json.dumps(element.example)
    spark, duckdb = _IN_LISTS[element.name]
    return ArgumentType(
        f"{element.name}[]", read, f"[{shown}]", f"ARRAY<{spark}>", f"{duckdb}[]", element
    )


def _item(element: ArgumentType, item: object) -> object:
    """Times go as text, as those outside lists do; the query casts them."""
    if isinstance(item, bool):
        item = str(item).lower()
    if not isinstance(item, str):
        raise Wrong("an element is null, a list or an object")
    value = element.read(item)
    return value.isoformat(sep=" ") if isinstance(value, datetime) else value


_MOST_DIGITS = 38
_LIST = re.compile(r"(.*[^\s\]])\s*\[\s*\]")
_DECIMAL = re.compile(r"(?:decimal|numeric)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")
_HEX = re.compile(r"(?:0x)?((?:[0-9a-fA-F]{2})*)|[xX]'((?:[0-9a-fA-F]{2})*)'")
_INTERVAL_PART = re.compile(
    r"([+-]?\d+(?:\.\d{1,6}(?=\s*second))?)\s*"
    r"((?:year|month|week|day|hour|minute|second|millisecond|microsecond)s?)\b",
    re.IGNORECASE,
)
_S3_OBJECT = re.compile(r"s3://[^/*?\[\]{}\s]+/[^*?\[\]{}\x00-\x1f\x7f]+")

TYPES: Mapping[str, ArgumentType] = {
    kind.name: kind
    for kind in (
        ArgumentType("text", str, "any text"),
        ArgumentType("int", _integer(32), "42"),
        ArgumentType("bigint", _integer(64), "42", "BIGINT", "BIGINT"),
        ArgumentType("double", float, "1.5"),
        ArgumentType("decimal", _decimal, "1.50"),
        ArgumentType("boolean", _boolean, "true"),
        ArgumentType("date", lambda text: date.fromisoformat(text.strip()), "2026-05-16"),
        ArgumentType("timestamp", _naive, "2026-05-16T09:30:00", "TIMESTAMP_NTZ", "TIMESTAMP"),
        ArgumentType(
            "timestamptz", _aware, "2026-05-16T09:30:00+00:00", "TIMESTAMP_LTZ", "TIMESTAMPTZ"
        ),
        ArgumentType("time", _time, "09:30:00"),
        ArgumentType("interval", _interval, "1 day 12 hours", "INTERVAL", "INTERVAL"),
        ArgumentType("uuid", lambda text: str(UUID(text)), "550e8400-e29b-41d4-a716-446655440000"),
        ArgumentType("json", _json, '{"a": 1}'),
        ArgumentType("blob", _blob, "cafe01"),
        ArgumentType("s3object", _s3object, "s3://bucket/path/file.csv"),
    )
}
_ALIASES = {
    **dict.fromkeys(("varchar", "string", "char"), "text"),
    **dict.fromkeys(("integer", "int4"), "int"),
    **dict.fromkeys(("int8", "long"), "bigint"),
    **dict.fromkeys(("float", "real"), "double"),
    **dict.fromkeys(("bytea", "binary"), "blob"),
    "numeric": "decimal",
    "bool": "boolean",
    "datetime": "timestamp",
}
#: what the elements of a list may be: their types in Spark and in DuckDB
_IN_LISTS: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("text", "time", "uuid", "s3object"), ("STRING", "VARCHAR")),
    "int": ("INT", "INTEGER"),
    "bigint": ("BIGINT", "BIGINT"),
    "double": ("DOUBLE", "DOUBLE"),
    "boolean": ("BOOLEAN", "BOOLEAN"),
    "date": ("DATE", "DATE"),
    "timestamp": ("TIMESTAMP_NTZ", "TIMESTAMP"),
    "timestamptz": ("TIMESTAMP_LTZ", "TIMESTAMPTZ"),
}
_BARE_IN_JSON = ("int", "bigint", "double", "boolean")
#: every name that a declaration may have
NAMES = (*TYPES, *_ALIASES)
#: what reading a text may raise where it is not a value of the type
WRONG = (ValueError, KeyError, AttributeError, InvalidOperation, RecursionError)


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
