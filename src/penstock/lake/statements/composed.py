"""A SELECT made of parts of a statement, which knows where each part stood."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from penstock.errors import QueryFailed
from penstock.lake.statements import tokens as words
from penstock.lake.statements.reader import Reader
from penstock.lake.statements.tokens import place

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
        """Text of our own."""
        self.text += text
        return self

    def take(self, span: tuple[int, int]) -> Composed:
        """A part of the statement, as written."""
        start, end = span
        self._parts.append((len(self.text), end - start, start))
        self.text += self.source[start:end]
        return self

    @contextmanager
    def places(self) -> Iterator[None]:
        """Errors inside say where in the statement they are."""
        try:
            yield
        except QueryFailed as problem:
            raise self._placed(problem) from problem.__cause__

    def _placed(self, problem: QueryFailed) -> QueryFailed:
        line = problem.data.get("line")
        if line is None:
            problem.message = _OURS.sub("", problem.message)
            return problem
        column = problem.data.get("column")
        at = self._origin(line, column)
        data = {k: v for k, v in problem.data.items() if k not in {"line", "column"}}
        message = _OURS.sub("", problem.message.split(", at line ")[0])
        if at is not None:
            data["line"], found = place(self.source, at)
            shown = f"{data['line']}"
            if column is not None:
                data["column"] = found
                shown += f":{found}"
            message = f"{message}, at line {shown}"
        told = QueryFailed(message, hint=problem.hint, data=data)
        told.exit_code = problem.exit_code
        return told

    def _origin(self, line: int, column: int | None) -> int | None:
        """Where in the source a place of the text comes from."""
        lines = self.text.split("\n")
        start = sum(len(one) + 1 for one in lines[: line - 1])
        at = start + (column or 1) - 1
        for begin, length, origin in self._parts:
            if begin <= at <= begin + length:
                return origin + at - begin
            if column is None and start < begin + length and begin <= start + len(lines[line - 1]):
                return origin
        return None


def begun(reader: Reader) -> Composed:
    """The start of a SELECT: the WITH of the statement, if it has one."""
    text = Composed(reader.text)
    return text if reader.with_ is None else text.take(reader.with_).add(" ")


def alone(reader: Reader, span: tuple[int, int]) -> str:
    """A query of a statement with blanks before it, so that it keeps its place.

    The statement's WITH stays before it; one of its own is in brackets then.
    """
    source, query = reader.text, reader.text[span[0] : span[1]]
    if reader.with_ is None:
        return _blank(source[: span[0]]) + query
    start, end = reader.with_
    between = _blank(source[end : span[0]])
    if words.tokenize(query)[0].upper == "WITH":
        between, query = f"{between[:-1]}(", f"{query})"
    return _blank(source[:start]) + source[start:end] + between + query


def _blank(text: str) -> str:
    return "".join(c if c == "\n" else " " for c in text)
