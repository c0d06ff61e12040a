"""One statement: a cursor over its words, what its parsed value has parts of, where an error is."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import PenstockError, Position, QueryFailed, UnsupportedFeature
from penstock.sql import tokens as words
from penstock.sql.identifiers import LAKES, called, fold
from penstock.sql.text import Composed, Span, SqlExpression, blank, place, wrong
from penstock.sql.tokens import NAME, NUMBER, STRING, WORD, Token


@dataclass(frozen=True, slots=True)
class TableName:
    """The name of a table as written, without the lake's; ``before`` may be its schema."""

    before: tuple[str, ...]
    name: str


@dataclass(frozen=True, slots=True)
class StatementText:
    """The text that the parts of a parsed statement are spans of, with its words.

    ``with_`` is the span of the WITH before the statement, and ``with_names`` what it names.
    ``lakes`` are what the lake is called, folded.
    """

    text: str
    tokens: tuple[Token, ...] = field(repr=False)
    lakes: frozenset[str] = LAKES
    with_: Span | None = None
    with_names: tuple[str, ...] = ()

    def words(self, span: Span) -> tuple[Token, ...]:
        """The words of a part."""
        first, last = (bisect_left(self.tokens, at, key=lambda token: token.start) for at in span)
        return self.tokens[first:last]

    def reader(self, span: Span) -> Reader:
        """A cursor over a part."""
        return Reader(self.text, *span, tokens=list(self.words(span)), lakes=self.lakes)

    def wrong(self, message: str, at: int, hint: str | None = None) -> QueryFailed:
        return wrong(message, self.text, at, hint)

    def unsupported(self, what: str, hint: str, at: int) -> UnsupportedFeature:
        """A refusal that names the nearest that works."""
        line, column = place(self.text, at)
        return UnsupportedFeature(
            f"{what} is not supported",
            hint=hint,
            data={"line": line, "column": column},
            position=Position(line, column),
        )


@dataclass(slots=True)
class Reader:
    """``text`` is the whole text; the statement is ``text[start:end]``.

    ``with_`` is the span of the WITH before the statement, once it is passed, and ``with_names``
    what it names. ``lakes`` are what the lake is called, folded; ``args`` the values of markers.
    ``named`` are the names that were read, each with what it was read as.
    """

    text: str
    start: int = 0
    end: int = -1
    at: int = 0
    tokens: list[Token] = field(default_factory=list)
    with_: Span | None = None
    with_names: list[str] = field(default_factory=list)
    args: Mapping[str, Any] = field(default_factory=dict)
    dialect: str = "spark"  # of its words: what a backslash means
    lakes: frozenset[str] = LAKES
    named: list[tuple[str, Token]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.end < 0:
            self.end = len(self.text)
        if not self.tokens:
            self.tokens = words.tokenize(self.text, self.dialect, self.start, self.end)

    @property
    def statement(self) -> StatementText:
        """Return what the value of the statement has its parts from."""
        names = tuple(self.with_names)
        return StatementText(self.text, tuple(self.tokens), self.lakes, self.with_, names)

    @property
    def token(self) -> Token:
        """The next word; one of kind ``end`` after the last."""
        return self.tokens[self.at] if self.at < len(self.tokens) else Token("end", "", self.end)

    def ahead(self, by: int) -> Token:
        at = self.at + by
        return self.tokens[at] if at < len(self.tokens) else Token("end", "", self.end)

    @property
    def done(self) -> bool:
        return self.at >= len(self.tokens)

    def next(self) -> Token:
        token = self.token
        self.at += 1
        return token

    def sees(self, *phrase: str) -> bool:
        """Return whether these words come next."""
        return all(self.ahead(i).upper == word for i, word in enumerate(phrase))

    def accept(self, *phrase: str) -> bool:
        """Go past these words if they come next."""
        if not self.sees(*phrase):
            return False
        self.at += len(phrase)
        return True

    def accept_any(self, *options: str) -> str | None:
        """Go past one of these words if it comes next."""
        found = self.token.upper
        if found not in options or not found:
            return None
        self.at += 1
        return found

    def expect(self, *phrase: str) -> None:
        for word in phrase:
            if not self.accept(word):
                raise self.wrong(f"{word} is expected, not {self.shown()}")

    def finish(self) -> None:
        """Nothing may be left."""
        if not self.done:
            raise self.wrong(f"{self.shown()} is not expected here")

    def shown(self) -> str:
        return repr(self.token.text) if self.token.text else "the end"

    def wrong(self, message: str, hint: str | None = None, at: int | None = None) -> QueryFailed:
        return wrong(message, self.text, self.token.start if at is None else at, hint)

    def unsupported(self, what: str, hint: str, at: int | None = None) -> UnsupportedFeature:
        """A refusal that names the nearest that works."""
        return self.statement.unsupported(what, hint, self.token.start if at is None else at)

    def name(self, what: str = "a name") -> str:
        """A name, plain or in quotes of either kind."""
        token = self.token
        if token.kind == NAME:
            if not words.unquoted(token):
                raise self.wrong(f"{what} cannot be empty", "write what it is called")
        elif token.kind != WORD:
            raise self.wrong(f"{what} is expected, not {self.shown()}")
        self.at += 1
        self.named.append((what, token))
        return words.unquoted(token) if token.kind == NAME else token.text

    def dotted(self, what: str = "a name") -> tuple[str, ...]:
        """``a.b.c``"""
        first = len(self.named)
        parts = [self.name(what)]
        while self.accept("."):
            parts.append(self.name(what))
        for at in range(first, len(self.named) - 1):
            self.named[at] = f"what {what} is in", self.named[at][1]
        return tuple(parts)

    def qualified(self, most: int, what: str = "a name") -> tuple[str, ...]:
        """``a.b``, with the lake's name before it or without: that is left out.

        ``most`` is how many parts there are without the lake's. Raises QueryFailed for another's.
        """
        at, parts = self.token.start, self.dotted(what)
        if len(parts) != most + 1:
            return parts
        if fold(parts[0]) not in self.lakes:
            alone = "only the name of the schema; schemas cannot be nested"
            form = "schema.table" if most > 1 else alone
            error = self.wrong(
                f"{'.'.join(parts)} names a catalog {parts[0]!r}, which is not this lake",
                f"the lake is called {called(self.lakes)}: write {form}",
                at,
            )
            error.data["catalog"] = parts[0]
            raise error
        return parts[1:]

    def table(self, what: str = "a table") -> TableName:
        """``t``, or ``s.t``; before that the lake's own name may stand."""
        at, parts = self.token.start, self.qualified(2, what)
        if len(parts) > 2:
            raise self.wrong(f"{'.'.join(parts)} has too many parts", "write schema.table", at)
        return TableName(parts[:-1], parts[-1])

    def string(self, what: str = "a text") -> str:
        token = self.token
        if token.kind == STRING or (token.kind == NAME and token.text[0] == '"'):
            self.at += 1
            return words.unquoted(token)
        raise self.wrong(f"{what} in quotes is expected, not {self.shown()}")

    def whole_number(self) -> int:
        token = self.token
        if token.kind != NUMBER or not token.text.replace("_", "").isdigit():
            raise self.wrong(f"a whole number is expected, not {self.shown()}")
        self.at += 1
        return int(token.text.replace("_", ""))

    def names(self) -> tuple[str, ...]:
        """``(a, b)``"""
        self.expect("(")
        found = [self.name("a column")]
        while self.accept(","):
            found.append(self.name("a column"))
        self.expect(")")
        return tuple(found)

    def alias(self) -> str | None:
        """``AS a`` or ``a``, if one follows."""
        if self.accept("AS"):
            return self.name("an alias")
        token = self.token
        if words.may_be_alias(token):
            return None if self._travels() else self.name()
        return None

    def _travels(self) -> bool:
        """Return whether a snapshot is named here: ``VERSION AS OF 3``, ``FOR VERSION ...``."""
        after = self.ahead(1).upper, self.ahead(2).upper
        if self.token.upper in {"VERSION", "TIMESTAMP"}:
            return after == ("AS", "OF")
        if self.token.upper == "FOR":
            return after[0] in {"VERSION", "TIMESTAMP", "SYSTEM_VERSION", "SYSTEM_TIME"}
        return False

    def until(self, *stops: str | Sequence[str]) -> Span:
        """Go to a stop word outside of brackets, or to the end; the span passed, maybe empty.

        A stop is a word or the words of a phrase.
        """
        phrases = [(stop,) if isinstance(stop, str) else tuple(stop) for stop in stops]
        first, last = self.token.start, self.token.start
        while not self.done and not self._stops(phrases):
            if self.token.text in {")", "]", "}"}:
                break
            last = self.skip()
        return first, last

    def _stops(self, phrases: Sequence[tuple[str, ...]]) -> bool:
        """``IS DISTINCT FROM`` is not a FROM."""
        before = self.tokens[self.at - 1].upper if self.at else ""
        distinct = before == "DISTINCT" and self.sees("FROM")
        return not distinct and any(self.sees(*phrase) for phrase in phrases)

    def skip(self) -> int:
        """Go past one word, or past a bracket with all that is in it; where that ends."""
        token = self.token
        if token.text in {"(", "[", "{"}:
            close = words.closing(self.tokens, self.at)
            if close is None:
                raise self.wrong(f"the bracket {token.text} is not closed")
            self.at = close
        elif token.upper == "CASE":
            return self._case()
        return self.next().end

    def _case(self) -> int:
        """``CASE ... END``, in which WHEN and THEN are its own."""
        self.next()
        inner = 0  # counted, as a chain of ELSE CASE may be deeper than Python calls itself
        while inner or not self.sees("END"):
            if self.done:
                raise self.wrong("CASE has no END")
            inner += self.sees("CASE") - self.sees("END")
            if self.sees("CASE") or self.sees("END"):
                self.next()
            else:
                self.skip()
        return self.next().end

    def past_with(self) -> str:
        """Go past ``WITH a AS (...), b AS (...)``; the word that comes then, in capitals."""
        start = self.token.start
        self.expect("WITH")
        end = start
        self.accept("RECURSIVE")
        while self.with_ is None:
            self.with_names.append(self.name())
            self.until("AS")
            self.expect("AS")
            self.accept("NOT")
            self.accept("MATERIALIZED")
            if self.token.text != "(":
                raise self.wrong(f"( is expected, not {self.shown()}")
            end = self.skip()
            if not self.accept(","):
                self.with_ = (start, end)
        return self.token.upper

    def rest(self) -> tuple[int, int]:
        """The span of all that is left."""
        first = self.token.start
        last = self.tokens[-1].end if self.tokens and not self.done else first
        self.at = len(self.tokens)
        return first, max(first, last)

    def written(self, span: tuple[int, int], what: str = "an expression") -> str:
        """The text of a span. Raises QueryFailed when it is empty."""
        if span[1] <= span[0]:
            raise self.wrong(f"{what} is expected", at=span[0])
        return self.text[span[0] : span[1]]

    def expression(self, *stops: str | Sequence[str], what: str = "an expression") -> SqlExpression:
        """Return what stands before a stop word, see `until`. Raises QueryFailed where that is
        nothing.
        """
        span = self.until(*stops)
        return SqlExpression(self.written(span, what), span[0])

    def one_of(self, known: Collection[str], what: str) -> str:
        """The next word, which has to be one of these."""
        found = self.token.upper
        if found not in known:
            listed = ", ".join(sorted(known))
            raise self.wrong(f"{what} is expected, not {self.shown()}", hint=f"known are {listed}")
        self.at += 1
        return found


def begun(statement: StatementText) -> Composed:
    """The start of a SELECT: the WITH of the statement, if it has one."""
    text = Composed(statement.text)
    return text if statement.with_ is None else text.take(statement.with_).add(" ")


def alone(statement: StatementText, span: Span) -> str:
    """A query of a statement with blanks before it, so that it keeps its place.

    The statement's WITH stays before it; one of its own is in brackets then.
    """
    source, query = statement.text, statement.text[span[0] : span[1]]
    if statement.with_ is None:
        return blank(source[: span[0]]) + query
    start, end = statement.with_
    between = blank(source[end : span[0]])
    if statement.words(span)[0].upper == "WITH":
        between, query = f"{between[:-1]}(", f"{query})"
    return blank(source[:start]) + source[start:end] + between + query


def if_not_exists(reader: Reader, or_replace: bool = False) -> bool:
    found = reader.accept("IF", "NOT", "EXISTS")
    if found and or_replace:
        raise reader.wrong("OR REPLACE and IF NOT EXISTS exclude each other")
    return found


def if_exists(reader: Reader) -> bool:
    return reader.accept("IF", "EXISTS")


def comment_or_null(reader: Reader) -> str | None:
    """``'text'`` or NULL, which takes a comment away."""
    return None if reader.accept("NULL") else reader.string("a comment")


_NAMED = ("column", "table", "view", "schema", "parameter")
_NAMES = frozenset({NAME, WORD})
_GIVEN = ("value", "option")
# What a name that a statement reads may be said to be by an error; names have roles, so that a
# column which is called like its table is found behind it.
_ROLES: Mapping[str, Sequence[str]] = {
    "column": (
        *("a column", "a field", "the new name", "the column's name from now on"),
        "what a column is in",
    ),
    "table": ("a table", "a view", "the new name", "what a column is in"),
    "view": ("a view", "a table", "the new name"),
    "schema": (
        *("a schema", "what a table is in", "what a view is in", "what a macro is in"),
        *("what a name is in", "what a column is in"),
    ),
    "parameter": ("a parameter",),
}
_PARTS = re.compile(r"[\s.]|\[\]")
_VALUES = frozenset({NAME, NUMBER, STRING, WORD})


def place_error(
    error: PenstockError, text: str, start: int, end: int, named: Sequence[tuple[str, Token]] = ()
) -> None:
    """Give ``error`` the line and column of the word that names what it is about.

    Errors of the lake know names and no text. One that has a place keeps it, and one about
    something that the statement does not name has none. ``named`` are the names that the statement
    was read to have, with what each was read as; those of expressions and queries, which only Spark
    reads, are looked for in the words.
    """
    if "line" in error.data or error.position is not None:
        return
    at = _start_of(error.data, text, start, end, named)
    if at is not None:
        line, column = place(text, at)
        error.data = {"column": column, **error.data, "line": line}  # a name it may have stays
        error.position = Position(line, column)


def _start_of(
    data: Mapping[str, Any], text: str, start: int, end: int, named: Sequence[tuple[str, Token]]
) -> int | None:
    """Return where what the error is about begins: a reference as written, a name, a value, or
    ``at``.
    """
    reference = str(data.get("reference") or "")
    if reference and reference in text[start:end]:
        at = data.get("reference_at", -1)
        return at if at >= 0 and text.startswith(reference, at) else text.index(reference, start)
    read = next(
        (
            token.start
            for key in _NAMED
            if data.get(key)
            for name in _spellings(str(data[key]))
            for role in _ROLES[key]
            for what, token in named
            if what == role and _said(token) == fold(name)
        ),
        None,
    )
    if read is not None:
        return read
    wanted = [str(data[key]) for key in _NAMED if data.get(key)]
    given = [str(data[key]).lstrip("-") for key in _GIVEN if data.get(key) is not None]
    options = given if "option" in data else []
    try:
        tokens = Reader(text, start, end).tokens if wanted or given else []
    except QueryFailed:  # a text that only Spark reads
        tokens = []
    for names, kinds in ((options, _VALUES), (wanted, _NAMES), (given, _VALUES)):
        found = {_said(token): token for token in reversed(tokens) if token.kind in kinds}
        for name in names:
            for spelling in _spellings(name):
                token = found.get(fold(spelling))
                if token is not None:
                    return token.start
    return data.get("at")


def _spellings(name: str) -> list[str]:
    """A name, and what stands for it in `s.t`, `tags[]` and `column st`."""
    parts = _PARTS.split(name)
    return [one for one in (name, name.rsplit(".", 1)[-1], parts[-1], parts[0]) if one]


def _said(token: Token) -> str:
    return fold(words.unquoted(token) if token.kind in {NAME, STRING} else token.text)
