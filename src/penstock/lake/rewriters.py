"""What stands in for the names of a query: each rewriter sees its analysis and adds edits.

A new kind of name is a function in `REWRITERS`; they run in its order, and later ones see what
earlier ones noted in `Work`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from penstock.lake import travel
from penstock.lake.edits import Edit, stand_in
from penstock.lake.naming import fold
from penstock.lake.references import Analysis, Reference
from penstock.lake.snapshot import At

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a query wants read for one of its references; ``at`` where it names a snapshot."""

    reference: Reference
    analysis: Analysis
    at: At | None


class Names(Protocol):
    """What names mean: given by who runs the query."""

    def read(self, wanted: Wanted) -> DataFrame:
        """The rows of a table or view. Raises TableNotFound, SchemaNotFound."""
        ...


@dataclass(slots=True)
class Work:
    """One query on its way to Spark: what it is given, and the DataFrames that stand in."""

    spark: SparkSession
    names: Names
    args: Mapping[str, Any]
    zone: str
    views: Mapping[str, DataFrame]  # by folded name
    frames: dict[str, DataFrame] = field(default_factory=dict)

    def stand_in(self, df: DataFrame) -> str:
        """``{t0}``, which Spark replaces by a view of its own and drops after the analysis."""
        name = f"t{len(self.frames)}"
        self.frames[name] = df
        return f"{{{name}}}"


Rewriter = Callable[[Analysis, Work], Iterable[Edit]]


def tables(analysis: Analysis, work: Work) -> Iterable[Edit]:
    """The tables and views that the query reads."""
    for one in analysis.tables:
        view = work.stand_in(_rows(one, analysis, work))
        name = None if one.aliased else one.name
        yield stand_in(analysis.text, one.start, one.end, view=view, name=name)


def qualifiers(analysis: Analysis, _: Work) -> Iterable[Edit]:
    """``main.`` of ``main.orders.id``: what stands in has a name without a schema."""
    named = {(fold(t.schema), fold(t.name)) for t in analysis.tables if t.schema}
    for one in analysis.qualifiers:
        if (fold(one.schema), fold(one.name)) in named:
            yield Edit(one.start, one.end, "")


REWRITERS: tuple[Rewriter, ...] = (tables, qualifiers)


def _rows(one: Reference, analysis: Analysis, work: Work) -> DataFrame:
    if one.schema is None and fold(one.name) in work.views:
        return work.views[fold(one.name)]
    at = None if one.travel is None else travel.point(one.travel, work.args, work.zone)
    return work.names.read(Wanted(one, analysis, at))
