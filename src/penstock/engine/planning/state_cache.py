"""Remember the states of slices across processes.

To derive the states of all slices takes a look at each record of them. Most models have not moved
since the last plan, so their states are kept with all that they depend on (`basis`). Kept are only
states that stay as they are until something moves: `materialized`, and `stale` slices of another
definition. Models that read files, and lakes without lasting snapshots, have none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.engine.planning.intervals import Event, IntervalHistory
from penstock.engine.planning.ranges import SliceStates
from penstock.engine.state.basis import Basis, LakeMoment, Position, Revision, read_moment
from penstock.engine.state.store import State
from penstock.model.definition.model import Model
from penstock.model.slicing.needs import Edge
from penstock.model.slicing.table_reads import TableRead
from penstock.model.time.interval import Interval
from penstock.states import SliceState

if TYPE_CHECKING:
    from penstock.lake.catalog.catalog import Catalogs

_LASTING = frozenset({SliceState.MATERIALIZED, SliceState.STALE})
States = SliceStates | IntervalHistory
#: slices of one state that one run recorded: the state, the run, and the texts of the slices
_Group = tuple[str, str, tuple[str, ...]]


def is_settled(states: States) -> bool:
    """Tell whether the states of a model stay as they are until something moves.

    Args:
        states: The states of all of its slices that exist or were tried.

    Returns:
        True if each is as it was recorded, and nothing is recorded of an earlier kind of slices.
    """
    if isinstance(states, IntervalHistory):
        events, texts = states.events, {event.of for event in states.events}
        are_lasting = all(event.state in _LASTING for event in events)
        has_cause = any(event.behind or event.since is not None for event in events)
        return are_lasting and not has_cause and states.runs.keys() <= texts
    is_lasting = states.kinds <= _LASTING and not states.causes and not states.late
    return is_lasting and states.runs.keys() <= states.of.keys()


@dataclass(frozen=True, slots=True)
class Dependencies:
    """The reads of models, by their names.

    Attributes:
        edges: The slices of other models that slices need.
        tables: The tables whose changes of rows put slices behind.
        views: The VIEW models that are read.
    """

    edges: Mapping[str, Sequence[Edge]]
    tables: Mapping[str, Sequence[TableRead]]
    views: Mapping[str, Sequence[Model]]

    def by_lake(self, model: Model) -> Mapping[str, tuple[set[str], set[str]]]:
        """Return what the states of a model depend on.

        Args:
            model: The model.

        Returns:
            The tables and the targets of models, ``schema.table``, by lakes.
        """
        upstream = (edge.upstream for edge in self.edges.get(model.name, ()))
        makers = [model, *upstream, *self.views.get(model.name, ())]
        targets = [(above.target.lake, above.target.qualified) for above in makers]
        tables = [table_read.table for table_read in self.tables.get(model.name, ())]
        names: dict[str, tuple[set[str], set[str]]] = defaultdict(lambda: (set(), set()))
        for lake, target in targets:
            names[lake][0].add(target)
            names[lake][1].add(target)
        for table in tables:
            names[table.lake][0].add(table.qualified)
        return names


@dataclass(frozen=True, slots=True)
class StateCache:
    """The states of slices that earlier processes derived, for one plan.

    Attributes:
        entries: The cache, by the fingerprints of models.
        fingerprints: The fingerprints of models, by their names.
        dependencies: What states depend on.
        lasting_lakes: The lakes whose snapshots keep their ids.
    """

    entries: MutableMapping[str, Any]
    fingerprints: Mapping[str, str]
    dependencies: Dependencies
    lasting_lakes: frozenset[str]
    _moments: dict[str, LakeMoment | None] = field(default_factory=dict)
    _shared: dict[Any, SliceStates] = field(default_factory=dict)
    _groups: dict[tuple[_Group, ...], tuple[_Group, ...]] = field(default_factory=dict)

    def recall(self, models: Iterable[Model], catalogs: Catalogs) -> dict[str, Any]:
        """Return the states that still follow from the catalogs.

        Args:
            models: The models.
            catalogs: The catalogs of lakes.

        Returns:
            The states, of models by time `IntervalHistory`, by the names of models; without models
            that have none.
        """
        recalled: dict[str, Any] = {}
        entries = {model.name: self._entry(model) for model in models if self._may_keep(model)}
        self._read_moments(entries, catalogs)
        for model in models:
            entry = entries.get(model.name)
            if entry is None:
                continue
            bases, content, can_rebuild = entry
            if not all(self._holds(lake, basis) for lake, basis in bases):
                continue
            if model.by_time is not None:
                recalled[model.name] = _history(content, can_rebuild=can_rebuild)
            else:
                recalled[model.name] = self._states(content, can_rebuild=can_rebuild)
        return recalled

    def keep(self, model: Model, states: States) -> None:
        """Remember the states of a model, if they stay until something moves.

        Args:
            model: The model.
            states: Its states, derived after `recall` was asked for it.
        """
        if not is_settled(states) or not self._may_keep(model):
            return
        bases: list[tuple[str, Any]] = []
        for lake, (tables, targets) in self.dependencies.by_lake(model).items():
            moment = self._moments.get(lake)
            if moment is None:
                return
            bases.append((lake, _plain(moment.make_basis(tables, targets))))
        content: Any
        if isinstance(states, IntervalHistory):
            content = _plain_history(states)
        else:
            groups = _grouped(states)
            content = self._groups.setdefault(groups, groups)  # one object takes room once
        self.entries[self.fingerprints[model.name]] = (tuple(bases), content, states.remakes)

    def _may_keep(self, model: Model) -> bool:
        if model.query.files or not model.strategy.runs:
            return False
        return self.lasting_lakes.issuperset(self.dependencies.by_lake(model))

    def _entry(self, model: Model) -> tuple[list[tuple[str, Basis]], Any, bool] | None:
        entry = self.entries.get(self.fingerprints[model.name])
        if entry is None:
            return None
        bases, content, can_rebuild = entry
        return [(lake, _basis(parts)) for lake, parts in bases], content, can_rebuild

    def _read_moments(self, entries: Mapping[str, Any], catalogs: Catalogs) -> None:
        """Read the moments of lakes once: all answers of one plan are of one moment."""
        positions: dict[str, set[Position]] = defaultdict(set)
        for entry in filter(None, entries.values()):
            for lake, basis in entry[0]:
                positions[lake].add(basis.position)
        for lake in self.lasting_lakes - self._moments.keys():
            catalog = catalogs(lake)
            ask = partial(read_moment, positions=positions[lake])
            self._moments[lake] = None if catalog is None else State(catalog).read(ask, None)

    def _holds(self, lake: str, basis: Basis) -> bool:
        moment = self._moments.get(lake)
        return moment is not None and moment.holds(basis)

    def _states(self, groups: tuple[_Group, ...], *, can_rebuild: bool) -> SliceStates:
        """Return states from groups, the same object for the same ones."""
        key = (id(groups), can_rebuild)
        states = self._shared.get(key)
        if states is None:
            self._groups.setdefault(groups, groups)
            listed = sorted((text, state, run) for state, run, texts in groups for text in texts)
            by_text = {text: SliceState(state) for text, state, _ in listed}
            runs = {text: run for text, _, run in listed if run}
            states = self._shared[key] = SliceStates(by_text, runs, can_rebuild)
        return states


def _grouped(states: SliceStates) -> tuple[_Group, ...]:
    by_kind: dict[tuple[str, str], list[str]] = defaultdict(list)
    for text, state in states.items():
        by_kind[state.value, states.runs.get(text, "")].append(text)
    return tuple((state, run, tuple(texts)) for (state, run), texts in by_kind.items())


def _plain_history(history: IntervalHistory) -> Any:
    """Return a history in tuples that need no class to be read again."""
    events = tuple(
        (
            event.at,
            event.interval.start.isoformat(),
            event.interval.end.isoformat(),
            event.state.value,
            event.of,
        )
        for event in history.events
    )
    return events, tuple(history.runs.items())


def _history(content: Any, *, can_rebuild: bool) -> IntervalHistory:
    parse = datetime.fromisoformat
    events = tuple(
        Event(moment, Interval(parse(start), parse(end)), SliceState(state), of=text)
        for moment, start, end, state, text in content[0]
    )
    return IntervalHistory(events, dict(content[1]), can_rebuild)


def _plain(basis: Basis) -> Any:
    """Return a basis in tuples that need no class to be read again."""
    revisions = tuple((target, tuple(revision)) for target, revision in basis.revisions)
    return tuple(basis.position), basis.tables, revisions


def _basis(parts: Any) -> Basis:
    position, tables, revisions = parts
    listed = tuple((target, Revision(*revision)) for target, revision in revisions)
    return Basis(Position(*position), tables, listed)
