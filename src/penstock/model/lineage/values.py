"""Column lineage as values: what a column derives from, and why that is not known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.sql.identifiers import fold

VALUE, CONDITION, WINDOW = "value", "condition", "window"
FILTER, JOIN, GROUP = "filter", "join", "group"

#: kind -> what a column that is an input of this kind does
KINDS = {
    VALUE: "the value is computed from it",
    CONDITION: "it chooses the value: CASE, IF, FILTER (WHERE ...)",
    WINDOW: "PARTITION BY or ORDER BY of a window or an aggregate",
    FILTER: "it decides which rows there are: WHERE, HAVING, QUALIFY, ORDER BY with LIMIT",
    JOIN: "it decides which rows are joined: ON, USING, NATURAL",
    GROUP: "it decides which rows become one: GROUP BY, DISTINCT, UNION",
}
#: in place of a column: the rows of the asset, which ``count(*)`` counts
ROWS = "*"

INFERRED, DECLARED, SLICE, VALIDITY = "inferred", "declared", "slice", "validity"


@dataclass(frozen=True, slots=True, order=True)
class Input:
    """``column`` of ``asset`` (a table's name, or a path or URI) and how it acts (`KINDS`)."""

    asset: str
    column: str
    kind: str = VALUE

    def __str__(self) -> str:
        return f"{self.asset}.{self.column}"


@dataclass(frozen=True, slots=True)
class Unknown:
    """The reason why something is not known; ``line`` is that of the script, from 1."""

    reason: str
    line: int | None = None

    def __str__(self) -> str:
        return self.reason if self.line is None else f"line {self.line}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Lack:
    """A column that a query names and that nothing returns; ``asset`` is the table that lacks it,
    ``""`` where that may be any that the query reads. ``line`` and ``position`` are those of the
    script, from 1.
    """

    asset: str
    column: str
    line: int | None = None
    position: int | None = None


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A column of a model's table.

    ``origin`` is ``inferred`` from the query, ``declared`` by a ``column`` line of the header,
    which wins, or ``slice``, the column that Penstock fills in a partitioned table. ``unknown`` are
    reasons why ``inputs`` may not be all. ``contradicts`` is what the query says where a
    declaration says something else.
    """

    name: str
    inputs: tuple[Input, ...] = ()
    origin: str = INFERRED
    unknown: tuple[Unknown, ...] = ()
    contradicts: tuple[Input, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelLineage:
    """The columns of one model, in their order.

    ``rows`` are what decides which rows there are, and so acts on every column. ``unknown`` are
    reasons why there may be more columns, or more in ``rows``. ``complete`` says that ``columns``
    are all that the query makes. ``lacks`` are columns that the query names and nothing returns.
    """

    model: str
    target: str
    columns: tuple[OutputColumn, ...]
    rows: tuple[Input, ...] = ()
    unknown: tuple[Unknown, ...] = ()
    complete: bool = True
    lacks: tuple[Lack, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def lacks_name(self, name: str) -> bool:
        """Return whether none of its columns is called so."""
        return fold(name) not in map(fold, self.names)

    def inputs_of(self, column: OutputColumn) -> tuple[Input, ...]:
        """All that acts on a column: its own inputs, then those of the model's rows."""
        return tuple(dict.fromkeys((*column.inputs, *self.rows)))


def to_dict(lineage: ModelLineage) -> dict[str, Any]:
    """As JSON has it; `from_dict` reads it."""
    return {
        "model": lineage.model,
        "target": lineage.target,
        "columns": [
            {
                "name": column.name,
                "origin": column.origin,
                "inputs": _inputs(column.inputs),
                "unknown": _unknowns(column.unknown),
                "contradicts": _inputs(column.contradicts),
            }
            for column in lineage.columns
        ],
        "rows": _inputs(lineage.rows),
        "unknown": _unknowns(lineage.unknown),
        "complete": lineage.complete,
        "lacks": [[each.asset, each.column, each.line, each.position] for each in lineage.lacks],
    }


def from_dict(data: Mapping[str, Any]) -> ModelLineage:
    """Raises KeyError, TypeError or ValueError for what `to_dict` did not make."""
    return ModelLineage(
        str(data["model"]),
        str(data["target"]),
        tuple(
            OutputColumn(
                str(column["name"]),
                _read_inputs(column["inputs"]),
                str(column["origin"]),
                _read_unknowns(column["unknown"]),
                _read_inputs(column["contradicts"]),
            )
            for column in data["columns"]
        ),
        _read_inputs(data["rows"]),
        _read_unknowns(data["unknown"]),
        bool(data["complete"]),
        tuple(Lack(*values) for values in data["lacks"]),
    )


def _inputs(inputs: Iterable[Input]) -> list[list[str]]:
    return [[item.asset, item.column, item.kind] for item in inputs]


def _unknowns(unknowns: Iterable[Unknown]) -> list[list[Any]]:
    return [[item.reason, item.line] for item in unknowns]


def _read_inputs(rows: Iterable[Iterable[str]]) -> tuple[Input, ...]:
    return tuple(Input(*row) for row in rows)


def _read_unknowns(rows: Iterable[Iterable[Any]]) -> tuple[Unknown, ...]:
    return tuple(Unknown(*row) for row in rows)
