"""Values written out: read where no session is needed for them, and nested ones for Spark.

DuckDB's lists, structs and maps (``[1]``, ``{'a': 1}``, ``MAP {'k': 1}``) are put in Spark's words
where Spark has no bracket of its own, so that nothing changes its meaning: ``l[1]`` stays what it
is. What is not understood (``[x FOR x IN l]``) stays as well, for Spark to refuse.

Constant expressions, as defaults of columns are (``1 + 1``), are computed where DuckDB's value is
certain: whole numbers that stay 64 bits wide, and texts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import reduce
from operator import add, mul, sub
from typing import Any

from penstock.errors import ArgumentError, QueryFailed
from penstock.lazy import exp
from penstock.sql.statement import Reader
from penstock.sql.text import Unreadable, parse_expression
from penstock.sql.tokens import MARKER, NAME, NUMBER, STRING, WORD, SqlText, Token, unquoted


@dataclass(frozen=True, slots=True)
class Literal:
    """A value as written. ``type`` is its own where it names one (``DATE '...'``, an argument)."""

    value: Any
    type: str | None = None


class NoLiteral(Exception):
    """Raised where an expression comes next."""


NULL = Literal(None)
_WORDS = {"NULL": NULL, "TRUE": Literal(True, "boolean"), "FALSE": Literal(False, "boolean")}
_TYPED = {"DATE": "date", "TIMESTAMP": "timestamp", "TIMESTAMP_NTZ": "timestamp"} | {
    "TIMESTAMPTZ": "timestamptz",
    "TIMESTAMP_LTZ": "timestamptz",
}


def literal(reader: Reader, args: Mapping[str, Any]) -> Literal:
    """The literal or marker that comes next.

    Raises NoLiteral where it is none (the reader may have moved), ArgumentError for a marker
    without a value.
    """
    token = reader.token
    sign = reader.accept_any("-", "+")
    if reader.token.kind == NUMBER:
        return Literal(_number(reader.next().text, negative=sign == "-"))
    if sign is not None:
        raise NoLiteral
    if token.kind == MARKER:
        return Literal(argument(reader.next().text[1:], args), "argument")
    if token.kind == STRING or (token.kind == NAME and token.text[0] == '"'):
        return Literal(unquoted(reader.next()))
    if token.upper in _WORDS:
        return _WORDS[reader.next().upper]
    if token.upper in _TYPED and reader.ahead(1).kind == STRING:
        reader.next()
        return Literal(unquoted(reader.next()), _TYPED[token.upper])
    return _nested(reader, args)


def _nested(reader: Reader, args: Mapping[str, Any]) -> Literal:
    """Lists, structs and maps in both spellings: ``[1]``, ``array(1)``, ``{'a': 1}``, ..."""
    if reader.accept("[") or reader.accept("ARRAY", "["):
        return Literal(_several(reader, args, "]"), "list")
    if reader.accept("ARRAY", "("):
        return Literal(_several(reader, args, ")"), "list")
    if reader.accept("MAP", "{"):
        return Literal(_pairs(reader, args), "map")
    if reader.accept("{"):
        return Literal(_named(_pairs(reader, args)), "struct")
    if reader.accept("NAMED_STRUCT", "("):
        return Literal(_named(_twos(_several(reader, args, ")"))), "struct")
    if reader.accept("MAP", "("):
        return Literal(_twos(_several(reader, args, ")")), "map")
    raise NoLiteral


def _several(reader: Reader, args: Mapping[str, Any], close: str) -> list[Literal]:
    found: list[Literal] = []
    while not reader.accept(close):
        if found and not reader.accept(","):
            raise NoLiteral
        found.append(literal(reader, args))
    return found


def _pairs(reader: Reader, args: Mapping[str, Any]) -> list[tuple[Literal, Literal]]:
    found: list[tuple[Literal, Literal]] = []
    while not reader.accept("}"):
        if found and not reader.accept(","):
            raise NoLiteral
        if reader.token.kind == WORD and reader.token.upper not in _WORDS:
            key = Literal(reader.next().text)
        else:
            key = literal(reader, args)
        if not reader.accept(":"):
            raise NoLiteral
        found.append((key, literal(reader, args)))
    return found


def _twos(values: list[Literal]) -> list[tuple[Literal, Literal]]:
    if len(values) % 2 or any(value.type == "list" for value in values[::2]):
        raise NoLiteral
    return list(zip(values[::2], values[1::2], strict=True))


def _named(pairs: list[tuple[Literal, Literal]]) -> list[tuple[Literal, Literal]]:
    if not all(isinstance(key.value, str) for key, _ in pairs):
        raise NoLiteral
    return pairs


def argument(name: str, args: Mapping[str, Any]) -> Any:
    if name not in args:
        raise ArgumentError(f"there is no value for :{name}", hint="pass it in args")
    return args[name]


def _number(text: str, *, negative: bool) -> int | float | Decimal:
    plain = text.replace("_", "")
    if "e" in plain.lower():
        return -float(plain) if negative else float(plain)
    found: int | Decimal = Decimal(plain) if "." in plain else int(plain)
    return -found if negative else found


# What a value may follow: after these a bracket opens one, and is no index and no path (v:['a']).
_BEFORE = frozenset(
    {"(", "[", ",", "SELECT", "DISTINCT", "ALL", "WHERE", "ON", "HAVING", "CASE", "WHEN"}
    | {"THEN", "ELSE", "AND", "OR", "NOT", "IN", "BETWEEN", "FROM", "=", "==", "<>", "!=", "<=>"}
    | {"<", "<=", ">", ">=", "||", "+", "=>", ":="}
)


class _Other(Exception):
    """Brackets that mean something else."""


@dataclass(slots=True)
class _Writing:
    """``edits`` are spans of the text with what comes in their place."""

    tokens: Sequence[Token]
    edits: list[tuple[int, int, str]] = field(default_factory=list)

    def mark(self, at: int) -> str:
        """The word or symbol at ``at``, in capitals."""
        return self.tokens[at].upper if 0 <= at < len(self.tokens) else ""

    def follows_none(self, at: int) -> bool:
        """Return whether what opens there opens a value on its own."""
        return at == 0 or self.mark(at - 1) in _BEFORE

    def put(self, at: int, text: str) -> None:
        token = self.tokens[at]
        self.edits.append((token.start, token.end, text))

    def value(self, at: int) -> int:
        """Past the token at ``at``, or past the literal that it opens."""
        if at >= len(self.tokens):
            raise _Other
        opens = self.mark(at)
        if opens == "[":
            return self._list(at) if self.follows_none(at) else self._inside(at, "]")
        if opens == "(":
            return self._inside(at, ")")
        of_map = self.mark(at - 1) == "MAP"
        if opens == "{" and (of_map or self.mark(at - 1) == ":" or self.follows_none(at)):
            return self._pairs(at, of_map=of_map)
        if opens == "{":
            raise _Other
        return at + 1

    def _inside(self, at: int, close: str) -> int:
        at += 1
        while self.mark(at) != close:
            if self.mark(at) == "FOR":
                raise _Other
            at = self.value(at)
        return at + 1

    def _list(self, at: int) -> int:
        self.put(at, "array(")
        end = self._inside(at, "]")
        self.put(end - 1, ")")
        return end

    def _pairs(self, at: int, *, of_map: bool) -> int:
        self.put(at, "(" if of_map else "named_struct(")
        at += 1
        while self.mark(at) != "}":
            at = self._key(at, of_map=of_map)
            if self.mark(at) != ":":
                raise _Other
            self.put(at, ",")
            at = self._list(at + 1) if self.mark(at + 1) == "[" else at + 1
            while self.mark(at) not in {",", "}"}:
                at = self.value(at)
            at += self.mark(at) == ","
        self.put(at, ")")
        return at + 1

    def _key(self, at: int, *, of_map: bool) -> int:
        if of_map:
            while self.mark(at) != ":":
                if self.mark(at) in {",", "}"}:
                    raise _Other
                at = self.value(at)
            return at
        if at >= len(self.tokens) or self.tokens[at].kind not in {WORD, NAME, STRING}:
            raise _Other
        if self.tokens[at].kind != STRING:
            self.put(at, text_literal(self.tokens[at].value))
        return at + 1


# Texts that are numbers and moments to Spark alone: 1D, 0x1p3; 2024-05, and 10:00 of today.
LETTERED = r"(?i)\s*[+-]?(0x.*|[0-9.]+(e[+-]?[0-9]+)?[df])\s*"
PARTIAL = r"\s*([0-9]{4}(-[0-9]{1,2})?|T?[0-9]{1,2}:.*)\s*"


def text_literal(value: str) -> str:
    """A text in Spark's SQL."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def plain_text_literal(value: str) -> str:
    """A text in SQL where a backslash is a character like any other: DuckDB's, MODEL (...)."""
    return "'" + value.replace("'", "''") + "'"


def in_spark(source: SqlText) -> SqlText:
    """The text with such literals in Spark's words; lines stay lines."""
    if "[" not in source.text and "{" not in source.text:
        return source
    try:
        writing = _Writing(source.tokens)
        at = 0
        while at < len(writing.tokens):
            at = writing.value(at)
    except (QueryFailed, _Other):
        return source
    text = source.text
    for start, end, new in sorted(writing.edits, reverse=True):
        text = text[:start] + new + text[end:]
    return SqlText(text) if writing.edits else source


Value = int | str
_LIMIT = 1 << 31  # beyond it DuckDB's type of a result may be another than the operands'


class _NotConstant(Exception):
    pass


def constant(text: str) -> Value | None:
    """Return the value of an expression; ``None`` where DuckDB's is not known."""
    try:
        return _value(parse_expression(text, "duckdb"))
    except (Unreadable, _NotConstant):
        return None


def _value(tree: exp.Expr) -> Value:
    compute = _COMPUTED.get(type(tree).__name__)
    if compute is None:
        raise _NotConstant
    return compute(tree)


def _literal(tree: exp.Expr) -> Value:
    if tree.is_string:
        return str(tree.name)
    if not tree.name.isdigit():
        raise _NotConstant
    return _whole(int(tree.name))


def _whole(value: Value) -> int:
    if not isinstance(value, int) or abs(value) >= _LIMIT:
        raise _NotConstant
    return value


def _written(value: Value) -> str:
    if not isinstance(value, str):
        raise _NotConstant
    return value


def _inside(tree: exp.Expr) -> Value:
    return _value(tree.this)


def _arithmetic(apply: Callable[[int, int], int]) -> Callable[[exp.Expr], Value]:
    return lambda tree: _whole(
        apply(_whole(_value(tree.this)), _whole(_value(tree.args["expression"])))
    )


def _joined(tree: exp.Expr) -> Value:
    parts = tree.expressions or [tree.this, tree.args["expression"]]
    return reduce(add, (_written(_value(part)) for part in parts), "")


_COMPUTED: Mapping[str, Callable[[exp.Expr], Value]] = {
    "Literal": _literal,
    "Paren": _inside,
    "Neg": lambda tree: -_whole(_value(tree.this)),
    "Add": _arithmetic(add),
    "Sub": _arithmetic(sub),
    "Mul": _arithmetic(mul),
    "DPipe": _joined,
    "Concat": _joined,
}
