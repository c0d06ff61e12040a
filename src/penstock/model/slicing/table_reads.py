"""Map models to the tables whose changes of rows, not of slices, put their slices behind. Pure.

Those are tables that no model makes, and whole tables that a sliced model reads. A whole table is
behind any change of rows in a table that no model makes, and so is a slice of a model that says
``needs <asset> all``. A slice by time is behind late rows only: of what its query reads by the
bounds of its slice in every place (`windows`). The value of a dynamic slice bounds no moments: a
slice that is asked for by itself looks at every change of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from penstock.model.definition.graph import makers_by_table, table_key
from penstock.model.definition.model import Model
from penstock.model.slicing.needs import (
    ReadWindows,
    Sliced,
    sliced,
    table_windows,
    uses_by_table,
    uses_through,
)
from penstock.model.slicing.windows import Use, windows_of
from penstock.model.time.needs import Rule, Window
from penstock.model.time.slice import Slice, span_of, zone_of
from penstock.model.values.asset import TableName
from penstock.model.values.strategy import Output


@dataclass(frozen=True, slots=True)
class TableRead:
    """``windows`` say what the query reads of the table, by the bounds of a slice of the reader,
    each with the column that they bound.
    Without any every change of rows counts; ``only_asked``: only where a slice is asked for by
    itself, as it puts none behind.
    """

    reader: Model
    table: TableName
    windows: tuple[tuple[str, Window], ...] = ()
    only_asked: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns, folded, that the query compares with the bounds of its slice."""
        return tuple(dict.fromkeys(column for column, _ in self.windows))

    def moments(self, slice_: Slice) -> Iterator[tuple[str, datetime, datetime]]:
        """Yield from when until when a slice reads rows, by each column that says so."""
        spec = self.reader.partition
        own, zone = span_of(slice_, spec), zone_of(spec)
        if own is None:
            return
        for column, window in self.windows:
            moments = window.of(own, zone)
            if moments is not None:
                yield column, moments.start, moments.end


def table_reads_of(
    models: Iterable[Model],
    windows: ReadWindows = windows_of,
    makers: Mapping[str, Model] | None = None,
) -> Mapping[str, tuple[TableRead, ...]]:
    """Return what models read of such tables, by their names; those that read none are left out.

    Args:
        models: The models.
        windows: Reads how a query uses its sources.
        makers: The models of the project by their tables, where ``models`` are not all.

    Returns:
        The reads, by the names of models.
    """
    models = tuple(models)
    makers = makers_by_table(models) if makers is None else makers
    found: dict[str, tuple[TableRead, ...]] = {}
    for model in models:
        if model.strategy.runs and not model.strategy.by_statements:
            reads = tuple(_reads(model, makers, windows))
            if reads:
                found[model.name] = reads
    return found


def unmade_reads(models: Iterable[Model]) -> Mapping[str, tuple[TableName, ...]]:
    """Return the tables that no model makes and models read, through views and EMBEDDED too, by the
    names of the models; without those that a model ``needs none`` of.
    """
    models = tuple(models)
    made = makers_by_table(models)
    found: dict[str, tuple[TableName, ...]] = {}
    for model in models:
        free = {table_key(table) for table, need in model.input_needs if need.rule is Rule.NONE}
        reads = {table_key(table): table for table in _below(model, made)}
        if model.strategy.runs and model.strategy.output is not Output.VIEW:
            found[model.name] = tuple(
                table for key, table in reads.items() if key not in made and key not in free
            )
    return {name: tables for name, tables in found.items() if tables}


def _reads(model: Model, made: Mapping[str, Model], read: ReadWindows) -> Iterator[TableRead]:
    declared = {table_key(table): need.rule for table, need in model.input_needs}
    is_whole, bounded = sliced(model) is Sliced.NOT, list[TableName]()
    below = {table_key(table): table for table in _below(model, made)}
    for key, table in below.items():
        rule, maker = declared.get(key), made.get(key)
        if rule is Rule.NONE or (rule is not None and maker is not None):
            continue  # slices, or the whole table of a model: `needs` has it
        if rule is Rule.ALL or (is_whole and maker is None):
            yield TableRead(model, table)
        elif not is_whole and (maker is None or sliced(maker) is Sliced.NOT):
            bounded.append(table)
    uses = _uses(model, made, read) if bounded and sliced(model) is Sliced.MOMENTS else {}
    for table in bounded:
        windows = [table_windows(use) for use in uses.get(table_key(table), ())]
        if windows and all(windows):
            yield TableRead(model, table, tuple(dict.fromkeys(w for of in windows for w in of)))
        elif table_key(table) not in made:  # else `needs` has it
            yield TableRead(model, table, only_asked=True)


def _below(model: Model, made: Mapping[str, Model]) -> Iterator[TableName]:
    """Yield the tables that a model reads, those of views that it reads among them."""
    triggers = set(model.on) - {*model.reads, *model.depends_on}
    for table in model.changing_inputs:
        maker = made.get(table_key(table))
        if table in triggers or (maker is not None and (maker is model or not maker.strategy.runs)):
            continue
        if maker is not None and maker.strategy.output is Output.VIEW:
            yield from _below(maker, made)
        else:
            yield table


def _uses(
    model: Model, made: Mapping[str, Model], read: ReadWindows
) -> Mapping[str, tuple[Use, ...]]:
    """Return how a query, and those of views that it reads, use each table."""
    found: dict[str, tuple[Use, ...]] = {}
    waiting = [(model, uses_by_table(model, read))]
    while waiting:
        reader, uses = waiting.pop()
        for key, own in uses.items():
            maker = made.get(key)
            if maker is None or maker is reader or maker.strategy.output is not Output.VIEW:
                found[key] = (*found.get(key, ()), *own)
            else:
                waiting.append((maker, uses_through(maker, own, read)))
    return found
