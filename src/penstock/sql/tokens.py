"""The words of a text with their places: what all of Penstock sees of SQL before it is parsed.

Expressions and queries inside are handed on as they were written. sqlglot's parsers have words of
their own, which nothing else reads (`penstock.sql.lexer`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from penstock.errors import Position, UnsupportedFeature
from penstock.sql.text import place, wrong

WORD, NAME, STRING, NUMBER = "word", "name", "string", "number"
MARKER, ARGUMENT, SYMBOL = "marker", "argument", "symbol"  # ``:a``, ``$a``
COMMENT, SPACE, UNCLOSED = "comment", "space", "unclosed"  # the last is a quote or ``/*``

# One match is a word with the space before it. What no text or name can begin with is tried first.
_MOST = r"(?P<word>[^\W\d]\w*+(?!['\"]))"
_LINE = r"--[^\r\n]*"
_NAME = r'(?P<name>`(?:[^`]|``)*`|"(?:[^"]|"")*")'
_NUMBER = r"(?P<number>(?:\d[\d_]*(?:\.[\d_]*)?|\.\d[\d_]*)(?:[eE][+-]?\d+)?)"
_REST = r"""(?P<prefix>[^\W\d]\w*)
    |(?P<argument>\$\w+)
    |(?P<marker>:[^\W\d]\w*)
    |(?P<unclosed>['"`]|/\*)
    |(?P<symbol>=>|:=|::|<=>|<>|!=|<=|>=|==|->>|->|\|\||\|>|.)
    |\Z"""
# In Spark's dialect a comment continues after a backslash at its line's end, the text after X in
# double quotes is one of bytes, and a word may begin with digits unless it is a number (1L, 1e5).
_SPARK = re.compile(
    rf"""\s*+(?:{_MOST}
    |(?P<comment>--(?:\\\n|[^\r\n])*)
    |(?P<string>[rR]'[^']*'|[rR]"[^"]*"|'(?:[^'\\]|\\.|'')*'|(?<=\b[xX])"[^"]*")
    |{_NAME}
    |(?P<digits>(?!\d+(?:[eE][+-]?\d+)?(?:[lLsSyYfFdD]|[bB][dD])?(?!\w))\d[\d_]*[^\W\d_]\w*)
    |{_NUMBER}
    |{_REST})""",
    re.VERBOSE | re.DOTALL,
)
# A backslash is nothing special in a text or a name, unless the text begins with E.
_DUCKDB = re.compile(
    rf"""\s*+(?:{_MOST}
    |(?P<comment>{_LINE})
    |(?P<string>[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|\$(?P<tag>\w*)\$.*?\$(?P=tag)\$)
    |{_NAME}
    |{_NUMBER}
    |{_REST})""",
    re.VERBOSE | re.DOTALL,
)
_WORDS = {"spark": _SPARK, "duckdb": _DUCKDB}
_WORD_LIKE = {"digits": WORD, "prefix": WORD}
_IN_CAPITALS = frozenset({WORD, SYMBOL})
_BRACKETED = re.compile(r"/\*|\*/")
_ENDS_VALUE = re.compile(r"[^\W_]|['\"`]")
# What may stand before a bracket and calls nothing, in small letters.
_BEFORE_BRACKETS = """
    all and anti any as at between by case cross cube distinct div else end escape except exists
    filter from full group having ilike in inner intersect is join lateral left like limit minus not
    of offset on or order over outer partition pivot qualify range regexp rlike rollup rows select
    semi sets some tablesample then union unpivot using values when where window with within
"""
NOT_CALLED = frozenset(_BEFORE_BRACKETS.split())
# Words that may follow a table and are no alias of it.
_NO_ALIAS = frozenset(
    {"SET", "WHERE", "USING", "ON", "WHEN", "FROM", "SELECT", "VALUES", "BY", "REPLACE", "DEFAULT"}
    | {"PARTITION", "WITH", "TABLE", "RETURNING", "JOIN", "LEFT", "INNER", "CROSS", "FULL"}
    | {"LIMIT", "ORDER", "GROUP", "HAVING", "QUALIFY", "WINDOW", "UNION", "TABLESAMPLE", "RIGHT"}
    | {"NATURAL", "ANTI", "SEMI", "LATERAL", "PIVOT", "UNPIVOT", "ASOF", "EXCEPT", "INTERSECT"}
    | {"MINUS", "OFFSET", "CLUSTER", "DISTRIBUTE", "SORT", "POSITIONAL"}
)
# Words that no value ends with: a sign, a bracket or a text after one begins a value.
NO_VALUE = frozenset(
    {
        *("ALL", "AND", "ANY", "AS", "ASC", "BETWEEN", "BY", "CASE", "DESC", "DISTINCT", "DIV"),
        *("ELSE", "ESCAPE", "EXCEPT", "EXISTS", "FROM", "GROUP", "HAVING", "IN", "INTERSECT"),
        *("INTO", "IS", "LIKE", "LIMIT", "NOT", "OF", "OFFSET", "ON", "OR", "ORDER", "PIVOT"),
        *("QUALIFY", "RLIKE", "SELECT", "SET", "SOME", "THEN", "UNION", "USING", "VALUES"),
        *("WHEN", "WHERE", "WITH"),
    }
)
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")


class Token(NamedTuple):
    """``text`` is as written at ``start``; a ``name`` is one in quotes (maybe a text).

    ``upper`` is a word or symbol in capitals; empty for what is in quotes, numbers and markers.
    """

    kind: str
    text: str
    start: int
    dialect: str = "spark"
    upper: str = ""

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def value(self) -> str:
        """Return what it says without its quotes or its mark."""
        if self.kind in {NAME, STRING}:
            return unquoted(self)
        return self.text[1:] if self.kind in {MARKER, ARGUMENT} else self.text


@dataclass(frozen=True)
class SqlText:
    """A text whose words are read once, for all who look at them."""

    text: str
    dialect: str = "spark"

    @cached_property
    def tokens(self) -> list[Token]:
        """Raises QueryFailed with the place of a quote that is not closed."""
        return tokenize(self.text, self.dialect)


class Unclosed(Exception):
    """A quote or comment that is never closed, at ``offset``."""

    def __init__(self, offset: int, opener: str) -> None:
        self.offset = offset
        self.opener = opener
        super().__init__(f"unclosed {opener}")


def tokenize(
    text: str, dialect: str = "spark", start: int = 0, end: int | None = None
) -> list[Token]:
    """All words of ``text[start:end]``, comments and space left out.

    Raises QueryFailed with the place.
    """
    try:
        return words(text, dialect, start, end)
    except Unclosed as error:
        what = "comment" if error.opener == "/*" else "quote"
        raise wrong(f"the {what} {error.opener} is not closed", text, error.offset) from None


def words(text: str, dialect: str = "spark", start: int = 0, end: int | None = None) -> list[Token]:
    """`tokenize` for those who place errors on their own. Raises Unclosed."""
    read = loose_words(text, dialect, start, end)
    for token in read:
        if token.kind == UNCLOSED:
            raise Unclosed(token.start, token.text)
    return read


def loose_words(
    text: str, dialect: str = "spark", start: int = 0, end: int | None = None
) -> list[Token]:
    """`words` in which a quote or comment that is never closed is a token on its own."""
    return [token for token in _scan(text, dialect, start, end) if token.kind != COMMENT]


def scan(
    text: str, dialect: str = "spark", start: int = 0, end: int | None = None
) -> Iterator[Token]:
    """Everything in ``text[start:end]``, one token after another without gaps.

    A quote or comment that is never closed is a token on its own, and what follows is read as if it
    were not there.
    """
    at, stop = start, len(text) if end is None else end
    for token in _scan(text, dialect, start, end):
        if token.start > at:
            yield Token(SPACE, text[at : token.start], at, dialect)
        yield token
        at = token.end
    if at < stop:
        yield Token(SPACE, text[at:stop], at, dialect)


def _scan(text: str, dialect: str, start: int, end: int | None) -> Iterator[Token]:
    """`scan` without the space: the loop that every word of a project goes through."""
    find, make = _WORDS[dialect].finditer, tuple.__new__  # Token(...) takes twice as long
    at, stop = start, len(text) if end is None else end
    last, last_end = "", start  # the word before
    while at < stop:
        for match in find(text, at, stop):
            kind = match.lastgroup
            if kind is None:  # the end
                return
            begin, written = match.start(kind), match[kind]
            if kind == MARKER and _ends_value(last, spaced=begin > last_end):
                kind, written = SYMBOL, ":"  # as in {'a':b}
            elif written == "/*" and (close := _comment_end(text, begin, stop)) is not None:
                kind, written = COMMENT, text[begin:close]
            at = begin + len(written)
            kind = _WORD_LIKE.get(kind, kind)
            upper = written.upper() if kind in _IN_CAPITALS else ""
            yield make(Token, (kind, written, begin, dialect, upper))
            if kind != COMMENT:
                last, last_end = written, at
            if at != match.end():
                break  # to continue from there


def _ends_value(before: str, *, spaced: bool) -> bool:
    """Return whether a value may end with ``before``, after which a colon begins no marker."""
    if not before or not _ENDS_VALUE.match(before[-1]):
        return False
    return not spaced or before.upper() not in NO_VALUE


def _comment_end(text: str, start: int, stop: int) -> int | None:
    """Return where a bracketed comment ends; those inside of it count."""
    depth = 0
    for mark in _BRACKETED.finditer(text, start, stop):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    return None


def split(text: str, dialect: str = "spark") -> list[tuple[int, int]]:
    """Return where the statements of a text begin and end; empty ones are left out."""
    parts: list[tuple[int, int]] = []
    start: int | None = None
    end = 0
    for token in tokenize(text, dialect):
        if token.text == ";":
            if start is not None:
                parts.append((start, end))
            start = None
            continue
        start = token.start if start is None else start
        end = token.end
    return parts if start is None else [*parts, (start, end)]


def closing(tokens: Sequence[Token], at: int) -> int | None:
    """Return which token closes the bracket that the one at ``at`` opens."""
    depth = 0
    for i in range(at, len(tokens)):
        depth += depth_of(tokens[i])
        if depth == 0:
            return i
    return None


def split_at(tokens: Sequence[Token], separator: str) -> list[Sequence[Token]]:
    """Return the words between separators that are in no brackets; a part may be empty."""
    parts: list[Sequence[Token]] = []
    start = depth = 0
    for at, token in enumerate(tokens):
        depth += depth_of(token)
        if depth == 0 and token.text == separator:
            parts.append(tokens[start:at])
            start = at + 1
    return [*parts, tokens[start:]]


def has_word(tokens: Sequence[Token], word: str) -> bool:
    """Tell whether a word is among tokens.

    Args:
        tokens: The tokens.
        word: The word in capitals.

    Returns:
        True for a token of any case.
    """
    return any(token.upper == word for token in tokens)


def may_be_alias(token: Token) -> bool:
    """Return whether it can be a name after a table without AS."""
    return token.kind == NAME or (token.kind == WORD and token.upper not in _NO_ALIAS)


def depth_of(token: Token) -> int:
    """1 for a bracket that opens, -1 for one that closes, else 0."""
    return (token.text in _OPENING) - (token.text in _CLOSING)


_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2}|.)", re.S)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "Z": "\x1a"}


def unquoted(token: Token) -> str:
    """Return what a name or a text in quotes says; backslashes in texts are as in its dialect."""
    text = token.text
    if token.dialect == "duckdb" and token.kind == STRING:
        return _text_of_duckdb(text)
    if text[0] in "rR":
        return text[2:-1]
    mark, inside = text[0], text[1:-1]
    inside = inside.replace(mark * 2, mark)
    plain = mark == "`" or token.dialect == "duckdb"
    return inside if plain else _ESCAPE.sub(_unescaped, inside)


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) > 1:
        return chr(int(code[1:], 16) if code[0] in "uU" else int(code, 8))
    if code in {"%", "_"}:
        return match[0]
    return _ESCAPES.get(code, code)


_DUCKDB_ESCAPE = re.compile(
    r"\\([0-7]{1,3}|x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.S
)
_DUCKDB_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def _text_of_duckdb(written: str) -> str:
    """``'a\\b'``, ``E'a\\nb'`` or ``$$a$$``: a backslash escapes where the text begins with E."""
    if written[0] == "$":
        mark = written.index("$", 1) + 1
        return written[mark:-mark]
    if written[0] in "eE":
        return _DUCKDB_ESCAPE.sub(_unescaped_of_duckdb, written[2:-1].replace("''", "'"))
    return written[1:-1].replace("''", "'")


def _unescaped_of_duckdb(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] in "xuU" and len(code) > 1:
        return chr(int(code[1:], 16))
    return chr(int(code, 8)) if code.isdigit() else _DUCKDB_ESCAPES.get(code, code)


_OPENS = "${"


def unsubstituted(text: str) -> str:
    """Return SQL of Spark's dialect in which Spark finds nothing to substitute::

        unsubstituted("SELECT '${env:HOME}'") == "SELECT '$' '{env:HOME}'"

    With ``spark.sql.variable.substitute``, on by default, Spark replaces ``'${env:HOME}'`` by a
    variable before it parses a query or an expression of a DataFrame. Other threads share that
    setting, so texts are rewritten instead. Adjacent texts are one text.

    Raises UnsupportedFeature where ``${`` is not in a text, as in a name, which cannot be written
    in two parts.
    """
    if _OPENS not in text:
        return text
    parts: list[str] = []
    before = ""
    for token in scan(text):
        if before.endswith("$") and token.text.startswith("{"):
            raise _refusal(text, token.start - 1)
        parts.append(_apart(text, token) if _OPENS in token.text else token.text)
        before = token.text
    return "".join(parts)


def _apart(text: str, token: Token) -> str:
    """The token without ``${``."""
    if token.kind == COMMENT:
        return token.text.replace(_OPENS, "$ {")
    if token.kind != STRING:
        raise _refusal(text, token.start)
    quote = token.text[-1]
    prefix = token.text[: token.text.index(quote)]
    return token.text.replace(_OPENS, f"${quote} {prefix}{quote}{{")


def _refusal(text: str, at: int) -> UnsupportedFeature:
    line, column = place(text, at)
    return UnsupportedFeature(
        "${...} outside of a text, which Spark would replace",
        hint="write the value, or bind it as an argument (:name); a name cannot hold ${",
        data={"line": line, "column": column},
        position=Position(line, column),
    )
