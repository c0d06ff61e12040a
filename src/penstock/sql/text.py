"""A statement's text: its places, parts of it blanked, trees of it, and conditions as values.

A `Predicate` is *necessary*: a row for which it is not true cannot be in the answer, so that files
can be chosen by it. What is not understood is omitted: it may let too much through, never too
little.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Literal

from penstock.errors import Position, QueryFailed
from penstock.lazy import exp

Operator = Literal["=", "<>", "<", "<=", ">", ">="]
Path = tuple[str, ...]  # a column's name, then the names of struct fields inside

NEGATED: dict[Operator, Operator] = {
    "=": "<>",
    "<>": "=",
    "<": ">=",
    ">=": "<",
    ">": "<=",
    "<=": ">",
}
FLIPPED: dict[Operator, Operator] = {
    "=": "=",
    "<>": "<>",
    "<": ">",
    ">": "<",
    "<=": ">=",
    ">=": "<=",
}


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant of a query.

    ``kind`` is ``integer`` (int), ``decimal`` (Decimal), ``float`` (float), ``string``,
    ``boolean``, ``date`` (date), ``zoned`` (datetime: an instant when aware, else the wall clock of
    the session's zone) or ``zoneless`` (naive datetime).
    """

    kind: str
    value: Any


@dataclass(frozen=True, slots=True)
class Compare:
    path: Path
    operator: Operator
    value: Constant


@dataclass(frozen=True, slots=True)
class Among:
    """The column equals one of these."""

    path: Path
    values: tuple[Constant, ...]


@dataclass(frozen=True, slots=True)
class StartsWith:
    path: Path
    prefix: str


@dataclass(frozen=True, slots=True)
class IsNull:
    path: Path


@dataclass(frozen=True, slots=True)
class NotNull:
    path: Path


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Condition, ...]


Leaf = Compare | Among | StartsWith | IsNull | NotNull
Condition = Leaf | And | Or


@dataclass(frozen=True, slots=True)
class Predicate:
    """The condition that a read's files are chosen by.

    ``zone`` is the session's time zone. ``used`` and ``unused`` are the parts of the query, as
    text, that the condition comes from and that could not be used.
    """

    condition: Condition | None
    zone: str = "UTC"
    used: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()


def all_of(parts: Sequence[Condition]) -> Condition | None:
    """The conjunction; ``None`` of nothing: anything goes."""
    flat = [p for part in parts for p in (part.parts if isinstance(part, And) else (part,))]
    return None if not flat else flat[0] if len(flat) == 1 else And(tuple(flat))


def rejects_null(condition: Condition) -> bool:
    """Return whether a row whose columns are all NULL fails it, as an outer
    join's missing side is.
    """
    if isinstance(condition, And):
        return any(rejects_null(part) for part in condition.parts)
    if isinstance(condition, Or):
        return all(rejects_null(part) for part in condition.parts)
    return not isinstance(condition, IsNull)


# sqlglot's own objects in its messages
_INTERNAL = re.compile(r" (but got <Token|missing for <class).*", re.DOTALL)
_NESTING = re.compile(r"[()\[\]{}]|\b(?:CASE|END)\b", re.IGNORECASE)
TOO_DEEP = "brackets, CASE or operators are nested too deeply in it"
DEEP_HINT = "name inner parts in WITH or in views; a long chain of CASE is a join with a table"
Span = tuple[int, int]  # ``text[start:end]``


def place(text: str, at: int) -> tuple[int, int]:
    """Line and column, from 1."""
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


def offset(text: str, line: int, column: int) -> int:
    """The offset of a line and column, both from 1."""
    return sum(len(before) + 1 for before in text.split("\n")[: line - 1]) + column - 1


def misread(error: Exception, text: str) -> tuple[str, int]:
    """Return why sqlglot could not read ``text``, to end a sentence with, and where.

    It gives the line and the last column of the word that it stumbled over.
    """
    if isinstance(error, RecursionError):  # it calls itself for each level
        return f": {TOO_DEEP}", _deepest(text)
    detail = (getattr(error, "errors", None) or [{}])[0]
    word = str(detail.get("highlight") or "")
    line, column = detail.get("line"), detail.get("col")
    at = len(text)
    if isinstance(line, int) and isinstance(column, int):
        at = offset(text, line, 1) + max(column - len(word), 0)
    reason = _INTERNAL.sub("", str(detail.get("description") or "it ends too early"))
    near = f" near `{word}`" if word else ""
    return f"{near}: {reason}", min(at, len(text))


def _deepest(text: str) -> int:
    """Return where the nesting of brackets and CASE is deepest, about: texts count as well."""
    depth = most = at = 0
    for match in _NESTING.finditer(text):
        depth += 1 if match[0].upper() in {"(", "[", "{", "CASE"} else -1
        if depth > most:
            most, at = depth, match.start()
    return at


def too_deep() -> QueryFailed:
    """The error for SQL that is nested deeper than Python can call itself."""
    return QueryFailed(f"the SQL cannot be read: {TOO_DEEP}", hint=DEEP_HINT)


class Unreadable(Exception):
    """sqlglot does not understand the text; Spark may, or may say better why it does not.

    The message ends a sentence (`misread`); ``at`` is where it stopped.
    """

    def __init__(self, reason: str, at: int) -> None:
        self.at = at
        super().__init__(reason)


def parse_query(text: str, dialect: str = "spark") -> exp.Expr:
    """sqlglot's tree of one query. Raises Unreadable."""
    return _parsed(text, dialect)


def parse_expression(text: str, dialect: str = "spark") -> exp.Expr:
    """sqlglot's tree of one condition or value. Raises Unreadable."""
    return _parsed_condition(text, dialect).copy()


@lru_cache(maxsize=1024)  # conditions on the slice come in each query of a project
def _parsed_condition(text: str, dialect: str) -> exp.Expr:
    return _parsed(text, dialect, exp.Condition)


def _parsed(text: str, dialect: str, into: type[exp.Expr] | None = None) -> exp.Expr:
    import sqlglot
    from sqlglot.errors import SqlglotError

    from penstock.sql.lexer import reader

    try:
        tree: exp.Expr = sqlglot.parse_one(text, read=reader(dialect), into=into)
    except (SqlglotError, RecursionError) as error:
        raise Unreadable(*misread(error, text)) from error
    return tree


def wrong(message: str, text: str, at: int, hint: str | None = None) -> QueryFailed:
    """An error at a place of the text."""
    line, column = place(text, at)
    data = {"line": line, "column": column}
    return QueryFailed(message, hint=hint, data=data, position=Position(line, column))


def blank(text: str) -> str:
    """Blanks in place of the text; lines stay lines."""
    return "".join(c if c == "\n" else " " for c in text)


def mask(text: str, spans: Iterable[tuple[int, int, str]]) -> str:
    """``text`` with each ``(start, end, replacement)`` filled up with blanks; same length.

    Line ends inside a span stay, so that lines and columns do too.
    """
    pieces: list[str] = []
    position = 0
    for start, end, replacement in sorted(spans):
        filling = blank(text[start:end])
        pieces += [text[position:start], replacement, filling[len(replacement) :]]
        position = end
    return "".join((*pieces, text[position:]))


def breaks(text: str, start: int, end: int) -> str:
    """The line breaks in a part that is replaced: kept, for the lines of messages."""
    return "\n" * text.count("\n", start, end)


_OURS = re.compile(
    r", (?:`[^`]*`\.)?`_+penstock\w*`"
)  # columns of our own among those that Spark suggests


@dataclass(slots=True)
class Composed:
    """``source`` is the statement's whole text."""

    source: str
    text: str = ""
    _parts: list[tuple[int, int, int]] = field(default_factory=list)  # at, length, in the source

    def add(self, text: str) -> Composed:
        """Add text of our own."""
        self.text += text
        return self

    def take(self, span: tuple[int, int]) -> Composed:
        """Add a part of the statement, as written."""
        start, end = span
        self._parts.append((len(self.text), end - start, start))
        self.text += self.source[start:end]
        return self

    @contextmanager
    def places(self) -> Iterator[None]:
        """Make errors inside say where in the statement they are."""
        try:
            yield
        except QueryFailed as problem:
            raise self._placed(problem) from problem.__cause__

    def _placed(self, problem: QueryFailed) -> QueryFailed:
        line = problem.data.get("line")
        if line is None:
            problem.cause = _OURS.sub("", problem.cause)
            return problem
        column = problem.data.get("column")
        at = self._origin(line, column)
        data = {k: v for k, v in problem.data.items() if k not in {"line", "column"}}
        position = None
        if at is not None:
            position = Position(*place(self.source, at))
            data["line"] = position.line
            if column is None:
                position = Position(position.line)
            else:
                data["column"] = position.column
        cause = _OURS.sub("", problem.cause)
        error = QueryFailed(cause, hint=problem.hint, data=data, position=position)
        error.exit_code = problem.exit_code
        return error

    def _origin(self, line: int, column: int | None) -> int | None:
        """Return where in the source a place of the text comes from."""
        lines = self.text.split("\n")
        start = offset(self.text, line, 1)
        at = start + (column or 1) - 1
        for begin, length, origin in self._parts:
            if begin <= at <= begin + length:
                return origin + at - begin
            if column is None and start < begin + length and begin <= start + len(lines[line - 1]):
                return origin
        return None


@dataclass(frozen=True)
class SqlExpression:
    """``text`` is in Spark's words; ``start`` is where it stands in its statement."""

    text: str
    start: int = 0

    @property
    def span(self) -> Span:
        """Return where it stands in its statement."""
        return self.start, self.start + len(self.text)

    @cached_property
    def tree(self) -> exp.Expr | None:
        """sqlglot's tree, made on the first call; ``None`` where it reads none.

        All share it: whoever changes one copies it before.
        """
        try:
            return parse_expression(self.text)
        except Unreadable:
            return None


def as_expression(value: str | SqlExpression) -> SqlExpression:
    return value if isinstance(value, SqlExpression) else SqlExpression(value)
