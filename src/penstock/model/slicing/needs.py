"""Map the slices of models to those of the models that they read: one edge for each. Pure.

By their kinds: what has a place in time needs the moments in common, whatever the lengths and zones
of the slices; values need the same value; a whole table needs every slice. What a query says of the
bounds of its slice (`windows`) goes before that, and what a model says (``needs``) before both.
Views and EMBEDDED models are looked through: their readers need what these read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from penstock.errors import Diagnostic
from penstock.model.definition.graph import makers_of, table_key
from penstock.model.definition.model import Model
from penstock.model.query.query import Query
from penstock.model.script.sources import QuerySource, is_earlier, table_read
from penstock.model.slicing.windows import SourceWindow, looked_through, windows_of
from penstock.model.time.needs import COMMON, EARLIER, Need, Rule, Shift, Window
from penstock.model.time.partition import TIME_KINDS
from penstock.model.values.strategy import Output
from penstock.sql.identifiers import fold

Windows = tuple[SourceWindow | None, ...]
#: read of a query what each place of its sources says: `windows_of`, or what is remembered of it
ReadWindows = Callable[[Query], Mapping[QuerySource, Windows]]


class Sliced(Enum):
    """Say what the slices of a table have."""

    MOMENTS = "moments"
    VALUES = "values"
    NOT = "nothing: it is whole"


@dataclass(frozen=True, slots=True)
class Edge:
    """A model that another reads; ``through`` are the views between them, from the reader on."""

    reader: Model
    upstream: Model
    need: Need
    through: tuple[str, ...] = ()

    @property
    def is_self(self) -> bool:
        return self.reader.name == self.upstream.name

    @property
    def is_equal(self) -> bool:
        """Return whether a slice needs the one that is called as it is, and no other: both have the
        same slices by time.
        """
        same = self.reader.slicing == self.upstream.slicing and self.reader.partition is not None
        return same and self.need.rule is Rule.MOMENTS and self.need.windows == (COMMON,)


def sliced(model: Model) -> Sliced:
    if model.by_time is not None:
        return Sliced.MOMENTS
    if model.partition is None:
        return Sliced.NOT
    return Sliced.MOMENTS if model.partition.kind in TIME_KINDS else Sliced.VALUES


def edges_of(
    models: Iterable[Model],
    partition_column: Callable[[str], str] = lambda _: "_wm_partition",
    windows: ReadWindows = windows_of,
) -> Mapping[str, tuple[Edge, ...]]:
    """Return the edges of each model to what it reads, by its name.

    ``partition_column`` is by lake the column that holds the value of each row's slice.
    """
    every = {model.name: model for model in models}
    makers = makers_of(every.values())
    made = {key: every[name] for key, name in makers.items()}
    found: dict[str, tuple[Edge, ...]] = {}
    for model in every.values():
        by_upstream: dict[str, list[Edge]] = {}
        for edge in _edges(model, _Reading(made, windows), partition_column):
            by_upstream.setdefault(edge.upstream.name, []).append(edge)
        found[model.name] = tuple(_joined(edges) for edges in by_upstream.values())
    return found


def edge_by_kinds(reader: Model, upstream: Model) -> Edge:
    """Return the edge to a model that one does not read itself, as by what lies between them."""
    return Edge(reader, upstream, _need(reader, upstream, (), lambda _: ""))


@dataclass(frozen=True, slots=True)
class _Reading:
    """The models by the tables that they make, and how their queries are read."""

    made: Mapping[str, Model]
    windows: ReadWindows


def _edges(
    model: Model, reading: _Reading, partition_column: Callable[[str], str]
) -> Iterator[Edge]:
    declared = {table_key(table): need for table, need in model.input_needs}
    for key, windows, through in _read(model, reading, ()):
        upstream = reading.made[key]
        need = declared.get(key) or _need(model, upstream, windows, partition_column)
        if need.rule is Rule.SAME and _are_alike(model, upstream):
            need = replace(need, rule=Rule.MOMENTS)  # the same slices have the same moments
        yield Edge(model, upstream, need, through)


def _are_alike(model: Model, upstream: Model) -> bool:
    by_time = sliced(model) is sliced(upstream) is Sliced.MOMENTS
    return by_time and model.slicing == upstream.slicing


def _read(
    model: Model, reading: _Reading, through: tuple[str, ...]
) -> Iterator[tuple[str, Windows, tuple[str, ...]]]:
    """Yield the tables of models that one reads, each with what its query says of it."""
    windows, keys = _by_table(model, reading.windows)
    for key in keys:
        upstream = reading.made.get(key)
        if upstream is None or not upstream.strategy.runs:
            continue  # what an EMBEDDED model reads is among the sources
        if upstream is model and model.strategy.by_statements:
            continue  # statements name their own table to change it
        if upstream.strategy.output is Output.VIEW and upstream is not model:
            for below, inner, views in _read(upstream, reading, (*through, upstream.name)):
                yield below, looked_through(windows.get(key, ()), inner, upstream.query), views
        else:
            yield key, windows.get(key, ()), through


def said_of(model: Model, windows: ReadWindows = windows_of) -> Mapping[str, Windows]:
    """Return what a model's query says of each place where it reads a table, by the tables."""
    return _by_table(model, windows)[0]


def _by_table(model: Model, read: ReadWindows) -> tuple[dict[str, Windows], tuple[str, ...]]:
    inputs = model.changing_inputs
    said = read(model.query) if inputs else {}
    windows: dict[str, Windows] = {}
    for source in model.query.sources if inputs else ():
        table = table_read(source)
        if table is not None and not is_earlier(source):
            key = table_key(table)
            windows[key] = (*windows.get(key, ()), *said.get(source, (None,)))
    return windows, tuple(table_key(table) for table in inputs)


def _need(
    model: Model, upstream: Model, said: Windows, partition_column: Callable[[str], str]
) -> Need:
    rule = _RULES[sliced(model), sliced(upstream)]
    known = [each for each in said if each is not None]
    if rule is Rule.SAME and not _same_values(model, upstream):
        return Need(Rule.TABLE)
    if rule is Rule.TABLE:
        return Need(rule, by_query=bool(known) and len(known) == len(said))
    if rule is not Rule.MOMENTS:
        return Need(rule)
    common = EARLIER if model is upstream else COMMON
    certain = _slice_columns(upstream, partition_column)
    windows = dict.fromkeys(each.window for each in known)
    if not known or len(known) < len(said) or any(each.column not in certain for each in known):
        windows = dict.fromkeys((common, *windows)) if model is not upstream or known else {}
    if not windows or tuple(windows) == (common,):
        return Need(rule, (common,))
    return Need(rule, _widest(tuple(windows)), by_query=True)


def _widest(windows: Sequence[Window]) -> tuple[Window, ...]:
    """Leave out the window of the slice itself where another one contains it."""
    others = tuple(each for each in windows if each != COMMON)
    covers = any(_covers(each) for each in others)
    return others if covers else tuple(windows)


def _covers(window: Window) -> bool:
    """Return whether a window has at least the moments of the slice itself."""
    first, last = window.first, window.last
    begins = first is None or (not first.is_end and _sign(first.shift) <= 0)
    return begins and last.is_end and _sign(last.shift) >= 0


def _sign(shift: Shift) -> int:
    seconds = (shift.months * 28 + shift.days) * 86_400 + shift.rest.total_seconds()
    return (seconds > 0) - (seconds < 0)


def _slice_columns(upstream: Model, partition_column: Callable[[str], str]) -> frozenset[str]:
    """Return the columns that say of each row which slice it is of."""
    if upstream.ranges is not None and upstream.ranges.column is not None:
        return frozenset({fold(upstream.ranges.column.name)})
    return frozenset({fold(partition_column(upstream.target.lake))})


def _same_values(model: Model, upstream: Model) -> bool:
    mine, others = model.partition, upstream.partition
    return mine is not None and others is not None and mine.key == others.key


def _joined(edges: Sequence[Edge]) -> Edge:
    """Return one edge for all the ways on which a model is read: it needs what any of them does."""
    first, *others = edges
    if not others:
        return first
    rules = {edge.need.rule for edge in edges}
    rule = next(each for each in _WIDEST_FIRST if each in rules)
    windows = dict.fromkeys(w for e in edges if e.need.rule is rule for w in e.need.windows)
    said = next((edge.need.said for edge in edges if edge.need.said), "")
    by_query = any(edge.need.by_query for edge in edges)
    return replace(first, need=Need(rule, tuple(windows), said, by_query))


def needs_findings(
    models: Iterable[Model], edges: Mapping[str, tuple[Edge, ...]]
) -> Iterator[Diagnostic]:
    """Yield what models say they need that cannot be, or that their queries say otherwise."""
    every = list(models)
    makers, by_name = makers_of(every), {model.name: model for model in every}
    made = {key: by_name[name] for key, name in makers.items()}
    for model in every:
        by_table = {table_key(edge.upstream.target): edge for edge in edges.get(model.name, ())}
        unmade = frozenset(_unmade(model, made)) if model.input_needs else frozenset[str]()
        for number, (table, need) in enumerate(model.input_needs):
            place = model.place(f"needs:{number}")
            edge = by_table.get(table_key(table))
            if edge is None and table_key(table) in unmade:
                if need.rule not in (Rule.ALL, Rule.NONE):
                    message = f"`needs {table} {need.said}`: no model makes it, so it has no slices"
                    yield Diagnostic("error", message, place, "write all or none", "needs")
                continue
            if edge is None:
                message = f"`needs {table} {need.said}`: the model reads no such table"
                hint = "name a table that this model reads"
                yield Diagnostic("error", message, place, hint, "needs")
                continue
            for message, hint in _wrong(model, edge):
                yield Diagnostic(
                    "error", f"`needs {table} {need.said}`: {message}", place, hint, "needs"
                )


def _unmade(model: Model, made: Mapping[str, Model]) -> Iterator[str]:
    """Yield the tables that a model reads and none makes, those of views among them."""
    for key in map(table_key, model.changing_inputs):
        maker = made.get(key)
        if maker is None:
            yield key
        elif maker is not model and maker.strategy.output is Output.VIEW:
            yield from _unmade(maker, made)


def _wrong(model: Model, edge: Edge) -> Iterator[tuple[str, str]]:
    """Yield what does not fit the slices of the two models, or the reader's query."""
    kinds, upstream = (sliced(model), sliced(edge.upstream)), edge.upstream.name
    if edge.need.rule is Rule.SAME and Sliced.NOT in kinds:
        whole = model.name if kinds[0] is Sliced.NOT else upstream
        yield f"{whole} has no slices, so none is the same", "write all, or take the line away"
    elif edge.need.rule is Rule.SAME and model.slicing != edge.upstream.slicing:
        yield f"{upstream} has other slices", "write lag=7d, or take the line away"
    if edge.need.rule is Rule.MOMENTS and set(kinds) != {Sliced.MOMENTS}:
        yield "a lag is of slices by time, which not both have", "write all or none"


_WIDEST_FIRST = (Rule.ALL, Rule.MOMENTS, Rule.SAME, Rule.TABLE, Rule.NONE)
_RULES: Mapping[tuple[Sliced, Sliced], Rule] = {
    (Sliced.MOMENTS, Sliced.MOMENTS): Rule.MOMENTS,
    (Sliced.VALUES, Sliced.VALUES): Rule.SAME,
    (Sliced.MOMENTS, Sliced.VALUES): Rule.TABLE,
    (Sliced.VALUES, Sliced.MOMENTS): Rule.TABLE,
    (Sliced.MOMENTS, Sliced.NOT): Rule.TABLE,
    (Sliced.VALUES, Sliced.NOT): Rule.TABLE,
    **{(Sliced.NOT, each): Rule.ALL for each in Sliced},
}
