"""The words of ``MODEL (name value, ...)`` taken apart, with their places.

Read by the tokenizer of all SQL: comments may stand anywhere, and a comma may end the list. What a
value says is for `penstock.model.headers.values`.

A ``MODEL (...)`` that is there, laid out in its canonical form; comments and values stay.

A property a line, names in small letters, kinds in capitals. A value in several lines, or with a
comment inside, is left as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from penstock.errors import Diagnostic
from penstock.model.files.source_map import Source
from penstock.model.values.kinds import KINDS
from penstock.sql.identifiers import nearest
from penstock.sql.tokens import COMMENT, NAME, SPACE, UNCLOSED, WORD, Token, closing, depth_of, scan

MODEL = "MODEL"
# Quotes and backslashes in the list are standard SQL's, whatever the dialect of the query is.
_DIALECT = "duckdb"
_SKIPPED = frozenset({COMMENT, SPACE})
_OPENING = ("(", "[")


class Wrong(Exception):
    """A fault at ``at``, an offset, and what would be right."""

    def __init__(self, at: int, message: str, hint: str | None, rule: str = "model-value") -> None:
        self.at = at
        self.message = message
        self.hint = hint
        self.rule = rule
        super().__init__(message)

    def diagnostic(self, source: Source, severity: str = "error") -> Diagnostic:
        where = source.location(self.at)
        return Diagnostic(severity, self.message, where, self.hint, self.rule)


@dataclass(frozen=True, slots=True)
class Value:
    """The origin of a name: at least one token of ``source``."""

    source: Source = field(repr=False)
    tokens: tuple[Token, ...]

    @property
    def start(self) -> int:
        return self.tokens[0].start

    @property
    def text(self) -> str:
        """As it is written, comments inside included."""
        return self.source.text[self.start : self.tokens[-1].end]

    def wrong(self, message: str, hint: str | None) -> Wrong:
        return Wrong(self.start, message, hint)

    def bracketed(self) -> tuple[Token, ...] | None:
        """Return what is between the brackets, ``(...)`` or ``[...]``, where
        they hold all of it.
        """
        if self.tokens[0].text not in _OPENING or closing(self.tokens, 0) != len(self.tokens) - 1:
            return None
        return self.tokens[1:-1]

    def items(self) -> tuple[Value, ...]:
        """The items of a list in brackets; the value itself where it has none."""
        inside = self.bracketed()
        if inside is None:
            return (self,)
        return tuple(Value(self.source, group) for group in groups(inside, self.tokens[-1].start))


@dataclass(frozen=True, slots=True)
class NamedValue:
    """``name value``; ``name`` is in small letters, ``start`` where it stands."""

    name: str
    start: int
    value: Value


@dataclass(frozen=True, slots=True)
class Block:
    """``MODEL (...)``: where it begins, where the code after it does, and its properties."""

    start: int
    code: int
    properties: tuple[NamedValue, ...]


def begins_model(text: str, start: int) -> bool:
    """Return whether the first code from ``start`` on is ``MODEL (``."""
    tokens = _tokens(text, start)
    first, second = next(tokens, None), next(tokens, None)
    return first is not None and first.upper == MODEL and second is not None and second.text == "("


def read_block(source: Source, start: int) -> Block:
    """The block that begins with the first code from ``start`` on. Raises Wrong."""
    tokens = _tokens(source.text, start)
    word, opening = next(tokens), next(tokens)
    inside, end = _inside(tokens, opening)
    after, found = next(tokens, None), properties(source, inside, end)
    names = (prop.value.tokens[0].value.upper() for prop in found if prop.name == "kind")
    if after is None and any(name in KINDS and KINDS[name].queryless for name in names):
        return Block(word.start, end + 1, found)  # where SQLMesh needs no semicolon either
    if after is None:
        hint = "write its SELECT below"
        raise Wrong(end, f"{MODEL} (...) has no query", hint, "script-no-select")
    if after.text != ";":
        hint = f"end {MODEL} (...) with a semicolon"
        raise Wrong(after.start, f"`{after.text}` follows {MODEL} (...)", hint, "model-syntax")
    return Block(word.start, after.end, found)


def properties(source: Source, tokens: Sequence[Token], end: int) -> tuple[NamedValue, ...]:
    """``name value, name value``; ``end`` is the offset of the bracket after them. Raises Wrong."""
    found: list[NamedValue] = []
    for group in groups(tokens, end):
        first = group[0]
        if first.kind not in {WORD, NAME}:
            hint = "a property is its name and a value, as in `kind FULL`"
            raise Wrong(first.start, f"`{first.text}` is not a property", hint, "model-syntax")
        name = first.value.lower()
        if len(group) == 1:
            hint = f"write `{name} value`, or take it away"
            raise Wrong(first.start, f"`{name}` has no value", hint, "model-syntax")
        found.append(NamedValue(name, first.start, Value(source, group[1:])))
    return tuple(found)


def groups(tokens: Sequence[Token], end: int) -> list[tuple[Token, ...]]:
    """The tokens between commas outside of brackets; the last comma may end them. Raises Wrong."""
    found: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += depth_of(token)
        if token.text == "," and depth == 0:
            if not found[-1]:
                hint = "take it away, or write what is missing before it"
                raise Wrong(token.start, "a comma too many", hint, "model-syntax")
            found.append([])
        else:
            found[-1].append(token)
    if not found[-1]:
        found.pop()
    if depth:
        raise Wrong(end, "the brackets do not match", "close each that opens", "model-syntax")
    return [tuple(group) for group in found]


def _inside(tokens: Iterator[Token], opening: Token) -> tuple[tuple[Token, ...], int]:
    """The tokens up to the bracket that closes, and its offset."""
    inside: list[Token] = []
    depth = 1
    for token in tokens:
        if token.kind == UNCLOSED:
            message = f"`{token.text}` is opened here and never closed"
            raise Wrong(token.start, message, "close it", "unclosed")
        depth += depth_of(token)
        if depth == 0:
            return tuple(inside), token.start
        inside.append(token)
    message = f"the bracket of {MODEL} ( is never closed"
    raise Wrong(opening.start, message, "write ); before the query", "unclosed")


def _tokens(text: str, start: int) -> Iterator[Token]:
    return (token for token in scan(text, _DIALECT, start) if token.kind not in _SKIPPED)


_INDENT = "  "


@dataclass(slots=True)
class _Entry:
    """A property with the comments above it and those behind it."""

    above: list[str] = field(default_factory=list)
    tokens: list[Token] = field(default_factory=list)
    behind: list[str] = field(default_factory=list)


def formatted(source: Source, block: Block) -> str:
    """The block in canonical form, without what is before and after it."""
    *entries, last = _entries(source, block)
    lines: list[str] = []
    for number, entry in enumerate(entries, start=1):
        lines += [_INDENT + comment for comment in entry.above]
        comma = "," if number < len(entries) else ""
        written = f"{_property(source, entry.tokens)}{comma}"
        lines.append(_INDENT + " ".join([written, *entry.behind]))
    lines += [_INDENT + comment for comment in last.above]
    return "\n".join(["MODEL (", *lines, ");"])


def comments(source: Source, block: Block) -> list[str]:
    """The comments inside of the block, as they are written."""
    tokens = scan(source.text, _DIALECT, block.start, block.code)
    return [token.text for token in tokens if token.kind == COMMENT]


def _entries(source: Source, block: Block) -> list[_Entry]:
    """The properties, and a last entry that has the comments below them."""
    entries = [_Entry()]
    comments: list[tuple[Token, bool]] = []  # since the last word, and which begin a line
    depth, end = 0, block.start
    for token in scan(source.text, _DIALECT, block.start, block.code):
        if token.kind == SPACE:
            continue
        depth += depth_of(token)
        current = entries[-1]
        if token.kind == COMMENT:
            begins_line = "\n" in source.text[end : token.start]
            if current.tokens:
                comments.append((token, begins_line))
            elif len(entries) > 1 and not begins_line:
                entries[-2].behind.append(token.text)
            else:
                current.above.append(token.text)
        elif token.text == "," and depth == 1:
            entries.append(_settle(current, comments))
        elif depth > 1 or (depth == 1 and token.text != "("):
            current.tokens += [*(comment for comment, _ in comments), token]
            comments.clear()
        end = token.end
    return [*entries, _settle(entries[-1], comments)] if entries[-1].tokens else entries


def _settle(entry: _Entry, comments: list[tuple[Token, bool]]) -> _Entry:
    """Put comments behind a value; those from the first on that begins a line are of what follows,
    which is returned.
    """
    following = _Entry()
    for comment, begins_line in comments:
        is_later = begins_line or following.above
        (following.above if is_later else entry.behind).append(comment.text)
    comments.clear()
    return following


def _property(source: Source, tokens: Sequence[Token]) -> str:
    name, value = tokens[0].value.lower(), tokens[1:]
    written = source.text[value[0].start : value[-1].end]
    if "\n" not in written and not any(token.kind == COMMENT for token in value):
        written = value[0].text
        for before, token in pairwise(value):
            written += (" " if token.start > before.end else "") + token.text
    if name == "kind" and value[0].kind == WORD:
        written = value[0].text.upper() + written[len(value[0].text) :]
    return f"{name} {written}"


def suggestion(name: str, names: Iterable[str], listed: str) -> str:
    """Return a hint for an unknown name.

    Args:
        name: The name.
        names: The known names.
        listed: The hint where none of them is like it.

    Returns:
        The nearest of the known names as a question, or ``listed``.
    """
    guess = nearest(name, names)
    return f"did you mean {guess}?" if guess else listed
