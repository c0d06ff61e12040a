"""A script's text, edits of it, and the way back from what was made of it to the file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import Location
from penstock.sql.dialect import SPARK, names_in, normalized
from penstock.sql.query.edits import Mapped
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

    @property
    def expansions(self) -> Iterator[tuple[str, str, str]]:
        """Yield what the steps put in place of other text: from where, if that is known, in place
        of what, and the new text.
        """
        old = self.text
        for step in self.steps:
            bodies = {body.start: body.origin for body in self.bodies}
            origins = bodies if step is self.steps[-1] else {}
            for at, before, made in step.replaced(old):
                yield origins.get(at, ""), before, made
            old = step.text


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
