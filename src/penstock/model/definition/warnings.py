"""Warn of what is seldom meant: conditions on the validity of a history's versions, and models by
time that nothing tells where to begin: they begin yesterday.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from penstock.errors import Diagnostic
from penstock.model.definition.graph import Graph
from penstock.model.definition.model import Model
from penstock.model.script.sources import TableSource
from penstock.model.values.asset import TableName
from penstock.model.values.history import History
from penstock.sql.identifiers import fold
from penstock.sql.tokens import NAME, WORD, Token


def closed_intervals(models: Sequence[Model]) -> Iterator[Diagnostic]:
    """``BETWEEN valid_from AND valid_to`` of a history that another model makes: NULL is the
    ``valid_to`` of an open version, and a moment of change is in two versions.
    """
    histories = {model.target: model.history for model in models if model.history is not None}
    if not histories:
        return
    for model in models:
        found = _read(model, histories)
        for part in model.query.parts if found else ():
            for at, first, last in _betweens(part.statement.tokens):
                if (fold(first.value), fold(last.value)) in found:
                    yield _warning(model, at, first.text, last.text)


def _read(model: Model, histories: Mapping[TableName, History]) -> set[tuple[str, str]]:
    """The validity columns of the histories that a model reads."""
    tables = [source.table for source in model.query.mentioned if isinstance(source, TableSource)]
    read = [histories[table] for table in tables if table in histories]
    return {(fold(history.valid_from), fold(history.valid_to)) for history in read}


def _betweens(tokens: Sequence[Token]) -> Iterator[tuple[Token, Token, Token]]:
    """Each BETWEEN of two columns, with the columns' own names."""
    for at, token in enumerate(tokens):
        if token.upper != "BETWEEN":
            continue
        first = _column(tokens, at + 1)
        middle = len(tokens) if first is None else first + 1
        last = _column(tokens, middle + 1)
        if first is not None and last is not None and tokens[middle].upper == "AND":
            yield token, tokens[first], tokens[last]


def _column(tokens: Sequence[Token], at: int) -> int | None:
    """Return where the own name of a column ends that begins here: ``h.valid_to``."""
    while at < len(tokens) and tokens[at].kind in {WORD, NAME}:
        if at + 1 >= len(tokens) or tokens[at + 1].text != ".":
            return at
        at += 2
    return None


def _warning(model: Model, at: Token, valid_from: str, valid_to: str) -> Diagnostic:
    message = (
        f"BETWEEN {valid_from} AND {valid_to} leaves out versions that are still open, whose "
        f"{valid_to} is NULL, and finds two where one follows another"
    )
    hint = (
        f"write t >= {valid_from} AND (t < {valid_to} OR {valid_to} IS NULL), or "
        f"ASOF JOIN ... AND t >= {valid_from}"
    )
    place = model.query.source.location(at.start)
    return Diagnostic("warning", message, place, hint, "closed-interval")


START_HINT = (
    "write start '2024-01-31' in MODEL (...), start=2024-01-31 in a line `partitioned`, or "
    "start in [project.defaults] of penstock.toml"
)


def begins(first: datetime) -> str:
    """Return what becomes of a model without a start."""
    return f"has no start: its first run begins yesterday, {first:%Y-%m-%d}"


def without_start(models: Sequence[Model]) -> Iterator[Diagnostic]:
    """Warnings; a model begins with the models that it reads, where one of these has a start."""
    by_time = [m for m in models if m.by_time is not None and m.cadence.start is None]
    if not by_time:
        return
    graph, starts = Graph.of(models), {m.name for m in models if m.cadence.start}
    for model in by_time:
        if not starts.intersection(graph.upstream(model.name)):
            message = "the model has no start: its first run begins yesterday"
            place = model.place("time_column")
            yield Diagnostic("warning", message, place, START_HINT, "no-start")
