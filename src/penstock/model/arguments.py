"""Arguments of a script: ``-- $name (type) [= default]`` lines and typed values."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path

from penstock.errors import ArgumentError, Diagnostic, Location
from penstock.sql.identifiers import nearest

PARTITION = "partition"
_DECLARED = re.compile(
    r"^\s*(?:--|//|#)\s*\$(?P<name>\w+)\s*"
    r"\(\s*(?P<type>\w+(?:\s*\([\d\s,]*\))?)\s*\)\s*(?:=\s*(?P<default>.*?))?\s*$"
)
_NEARLY = re.compile(r"^\s*(?:--|//|#)\s*\$(?P<name>\w+)\s*[(:]?\s*(?P<type>\w+)?.*$")
_DECIMAL = re.compile(r"(?:decimal|numeric)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")


@dataclass(frozen=True, slots=True)
class Argument:
    """``type`` is a key of :data:`TYPES` (``decimal`` may carry precision and scale).

    ``default`` is text as written, ``None`` when there is none. ``automatic`` is the
    ``$partition`` that a partitioned script has without declaring it.
    """

    name: str
    type: str
    default: str | None = None
    location: Location | None = None
    automatic: bool = False


def _integer(bits: int) -> Callable[[str], object]:
    def convert(text: str) -> object:
        value = int(text)
        if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
            raise ValueError
        return value

    return convert


def _boolean(text: str) -> object:
    return {"true": True, "false": False, "1": True, "0": False}[text.strip().lower()]


def _decimal(text: str) -> object:
    value = Decimal(text.strip())
    if not value.is_finite():
        raise ValueError
    return value


def _naive(text: str) -> object:
    value = datetime.fromisoformat(text.strip())
    if value.tzinfo is not None:
        raise ValueError
    return value


def _aware(text: str) -> object:
    value = datetime.fromisoformat(text.strip())
    if value.tzinfo is None:
        raise ValueError
    return value


#: type -> (from text, what a value looks like)
TYPES: Mapping[str, tuple[Callable[[str], object], str]] = {
    "text": (str, "any text"),
    "int": (_integer(32), "42"),
    "bigint": (_integer(64), "42"),
    "double": (float, "1.5"),
    "decimal": (_decimal, "1.50"),
    "boolean": (_boolean, "true"),
    "date": (lambda text: date.fromisoformat(text.strip()), "2026-05-16"),
    "timestamp": (_naive, "2026-05-16T09:30:00"),
    "timestamptz": (_aware, "2026-05-16T09:30:00+00:00"),
}
_ALIASES = {
    "varchar": "text",
    "string": "text",
    "char": "text",
    "integer": "int",
    "int4": "int",
    "int8": "bigint",
    "long": "bigint",
    "float": "double",
    "real": "double",
    "numeric": "decimal",
    "bool": "boolean",
    "datetime": "timestamp",
}


def declared(
    text: str, path: Path, *, partitioned: bool
) -> tuple[tuple[Argument, ...], tuple[Diagnostic, ...]]:
    """Arguments that comment lines of ``text`` declare, in order, and what is wrong with them.

    A partitioned script has ``$partition (text)`` unless it declares it itself.
    """
    found: dict[str, Argument] = {}
    findings: list[Diagnostic] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if "$" in line:
            _read_line(line, Location(path, number, line.find("$") + 1), found, findings)
    if partitioned and PARTITION not in found:
        found[PARTITION] = Argument(PARTITION, "text", automatic=True)
    return tuple(found.values()), tuple(findings)


def _read_line(
    line: str, where: Location, found: dict[str, Argument], findings: list[Diagnostic]
) -> None:
    match = _DECLARED.match(line)
    if match is None:
        nearly = _NEARLY.match(line)
        if nearly and (nearly["type"] or "").lower() in {*TYPES, *_ALIASES}:
            hint = f"write `-- ${nearly['name']} ({nearly['type']})`"
            findings.append(_wrong("this declares no argument as it is written", where, hint))
        return
    name, type_name = match["name"], base_type(match["type"])
    if type_name is None:
        guess = nearest(match["type"], (*TYPES, *_ALIASES)) or "text"
        hint = f"write `-- ${name} ({guess})`; the types are {', '.join(TYPES)}"
        findings.append(_wrong(f"${name} has the unknown type {match['type']!r}", where, hint))
        return
    if name in found:
        findings.append(_wrong(f"${name} is declared twice", where, "keep one declaration"))
        return
    argument = Argument(name, _full_type(match["type"], type_name), match["default"], where)
    try:
        default_of(argument)
    except ArgumentError as error:
        findings.append(_wrong(error.message, where, error.hint))
    found[name] = argument  # declared, if not well: its uses are not to be reported too


def _wrong(message: str, where: Location, hint: str | None) -> Diagnostic:
    return Diagnostic("error", message, where, hint, "argument")


def base_type(written: str) -> str | None:
    """The key of :data:`TYPES` that a type as written stands for."""
    plain = written.strip().lower()
    name = "decimal" if _DECIMAL.fullmatch(plain) else _ALIASES.get(plain, plain)
    return name if name in TYPES else None


def _full_type(written: str, name: str) -> str:
    match = _DECIMAL.fullmatch(written.strip().lower())
    return f"decimal({match[1]},{match[2] or 0})" if match else name


def convert(argument: Argument, text: str) -> object:
    """``text`` as a value of the argument's type. Raises :class:`ArgumentError`."""
    to_value, example = TYPES[base_type(argument.type) or "text"]
    try:
        return to_value(text)
    except (ValueError, KeyError, InvalidOperation):
        raise ArgumentError(
            f"argument {argument.name}: {text!r} is not a valid {argument.type}",
            hint=f"write it like {argument.name}={example}",
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
    if isinstance(value, bool | int | float):
        return json.dumps(value)
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
) -> dict[str, object]:
    """A value for every argument: that of ``texts``, else the run's partition, else its default.

    A text that is None is NULL. Names that no argument has are left to the caller: they may be
    another script's (:func:`unknown`). Raises :class:`ArgumentError` naming the argument.
    """
    known = {PARTITION: partition} if partition is not None else {}
    return {argument.name: _value(argument, {**known, **texts}) for argument in arguments}


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
    of_slice = argument.name == PARTITION  # which comes from --partition, never from --arg
    raise ArgumentError(
        f"argument {argument.name} ({argument.type}) has no value",
        hint="a script has it by a line `-- partitioned daily` in its header"
        if of_slice
        else f"give it: --arg {argument.name}=VALUE",
        location=argument.location,
        data={"argument": argument.name},
    )
