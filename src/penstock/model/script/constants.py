"""Constant expressions: literals, ``'{partition}'``, ``$name``, ``||``, lists and structs.

They are read without Spark and evaluated when a run knows its partition and arguments.

Conditions that stand on their own, outside of a script: those of ``data_test expression``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime

from penstock.errors import ArgumentError, PartitionError, UnsupportedFeature
from penstock.lazy import exp
from penstock.model.time.time_macros import INSIDE, TOKEN
from penstock.sql.dialect import SPARK, normalized, to_spark
from penstock.sql.text import Unreadable, misread
from penstock.sql.tokens import ARGUMENT, NUMBER, STRING, Token, Unclosed, closing, split_at, words


@dataclass(frozen=True, slots=True)
class Bindings:
    """Values of a run: its partition and the typed values of a script's arguments."""

    partition: str | None = None
    arguments: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Literal:
    value: str | int | float | bool | None

    def evaluate(self, _bindings: Bindings) -> object:
        return self.value


@dataclass(frozen=True, slots=True)
class PartitionValue:
    """``'{partition}'``."""

    def evaluate(self, bindings: Bindings) -> object:
        if bindings.partition is None:
            raise PartitionError(
                "the script needs a partition and the run has none",
                hint="give one: --partition VALUE",
            )
        return bindings.partition


@dataclass(frozen=True, slots=True)
class ArgumentValue:
    """``$name``."""

    name: str

    def evaluate(self, bindings: Bindings) -> object:
        if self.name not in bindings.arguments:
            raise ArgumentError(
                f"argument {self.name} has no value", hint=f"give it: --arg {self.name}=VALUE"
            )
        return bindings.arguments[self.name]


@dataclass(frozen=True, slots=True)
class Concat:
    """Parts joined by ``||``; NULL makes the whole NULL, as in SQL."""

    parts: tuple[Constant, ...]

    def evaluate(self, bindings: Bindings) -> object:
        values = [part.evaluate(bindings) for part in self.parts]
        return None if None in values else "".join(as_text(value) for value in values)


@dataclass(frozen=True, slots=True)
class ListOf:
    items: tuple[Constant, ...]

    def evaluate(self, bindings: Bindings) -> object:
        return [item.evaluate(bindings) for item in self.items]


@dataclass(frozen=True, slots=True)
class StructOf:
    """``{'a': 1}`` and ``MAP {'a': 1}``: a dict, in order."""

    fields: tuple[tuple[str, Constant], ...]

    def evaluate(self, bindings: Bindings) -> object:
        return {name: value.evaluate(bindings) for name, value in self.fields}


Constant = Literal | PartitionValue | ArgumentValue | Concat | ListOf | StructOf


def as_text(value: object) -> str:
    """A value as SQL would write it into a text."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    return value.isoformat() if isinstance(value, date) else str(value)


class NotConstant(Exception):
    """``token`` begins something that is not a constant; ``None`` when the text ends too early."""

    def __init__(self, reason: str, token: Token | None) -> None:
        self.token = token
        super().__init__(reason)


def read_constant(tokens: Sequence[Token], *, in_path: bool = False) -> Constant:
    """The constant that ``tokens`` (all of them) make. Raises :class:`NotConstant`.

    ``in_path``: a longer text may have ``{partition}`` inside, as ``'a' || '{partition}'`` has it.
    """
    parts: list[Constant] = []
    for piece in split_at(tokens, "||"):
        part = _operand(piece, in_path)
        parts += part.parts if isinstance(part, Concat) else (part,)
    return parts[0] if len(parts) == 1 else Concat(tuple(parts))


def _operand(tokens: Sequence[Token], in_path: bool) -> Constant:
    if not tokens:
        raise NotConstant("a value is missing", None)
    first, last = tokens[0], tokens[-1]
    if len(tokens) == 1:
        if first.upper in _WORDS:
            return _WORDS[first.upper]
        if in_path and first.kind == STRING and TOKEN in first.value:
            return _path_text(first.value)
        build = _SINGLE.get(first.kind)
        if build is None:
            raise NotConstant(f"`{first.text}` is not a constant", first)
        return build(first)
    if first.text == "-" and len(tokens) == 2 and last.kind == NUMBER:
        return _number(Token(NUMBER, f"-{last.text}", first.start))
    opening = 1 if first.upper == "MAP" else 0
    build_group = _GROUPS.get(tokens[opening].text)
    if build_group is None or closing(tokens, opening) != len(tokens) - 1:
        raise NotConstant("this is not a constant", first)
    return build_group(tokens[opening + 1 : -1], in_path)


def _path_text(text: str) -> Constant:
    first, *others = text.split(TOKEN)
    parts: list[Constant] = [Literal(first)]
    for other in others:
        parts += (PartitionValue(), Literal(other))
    kept = [part for part in parts if part != Literal("")]
    return kept[0] if len(kept) == 1 else Concat(tuple(kept))


def _string(token: Token) -> Constant:
    if token.value == TOKEN:
        return PartitionValue()
    if TOKEN in token.value:
        raise NotConstant(f"{INSIDE[0]}; {INSIDE[1]}", token)
    return Literal(token.value)


def _number(token: Token) -> Constant:
    try:
        return Literal(int(token.text))
    except ValueError:
        return Literal(float(token.text))


def _group(tokens: Sequence[Token], in_path: bool) -> Constant:
    return read_constant(tokens, in_path=in_path)


def _struct(tokens: Sequence[Token], _in_path: bool) -> Constant:
    fields: list[tuple[str, Constant]] = []
    for piece in split_at(tokens, ","):
        if len(piece) < 3 or piece[1].text not in {":", "="}:
            raise NotConstant("a field is written 'name': value", piece[0] if piece else None)
        fields.append((piece[0].value, read_constant(piece[2:])))
    return StructOf(tuple(fields))


_SINGLE: dict[str, Callable[[Token], Constant]] = {
    STRING: _string,
    NUMBER: _number,
    ARGUMENT: lambda token: ArgumentValue(token.value),
}
_WORDS = {"TRUE": Literal(True), "FALSE": Literal(False), "NULL": Literal(None)}
_GROUPS: dict[str, Callable[[Sequence[Token], bool], Constant]] = {
    "(": _group,
    "[": lambda tokens, in_path: ListOf(
        tuple(_group(piece, in_path) for piece in split_at(tokens, ",") if piece)
    ),
    "{": _struct,
}


_SCRIPT = "write the test as a script in tests/, which may have them"


@dataclass(frozen=True, slots=True)
class Problem:
    """``at`` is where in the text it is."""

    message: str
    hint: str
    at: int = 0


def misread_condition(text: str, dialect: str) -> Problem | None:
    """Return what is wrong with a condition, as far as that shows without its columns."""
    try:
        tokens = words(text, dialect)
    except Unclosed as error:
        return Problem(
            f"`{error.opener}` is opened here and never closed", "close it", error.offset
        )
    for token in tokens:
        if token.kind == ARGUMENT or (token.kind == STRING and token.value == TOKEN):
            return Problem(f"a condition has no {token.text}", _SCRIPT, token.start)
        if token.text == ";":
            return Problem("a condition is one expression", "remove the `;`", token.start)
        if token.upper in {"SELECT", "OVER"}:
            message = "a condition is of one row: it has no subquery and no window"
            return Problem(message, "write the test as a script in tests/", token.start)
    return _unparsed(text, dialect)


def _unparsed(text: str, dialect: str) -> Problem | None:
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        in_spark = to_spark(normalized(text, dialect), dialect, expression=True)
        tree = sqlglot.parse_one(in_spark, read=SPARK, into=exp.Condition)
    except UnsupportedFeature as error:
        at = int(error.data.get("start", 0))
        return Problem(f"the condition: {error.message}", error.hint or _SCRIPT, at)
    except Unreadable as error:
        return Problem(f"the condition cannot be read{error}", "write one condition", error.at)
    except SqlglotError as error:
        reason, at = misread(error, text)
        return Problem(f"the condition cannot be read{reason}", "write one condition", at)
    aggregate = tree.find(exp.AggFunc)
    if aggregate is not None:
        message = f"a condition is of one row: {aggregate.sql_name().lower()} is of many"
        return Problem(message, "write the test as a script in tests/")
    return None
