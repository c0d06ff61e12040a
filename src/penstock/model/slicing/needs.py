"""Map the slices of models to those of the models that they read: one edge for each. Pure.

What a model declares (``needs``) goes before all else. Otherwise the query decides: each place
where it reads the input has to bound a column whose values lie within the slices of the input
(`windows`, `slice_columns`). Where one does not, a slice needs every slice of the input. A whole
table needs every slice, too. Views and EMBEDDED models are looked through: their readers need what
these read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol

from penstock.errors import Diagnostic, Location
from penstock.model.definition.graph import makers_by_table, table_key
from penstock.model.definition.model import Model
from penstock.model.query.query import Query
from penstock.model.script.arguments import PARTITION
from penstock.model.script.sources import QuerySource, is_earlier, table_read
from penstock.model.slicing.comparisons import ColumnWindows
from penstock.model.slicing.condition_reading import Condition
from penstock.model.slicing.evaluation import COLUMN
from penstock.model.slicing.moments import Grain
from penstock.model.slicing.slice_columns import Comparison, SliceColumns, Slices
from penstock.model.slicing.slices_read import Selection, SliceColumn, SlicesRead
from penstock.model.slicing.windows import UNBOUNDED, Columns, Use, windows_of
from penstock.model.time.needs import COMMON, EARLIER, EVERYTHING, Need, Rule, Shift, Window
from penstock.model.time.partition import TIME_KINDS
from penstock.model.time.slice import Slice
from penstock.model.values.strategy import Output
from penstock.sql.identifiers import fold

SLICE = "{partition}"  # the column that stands for the slice that a step in Python reads


class ReadWindows(Protocol):
    """Read how a query uses its sources: `windows_of`, or what is remembered of it."""

    def __call__(
        self, query: Query, *, outer: Use = UNBOUNDED
    ) -> Mapping[QuerySource, tuple[Use, ...]]: ...


class Sliced(Enum):
    """Say what the slices of a table have."""

    MOMENTS = "moments"
    VALUES = "values"
    NOT = "nothing: it is whole"


@dataclass(frozen=True, slots=True)
class Edge:
    """A model that another reads; ``through`` are the views between them, from the reader on.

    ``selection`` chooses among the slices of ``need`` where its windows do not say all.
    """

    reader: Model
    upstream: Model
    need: Need
    through: tuple[str, ...] = ()
    selection: Selection | None = None

    @property
    def is_self(self) -> bool:
        return self.reader.name == self.upstream.name

    @property
    def is_equal(self) -> bool:
        """Return whether a slice needs the one that is called as it is, and no other: both have the
        same slices by time.
        """
        same = self.reader.slicing == self.upstream.slicing and self.reader.partition is not None
        is_common = self.need.rule is Rule.MOMENTS and self.need.windows == (COMMON,)
        return same and is_common and self.selection is None

    def keeps(self, slice_: Slice) -> Callable[[Slice], bool]:
        """Return what tells whether a slice needs one of the input, among those of ``need``.

        Args:
            slice_: A slice of the reader.

        Returns:
            A function of a slice of the input.
        """
        return (lambda _: True) if self.selection is None else self.selection.keeps(slice_)


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
    zone: str = "UTC",
    only: Iterable[Model] | None = None,
) -> Mapping[str, tuple[Edge, ...]]:
    """Return the edges of each model to what it reads, by its name.

    ``partition_column`` is by lake the column that holds the value of each row's slice, ``zone``
    the time zone of the session. ``only`` are the models whose edges are asked for; None for all.
    """
    models = tuple(models)
    find = edge_finder(makers_by_table(models), partition_column, windows, zone)
    return find(models if only is None else only)


def edge_finder(
    made: Mapping[str, Model],
    partition_column: Callable[[str], str] = lambda _: "_wm_partition",
    windows: ReadWindows = windows_of,
    zone: str = "UTC",
) -> Callable[[Iterable[Model]], dict[str, tuple[Edge, ...]]]:
    """Return what finds the edges of some models of a project, as `edges_of` does.

    Args:
        made: The models of the project by their tables (`makers_by_table`).
        partition_column: By lake the column that holds the value of each row's slice.
        windows: Reads how a query uses its sources.
        zone: The time zone of the session.

    Returns:
        A function of models, which returns their edges by their names.
    """
    reading = _Reading(made, windows, SliceColumns(made, partition_column, zone))

    def find(models: Iterable[Model]) -> dict[str, tuple[Edge, ...]]:
        edges: dict[str, tuple[Edge, ...]] = {}
        for model in models:
            by_upstream: dict[str, list[Edge]] = {}
            for edge in _edges(model, reading):
                by_upstream.setdefault(edge.upstream.name, []).append(edge)
            edges[model.name] = tuple(map(_joined, by_upstream.values()))
        return edges

    return find


def edge_by_kinds(reader: Model, upstream: Model) -> Edge:
    """Return the edge to a model that one does not read itself, as by what lies between them."""
    return Edge(reader, upstream, _need_by_kinds(reader, upstream))


@dataclass(frozen=True, slots=True)
class _Reading:
    """The models by the tables that they make, and how their queries are read."""

    made: Mapping[str, Model]
    windows: ReadWindows
    columns: SliceColumns


def _edges(model: Model, reading: _Reading) -> Iterator[Edge]:
    declared = {table_key(table): need for table, need in model.input_needs}
    for key, uses, through in _read(model, reading):
        upstream = reading.made[key]
        need, selection = declared.get(key), None
        if need is None:
            need, selection = _need(model, upstream, uses, reading)
        if need.rule is Rule.SAME and _are_alike(model, upstream):
            need = replace(need, rule=Rule.MOMENTS)  # the same slices have the same moments
        yield Edge(model, upstream, need, through, selection)


def _are_alike(model: Model, upstream: Model) -> bool:
    by_time = sliced(model) is sliced(upstream) is Sliced.MOMENTS
    return by_time and model.slicing == upstream.slicing


def _read(
    model: Model, reading: _Reading
) -> Iterator[tuple[str, tuple[Use, ...], tuple[str, ...]]]:
    """Yield the tables of models that one reads, each with its uses, and the views between."""
    uses = uses_by_table(model, reading.windows)
    for key in map(table_key, model.changing_inputs):
        yield from _through_views(model, reading, key, uses.get(key, ()), ())


def _through_views(
    model: Model,
    reading: _Reading,
    key: str,
    uses: tuple[Use, ...],
    through: tuple[str, ...],
) -> Iterator[tuple[str, tuple[Use, ...], tuple[str, ...]]]:
    upstream = reading.made.get(key)
    if upstream is None or not upstream.strategy.runs:
        return  # what an EMBEDDED model reads is among the sources
    if upstream is model and model.strategy.by_statements:
        return  # statements name their own table to change it
    if upstream.strategy.output is not Output.VIEW or upstream is model:
        yield key, uses, through
        return
    inner = uses_through(upstream, uses, reading.windows)
    for below in map(table_key, upstream.changing_inputs):
        own = inner.get(below, ())
        yield from _through_views(upstream, reading, below, own, (*through, upstream.name))


def uses_by_table(
    model: Model, windows: ReadWindows = windows_of, outer: Use = UNBOUNDED
) -> Mapping[str, tuple[Use, ...]]:
    """Return how a model's query uses each table that it reads, by the tables. ``outer`` bounds
    the rows of the query that count. What only triggers a model has no use.
    """
    inputs = model.changing_inputs
    found: dict[str, dict[Use, None]] = {}
    if model.python is not None:
        slices = model.python.reads_slices_of
        of_slice = (ColumnWindows(SLICE, (COMMON,), Grain.VALUE),)
        return {table_key(t): (of_slice if t in slices else UNBOUNDED,) for t in inputs}
    read = windows(model.query, outer=outer or _stored(model)) if inputs else {}
    for source in model.query.sources if inputs else ():
        table = table_read(source)
        if table is not None and not is_earlier(source):
            uses = dict.fromkeys(read.get(source, (UNBOUNDED,)))
            found.setdefault(table_key(table), {}).update(uses)
    for table in model.depends_on:  # which the query reads in a way that nobody sees
        found.setdefault(table_key(table), {UNBOUNDED: None})
    return {key: tuple(uses) for key, uses in found.items()}


def _stored(model: Model) -> Use:
    """Return the bounds of the rows that a model keeps: by time those of its intervals only."""
    column = None if model.ranges is None else model.ranges.column
    if column is None:
        return UNBOUNDED
    return (ColumnWindows(fold(column.name), (COMMON,), Grain.INSTANT),)


def uses_through(
    view: Model, outer: Sequence[Use], windows: ReadWindows
) -> Mapping[str, tuple[Use, ...]]:
    """Return how a view uses each table, where its readers use it so."""
    found: dict[str, dict[Use, None]] = {}
    for use in outer:
        for key, inner in uses_by_table(view, windows, use).items():
            found.setdefault(key, {}).update(dict.fromkeys(inner))
    return {key: tuple(uses) for key, uses in found.items()}


def _need_by_kinds(model: Model, upstream: Model) -> Need:
    """Return what a slice needs of a model whose table its query does not read."""
    rule = _RULES[sliced(model), sliced(upstream)]
    if rule is Rule.SAME and model.slicing != upstream.slicing:
        return Need(Rule.TABLE)
    return Need(rule, (EARLIER if model is upstream else COMMON,))


def _need(
    model: Model, upstream: Model, uses: Sequence[Use], reading: _Reading
) -> tuple[Need, Selection | None]:
    kinds = sliced(model), sliced(upstream)
    if not uses:
        return _need_by_kinds(model, upstream), None
    if kinds[1] is Sliced.NOT:
        rule = _RULES[kinds]
        by_time = rule is Rule.TABLE and kinds[0] is Sliced.MOMENTS
        return Need(rule, by_query=by_time and all(map(table_windows, uses))), None
    if kinds[0] is Sliced.NOT or kinds[0] is not kinds[1]:
        return Need(Rule.ALL), None
    reads = _slices_read(model, upstream, uses, reading)
    if reads is None:
        windows = (EARLIER if model is upstream else EVERYTHING,)
        rule = Rule.ALL if kinds[0] is Sliced.VALUES else Rule.MOMENTS
        in_doubt = rule is Rule.ALL or model is not upstream
        return Need(rule, windows if rule is Rule.MOMENTS else (COMMON,), in_doubt=in_doubt), None
    has_conditions = any(use.conditions for use in reads)
    selection = Selection(model, upstream, reads, reading.columns.zone) if has_conditions else None
    return _bounded(model, upstream, reads, selection), selection


def _bounded(
    model: Model, upstream: Model, reads: Sequence[SlicesRead], selection: Selection | None
) -> Need:
    """Return what a slice needs of an input that every use bounds."""
    condition = "" if selection is None else str(selection)
    if sliced(model) is Sliced.VALUES:
        rule = Rule.SAME if selection is None else Rule.ALL
        return Need(rule, by_query=True, condition=condition)
    windows = _widest(tuple(dict.fromkeys(window for use in reads for window in use.windows)))
    if EVERYTHING in windows:
        windows = (EARLIER if model is upstream else EVERYTHING,)
    by_query = bool(condition) or windows != (COMMON,)
    return Need(Rule.MOMENTS, windows, by_query=by_query, condition=condition)


def _slices_read(
    model: Model, upstream: Model, uses: Sequence[Use], reading: _Reading
) -> tuple[SlicesRead, ...] | None:
    """Return what each use says of the slices of an input; None where one of them says nothing."""
    comparison = Comparison(Slices.of(model), Slices.of(upstream), reading.columns.zone)
    # Steps in Python read the slice by its value.
    by_value = ColumnWindows(SLICE, (COMMON,), Grain.TEXT)
    columns = {**reading.columns.of(upstream), SLICE: by_value}
    reads: dict[SlicesRead, None] = {}
    for use in uses:
        windows = _windows(use, columns, comparison)
        conditions = _conditions(use, upstream, columns, reading.columns)
        if windows is None or EVERYTHING in windows:
            if not conditions:
                return None
            windows = (EVERYTHING,)
        elif conditions and sliced(model) is Sliced.VALUES:
            conditions = ()  # the same value is one slice already
        reads[SlicesRead(windows, conditions)] = None
    if sliced(model) is Sliced.VALUES and any(slices.conditions for slices in reads):
        return tuple(slices if slices.conditions else _SAME_VALUE for slices in reads)
    return tuple(reads)


def _conditions(
    use: Use, upstream: Model, columns: Columns, slice_columns: SliceColumns
) -> tuple[tuple[Condition, SliceColumn], ...]:
    """Return the conditions of a use on columns whose values tell the slice."""
    pairs = ((bounds, slice_columns.column(upstream, bounds.column, columns)) for bounds in use)
    return tuple(
        (condition, column)
        for bounds, column in pairs
        for condition in bounds.conditions
        if column is not None
    )


#: the slice that is called as the reader's, beside others that a condition chooses
_SAME_VALUE = SlicesRead(
    (COMMON,),
    (
        (
            Condition(("eq", COLUMN, ("slice", PARTITION)), "its own value", rejects_null=True),
            SliceColumn(Grain.TEXT, is_managed=True),
        ),
    ),
)


def _windows(use: Use, columns: Columns, comparison: Comparison) -> tuple[Window, ...] | None:
    """Return the narrowest windows that the conditions of a use give; None without any."""
    best: tuple[Window, ...] | None = None
    for condition in use:
        column = columns.get(condition.column)
        found = None if column is None else comparison.windows(condition, column)
        if found is not None and (best is None or _is_narrower(found, best)):
            best = found
    return best


def _is_narrower(windows: Sequence[Window], others: Sequence[Window]) -> bool:
    if tuple(others) == (COMMON,):
        return False
    is_open = [any(None in {each.first, each.last} for each in of) for of in (windows, others)]
    return tuple(windows) == (COMMON,) or is_open == [False, True]


def table_windows(use: Use) -> tuple[tuple[str, Window], ...]:
    """Return by which column, and in which windows, a use reads a table without slices; nothing
    where it is not bounded.
    """
    certain = [each for each in use if each.certain and each.is_bounded]
    closed = [each for each in certain if each.is_closed]
    first = next(iter(closed or certain), None)
    return () if first is None else tuple((first.column, window) for window in first.windows)


def _widest(windows: Sequence[Window]) -> tuple[Window, ...]:
    """Leave out the window of the slice itself where another one contains it."""
    others = tuple(each for each in windows if each != COMMON)
    covers = any(_covers(each) for each in others)
    return others if covers else tuple(windows)


def _covers(window: Window) -> bool:
    """Return whether a window has at least the moments of the slice itself."""
    first, last = window.first, window.last
    begins = first is None or (not first.is_end and _sign(first.shift) <= 0)
    return begins and (last is None or (last.is_end and _sign(last.shift) >= 0))


def _sign(shift: Shift) -> int:
    seconds = (shift.months * 28 + shift.days) * 86_400 + shift.rest.total_seconds()
    return (seconds > 0) - (seconds < 0)


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
    in_doubt = any(edge.need.in_doubt for edge in edges)
    selection = _joined_selection(edges)
    condition = "" if selection is None or in_doubt else str(selection)
    need = Need(rule, tuple(windows), said, by_query, in_doubt, condition)
    return replace(first, need=need, selection=selection)


def _joined_selection(edges: Sequence[Edge]) -> Selection | None:
    """Return what chooses the slices that any of some edges needs."""
    selection = next((edge.selection for edge in edges if edge.selection is not None), None)
    if selection is None or len({edge.need.rule for edge in edges}) > 1:
        return None
    if any(edge.selection is None and edge.need.rule is not Rule.MOMENTS for edge in edges):
        return None
    uses = dict.fromkeys(
        use
        for edge in edges
        for use in (edge.selection.uses if edge.selection else (SlicesRead(edge.need.windows),))
    )
    return replace(selection, uses=tuple(uses))


def needs_findings(
    models: Iterable[Model], edges: Mapping[str, tuple[Edge, ...]]
) -> Iterator[Diagnostic]:
    """Yield what models say they need that cannot be, or that their queries say otherwise."""
    every = list(models)
    made = makers_by_table(every)
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


def doubt_findings(edges: Mapping[str, tuple[Edge, ...]]) -> Iterator[Diagnostic]:
    """Yield a warning for each input that the query does not bound by its slice."""
    every = (edge for reader_edges in edges.values() for edge in reader_edges)
    for edge in (edge for edge in every if edge.need.in_doubt):
        yield Diagnostic("warning", doubt_of(edge), _place_of(edge), needs_hint(edge), "needs-all")


def doubt_of(edge: Edge) -> str:
    """Return the message about an input of which every slice is needed."""
    upstream = edge.upstream.name
    until = " up to its own end" if edge.need.rule is Rule.MOMENTS else ""
    return (
        f"Penstock finds no bounds of the slice where {edge.reader.name} reads {upstream}: "
        f"a slice needs every slice of {upstream}{until}, and is behind when one changes"
    )


def needs_hint(edge: Edge) -> str:
    """Return the line that narrows what is needed of an input, in the form of the reader."""
    reader, table = edge.reader, str(edge.upstream.target)
    same = _are_alike(reader, edge.upstream) or sliced(reader) is Sliced.VALUES
    word, more = "same" if same else "lag=0d", ", or lag=7d"
    if "kind" in reader.places:
        text = word if same else f"'{word}'"
        line, more = f"needs ({table} = {text})", ", or 'lag=7d'"
    else:
        line = f"{'--' if reader.python is None else '#'} needs {table} {word}"
    more = "" if sliced(reader) is Sliced.VALUES else more
    return (
        f"write `{line}`{more} if a slice reads no more; `all` confirms that it reads every slice"
    )


def _place_of(edge: Edge) -> Location:
    """Return where a reader names an input, or the first view between them."""
    wanted = table_key(edge.upstream.target)
    for source in edge.reader.query.sources:
        table = table_read(source)
        if table is not None and source.location is not None and table_key(table) == wanted:
            return source.location
    return edge.reader.place("target")


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
