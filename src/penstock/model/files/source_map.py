"""A script's text, edits of it, and the way back from what was made of it to the file."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import Location
from penstock.sql.dialect import SPARK, names_in, normalized
from penstock.sql.text import offset, place


@dataclass(frozen=True, slots=True)
class Written:
    """The file's text as written, where its macros are expanded in another, step by step.

    ``bodies`` are the stretches of the last step's text that come from elsewhere.
    """

    text: str
    steps: tuple[Mapped, ...]
    bodies: tuple[Body, ...] = ()

    def location(self, path: Path, offset: int) -> Location:
        """The place in the file that ``offset`` of the last step's text came from."""
        inside = next((b.origin for b in self.bodies if b.start <= offset < b.end), None)
        for step in reversed(self.steps):
            offset = step.back(offset)
        return Location(path, *place(self.text, offset), inside)


@dataclass(frozen=True, slots=True)
class Body:
    """``text[start:end]`` of an expanded text comes from ``origin``, which is for messages."""

    start: int
    end: int
    origin: str


@dataclass(frozen=True, slots=True)
class Source:
    """A file's text; every offset in the model counts characters of ``text``.

    ``quoted`` are the names in double quotes that the text had, which has them in backticks.
    ``written`` is the file's own text where ``text`` has its macros expanded. ``placed`` is where
    all of a text is that the file does not have: a query that its kind gives.
    """

    path: Path
    text: str
    quoted: frozenset[str] = frozenset()
    written: Written | None = None
    placed: Location | None = None

    @classmethod
    def of(
        cls,
        path: Path,
        text: str,
        dialect: str,
        written: Written | None = None,
        placed: Location | None = None,
    ) -> Source:
        """The source of a script as it is written in its dialect."""
        names = names_in(text) if dialect == SPARK else frozenset()
        return cls(path, normalized(text, dialect), names, written, placed)

    def location(self, offset: int) -> Location:
        if self.placed is not None:
            return self.placed
        if self.written is not None:
            return self.written.location(self.path, offset)
        return Location(self.path, *place(self.text, offset))

    def offset(self, line: int, column: int) -> int:
        """The offset of a place; both count from 1."""
        return offset(self.text, line, column)


@dataclass(frozen=True, slots=True)
class Edit:
    """``text[start:end]`` becomes ``replacement``."""

    start: int
    end: int
    replacement: str


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

    def back(self, offset: int) -> int:
        """The offset in the old text that ``offset`` of the new one came from."""
        if not self.anchors:
            return offset
        index = bisect_right(self.anchors, offset, key=lambda anchor: anchor.at) - 1
        anchor = self.anchors[max(index, 0)]
        return anchor.origin + max(offset - anchor.at, 0) if anchor.exact else anchor.origin


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of new text and the offset of the old text that it stands for."""

    text: str
    origin: int
    exact: bool


def assemble(pieces: Iterable[Piece]) -> Mapped:
    """Pieces one after another, as one text."""
    texts: list[str] = []
    anchors: list[Anchor] = []
    at = 0
    for piece in pieces:
        if piece.text:
            anchors.append(Anchor(at, piece.origin, piece.exact))
            texts.append(piece.text)
            at += len(piece.text)
    return Mapped("".join(texts), tuple(anchors))


def edited(text: str, edits: Iterable[Edit], start: int = 0, end: int | None = None) -> list[Piece]:
    """``text[start:end]`` with ``edits`` made, which must not overlap; in pieces."""
    stop = len(text) if end is None else end
    pieces: list[Piece] = []
    position = start
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        if edit.start < position:
            raise ValueError(f"edits overlap at {edit.start}")
        pieces.append(Piece(text[position : edit.start], position, exact=True))
        pieces.append(Piece(edit.replacement, edit.start, exact=False))
        position = edit.end
    return [*pieces, Piece(text[position:stop], position, exact=True)]
