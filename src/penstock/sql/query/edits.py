"""Edits of a text, and the way back from what was made of it; FROM before SELECT is one of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from penstock.sql.identifiers import fold, quote_identifier
from penstock.sql.text import breaks
from penstock.sql.tokens import NAME, NOT_CALLED, WORD, Token, depth_of


@dataclass(frozen=True, slots=True)
class Edit:
    """``text[start:end]`` becomes ``text``."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Anchor:
    """From offset ``at`` of the new text on, text came from ``origin`` of the old one.

    ``exact`` text was kept letter by letter; other text points at ``origin`` as a whole.
    """

    at: int
    origin: int
    exact: bool


@dataclass(frozen=True, slots=True)
class Mapped:
    """New text with its anchors in order of ``at``."""

    text: str
    anchors: tuple[Anchor, ...]

    @property
    def is_edited(self) -> bool:
        """Return whether any of its text is new."""
        return not all(anchor.exact for anchor in self.anchors)

    def back(self, offset: int) -> int:
        """Return the offset in the old text that ``offset`` of the new one came from."""
        if not self.anchors:
            return offset
        index = bisect_right(self.anchors, offset, key=lambda anchor: anchor.at) - 1
        anchor = self.anchors[max(index, 0)]
        return anchor.origin + max(offset - anchor.at, 0) if anchor.exact else anchor.origin

    def replaced(self, old: str) -> Iterator[tuple[int, str, str]]:
        """Yield what stands in place of other text of ``old``: where, in place of what, and it."""
        ends = (*self.anchors[1:], Anchor(len(self.text), len(old), exact=True))
        for anchor, end in zip(self.anchors, ends, strict=True):
            if not anchor.exact:
                yield anchor.at, old[anchor.origin : end.origin], self.text[anchor.at : end.at]


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of new text and the offset of the old text that it stands for."""

    text: str
    origin: int
    exact: bool


def assemble(pieces: Iterable[Piece]) -> Mapped:
    """Join pieces, one after another, into one text."""
    texts: list[str] = []
    anchors: list[Anchor] = []
    at = 0
    for piece in pieces:
        if anchors and anchors[-1].at == at:
            anchors.pop()  # of an empty piece, which is known only by what follows it
        anchors.append(Anchor(at, piece.origin, piece.exact))
        texts.append(piece.text)
        at += len(piece.text)
    return Mapped("".join(texts), tuple(anchors))


def edited(text: str, edits: Iterable[Edit], start: int = 0, end: int | None = None) -> Mapped:
    """Make ``edits``, which must not overlap, in ``text[start:end]``."""
    return assemble(pieces(text, edits, start, end))


def pieces(text: str, edits: Iterable[Edit], start: int = 0, end: int | None = None) -> list[Piece]:
    """Make edits as `edited` does, and return the pieces."""
    stop = len(text) if end is None else end
    made: list[Piece] = []
    position = start
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        if edit.start < position:
            raise ValueError(f"edits overlap at {edit.start}")
        made.append(Piece(text[position : edit.start], position, exact=True))
        made.append(Piece(edit.text, edit.start, exact=False))
        position = edit.end
    return [*made, Piece(text[position:stop], position, exact=True)]


def template(text: str, edits: Iterable[Edit]) -> str:
    """Make ``edits`` in a text in which ``{t0}`` stands for a DataFrame.

    Its own braces are doubled, since Spark formats it.
    """
    return "".join(braces(p.text) if p.exact else p.text for p in pieces(text, edits))


def braces(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def stand_in(text: str, start: int, end: int, *, view: str, name: str | None) -> Edit:
    """Put ``{t0}`` in place of a table, called ``name`` unless its alias follows in the text."""
    shown = view if name is None else f"({view} AS {braces(quote_identifier(name, mark='`'))})"
    return Edit(start, end, shown + breaks(text, start, end))


def touches_line(text: str, edits: Iterable[Edit], line: int | None) -> bool:
    """Return whether an edit is on a line (from 1): columns after it are not those of the text."""
    return any(text.count("\n", 0, edit.start) + 1 == line for edit in edits)


_SET_WORDS = ("UNION", "EXCEPT", "INTERSECT", "MINUS", "ALL", "DISTINCT")
_STRUCTURE = frozenset({*_SET_WORDS, "(", ")", "WITH", "SELECT", "FROM", "TABLE"})


@dataclass(slots=True)
class _Level:
    """A bracket level: whether a query begins here, and whether a WITH waits for its query."""

    fresh: bool = True
    after_with: bool = False


def from_first(tokens: Sequence[Token]) -> list[Edit]:
    """Write ``FROM x ...`` without SELECT, and ``TABLE x``, as ``SELECT * FROM x``.

    ``FROM x SELECT y`` is Spark's own and stays.
    """
    return [
        Edit(token.start, token.end, "SELECT * FROM")
        for index, token in query_starts(tokens)
        if token.upper == "TABLE" or not has_clause(tokens, index + 1, "SELECT")
    ]


def table_first(tokens: Sequence[Token]) -> list[Edit]:
    """Write ``TABLE x`` as ``SELECT * FROM x``, unless it is an argument of a function."""
    return [
        Edit(token.start, token.end, "SELECT * FROM")
        for index, token in query_starts(tokens)
        if token.upper == "TABLE" and tokens[index + 1].kind in {WORD, NAME}
        if not _is_argument(tokens, index)
    ]


def query_starts(tokens: Sequence[Token]) -> Iterator[tuple[int, Token]]:
    """Yield FROM and TABLE where a query begins with them, ``f(TABLE t)`` among them."""
    levels = [_Level()]
    for index, token in enumerate(tokens):
        level = levels[-1]
        if token.upper not in _STRUCTURE:
            level.fresh = False
            continue
        begins = level.fresh or (level.after_with and tokens[index - 1].text == ")")
        following = tokens[index + 1 : index + 2]
        is_table = token.upper == "TABLE" and bool(following) and following[0].text != "("
        if begins and (token.upper == "FROM" or is_table):
            yield index, token
        if token.text == "(":
            level.fresh = False
            levels.append(_Level())
            continue
        if token.text == ")" and len(levels) > 1:
            levels.pop()
            continue
        level.after_with = token.upper == "WITH" or (level.after_with and token.upper != "SELECT")
        level.fresh = token.upper in _SET_WORDS and (token.upper in _SET_WORDS[:4] or level.fresh)


def _is_argument(tokens: Sequence[Token], index: int) -> bool:
    """Return whether it is the first word in the brackets of a function."""
    opened = index > 1 and tokens[index - 1].text == "("
    caller = tokens[index - 2]
    return opened and caller.kind in {WORD, NAME} and fold(caller.text) not in NOT_CALLED


def has_clause(tokens: Sequence[Token], start: int, word: str) -> bool:
    """Return whether the SELECT around ``tokens[start]`` has this clause from there on."""
    depth = 0
    for token in tokens[start:]:
        depth += depth_of(token)
        if depth < 0 or (depth == 0 and token.upper in _SET_WORDS[:4]):
            return False
        if depth == 0 and token.upper == word:
            return True
    return False
