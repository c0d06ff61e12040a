"""From columns over several hops: what they derive from, or what derives from them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from penstock.errors import ArgumentError
from penstock.model.definition.graph import names_of
from penstock.model.definition.model import Model
from penstock.model.lineage.models import PYTHON, ProjectLineage
from penstock.model.lineage.values import ROWS, Input, ModelLineage, Unknown
from penstock.model.script.file_uris import asset_key
from penstock.rendering.columns import html_table
from penstock.rendering.text import line, listed
from penstock.sql.identifiers import did_you_mean, fold, nearest

UPSTREAM, DOWNSTREAM = "upstream", "downstream"


@dataclass(frozen=True, slots=True)
class TracedColumn:
    """A column that was reached, and its next ones: its inputs, or what has it as an input.

    ``model`` is ``None`` for what no model makes; ``origin``, ``unknown`` and ``contradicts`` are
    those of `penstock.model.lineage.values.OutputColumn`.
    """

    asset: str
    column: str
    model: str | None = None
    links: tuple[Input, ...] = ()
    origin: str | None = None
    unknown: tuple[Unknown, ...] = ()
    contradicts: tuple[Input, ...] = ()

    def __str__(self) -> str:
        return f"{self.asset}.{self.column}"


@dataclass(frozen=True, slots=True)
class Trace:
    """``columns`` are all that was reached, each once: the first ``starts`` are those asked for.

    ``rows`` decide which rows of the model there are, and ``unknown`` says why more columns may
    belong to it; both are empty where no model makes the asset.
    """

    asset: str
    direction: str
    columns: tuple[TracedColumn, ...]
    starts: int
    rows: tuple[Input, ...] = ()
    unknown: tuple[Unknown, ...] = ()

    def __repr__(self) -> str:
        names = [column.column for column in self.columns[: self.starts]]
        number = f"{len(self.columns)} columns"
        return line(self, f"{self.direction} of {self.asset}", listed(names), number)

    def _repr_html_(self) -> str:
        rows = [
            (str(column), ", ".join(f"{link.asset}.{link.column}" for link in column.links))
            for column in self.columns
        ]
        derives = "derives from" if self.direction == "upstream" else "is read by"
        return html_table(("column", derives), rows)

    def of(self, link: Input) -> TracedColumn | None:
        """The column that a link leads to."""
        key = _key(link.asset, link.column)
        return next((c for c in self.columns if _key(c.asset, c.column) == key), None)


Key = tuple[str, str]
Links = Mapping[Key, Sequence[Input]]


def _key(asset: str, column: str) -> Key:
    return asset_key(asset), fold(column)


def trace(
    lineage: ProjectLineage,
    models: Sequence[Model],
    of: str,
    direction: str = UPSTREAM,
    *,
    rows: bool = False,
) -> Trace:
    """Follow the columns of the asset that ``of`` names, or the one column. With ``rows`` follow
    also what decides which rows there are. Raises ArgumentError for a direction or a column that
    there is not.
    """
    if direction not in {UPSTREAM, DOWNSTREAM}:
        raise ArgumentError(
            f"{direction!r} is not a direction", hint=f"write {UPSTREAM} or {DOWNSTREAM}"
        )
    targets = {name: str(model.target) for model in models for name in names_of(model)}
    asset, column = named(of, targets, lineage)
    made = lineage.of(asset)
    starts = _starts(lineage, made, asset, column)
    links = _upwards(lineage, rows) if direction == UPSTREAM else _downwards(lineage, rows)
    reached: dict[Key, TracedColumn] = {}
    waiting = list(starts)
    for item in waiting:  # it grows
        key = _key(item.asset, item.column)
        if key in reached:
            continue
        following = tuple(links.get(key, ()))
        reached[key] = _traced(lineage, item, following)
        waiting += following
    return Trace(
        made.target if made else starts[0].asset,
        direction,
        tuple(reached.values()),
        len({_key(each.asset, each.column) for each in starts}),
        made.rows if made else (),
        made.unknown if made else (),
    )


def columns_read(lineage: ProjectLineage) -> dict[str, list[str]]:
    """The columns that models read, by what they are of."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for made in lineage.models.values():
        for item in (item for column in made.columns for item in made.inputs_of(column)):
            found[item.asset][item.column] = None
    return {asset: list(names) for asset, names in found.items()}


def _starts(
    lineage: ProjectLineage, made: ModelLineage | None, asset: str, column: str | None
) -> list[Input]:
    known = {name.casefold(): (name, of) for name, of in columns_read(lineage).items()}
    name, columns = known.get(asset.casefold(), (asset, []))
    if made is not None:
        more = () if made.complete else (each for each in columns if each != ROWS)
        name, columns = made.target, list(dict.fromkeys((*made.names, *more)))
    chosen = [each for each in columns if column is None or fold(each) == fold(column)]
    if not chosen and (column is not None or not columns):
        raise _no_column(name, column, columns, made)
    return [Input(name, each) for each in chosen]


_UNKNOWN = (
    "run it once, describe what it reads in external_models.yaml, or declare them: "
    "-- column name <- ducklake://main/table.column"
)


def _no_column(
    asset: str, column: str | None, columns: Sequence[str], made: ModelLineage | None
) -> ArgumentError:
    if made is not None and not made.complete and (column is None or not columns):
        why = made.unknown[0].reason if made.unknown else ""
        return ArgumentError(
            f"the columns of {asset} are not known: {why}",
            hint=None if why == PYTHON else _UNKNOWN,
        )
    hint = did_you_mean(column or "", columns, "columns")
    if made is not None and not made.complete:
        hint += "; they are not all known"
    elif made is None:
        hint += "; of what no model makes, those that models read"
    return ArgumentError(f"{asset} has no column {column!r}", hint=hint)


def _traced(lineage: ProjectLineage, item: Input, links: tuple[Input, ...]) -> TracedColumn:
    made = lineage.of(item.asset)
    columns = () if made is None else made.columns
    column = next((c for c in columns if fold(c.name) == fold(item.column)), None)
    model = None if made is None else made.model or None
    if made is not None and column is None:
        unknown = () if item.column == ROWS else made.unknown
        return TracedColumn(item.asset, item.column, model, links, unknown=unknown)
    if column is None:
        return TracedColumn(item.asset, item.column, model, links)
    return TracedColumn(
        item.asset, column.name, model, links, column.origin, column.unknown, column.contradicts
    )


def _upwards(lineage: ProjectLineage, rows: bool) -> Links:
    found: dict[Key, Sequence[Input]] = {}
    for made in lineage.models.values():
        for column in made.columns:
            inputs = made.inputs_of(column) if rows else column.inputs
            found[_key(made.target, column.name)] = inputs
        found[_key(made.target, ROWS)] = made.rows if rows else ()
    return found


def _downwards(lineage: ProjectLineage, rows: bool) -> Links:
    """Return what decides which rows there are leads to the rows of the reader."""
    found: dict[Key, dict[Input, None]] = defaultdict(dict)
    for made in lineage.models.values():
        for column in made.columns:
            _add(found, column.inputs, made.target, column.name)
        _add(found, made.rows, made.target, ROWS)
        if rows:
            every = (Input(made.target, column.name) for column in made.columns)
            found[_key(made.target, ROWS)] |= dict.fromkeys(every)
    return {key: tuple(links) for key, links in found.items()}


def _add(
    found: dict[Key, dict[Input, None]], inputs: Iterable[Input], asset: str, column: str
) -> None:
    for item in inputs:
        found[_key(item.asset, item.column)][Input(asset, column, item.kind)] = None


def named(of: str, models: Mapping[str, str], lineage: ProjectLineage) -> tuple[str, str | None]:
    """The asset, and the column if any, that ``of`` names.

    ``models`` are the tables that models make by all that these are called. Raises ArgumentError
    with the nearest name.
    """
    tables = {asset.casefold(): asset for asset in columns_read(lineage)}
    tables |= {made.target.casefold(): made.target for made in lineage.models.values()}
    before, dot, column = of.rpartition(".")
    for name, rest in ((of, None), (before, column)):
        known = models.get(name) or tables.get(name.casefold())
        known = known or tables.get(f"main.{name}".casefold())
        if known is not None and (rest is None or (dot and rest)):
            return known, rest
    near = nearest(of, models) or nearest(before, models)
    listed = ", ".join(sorted(models)[:10]) or "none"
    raise ArgumentError(
        f"model or column {of!r} does not exist",
        hint=f"did you mean {near!r}?" if near else f"write MODEL or MODEL.COLUMN: {listed}",
    )
