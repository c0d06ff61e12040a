"""Remember the states of slices across processes.

To derive the states of all slices takes a look at each record of them. Most models have not moved
since the last plan, so their states are kept with all that they depend on (`basis`). Kept are only
states that stay as they are until something moves: `materialized`, and `stale` slices of another
definition. Models that read files, and lakes without lasting snapshots, have none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from penstock.engine.planning.intervals import Event, IntervalHistory
from penstock.engine.planning.ranges import SliceStates
from penstock.engine.state.basis import Basis, LakeMoment, Position, Revision, read_moment
from penstock.errors import LakeError
from penstock.model.definition.model import Model
from penstock.model.slicing.needs import Edge
from penstock.model.slicing.table_reads import TableRead
from penstock.model.time.interval import Interval
from penstock.states import SliceState

if TYPE_CHECKING:
    from penstock.lakes.catalog.catalog import Catalogs

#: what entries have, behind the fingerprint of their model
_SLICES, _INTERVALS = ":slices", ":intervals"
_FAR = 1_000  # snapshots
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
        is_of_all: The plan is of all models. Else only the models that are asked for first are
            looked up, and what they read.
    """

    entries: MutableMapping[str, Any]
    fingerprints: Mapping[str, str]
    dependencies: Dependencies
    lasting_lakes: frozenset[str]
    is_of_all: bool = True
    _moments: dict[str, LakeMoment | None] = field(default_factory=dict)
    _shared: dict[Any, SliceStates] = field(default_factory=dict)
    _groups: dict[tuple[_Group, ...], tuple[_Group, ...]] = field(default_factory=dict)

    def recall_states(self, models: Sequence[Model], catalogs: Catalogs) -> dict[str, SliceStates]:
        """Return the states of slices that still follow from the catalogs.

        Args:
            models: The models.
            catalogs: The catalogs of lakes.

        Returns:
            The states, by the names of models; without models that have none.
        """
        recalled = self._recall(models, catalogs, _SLICES)
        return {
            name: self._states(content, can_rebuild=can_rebuild)
            for name, (content, can_rebuild) in recalled.items()
        }

    def recall_histories(
        self, models: Sequence[Model], catalogs: Catalogs
    ) -> dict[str, IntervalHistory]:
        """Return the histories of models by time that still follow from the catalogs.

        Args:
            models: The models.
            catalogs: The catalogs of lakes.

        Returns:
            The histories, by the names of models; without models that have none.
        """
        recalled = self._recall(models, catalogs, _INTERVALS)
        return {
            name: _history(content, can_rebuild=can_rebuild)
            for name, (content, can_rebuild) in recalled.items()
        }

    def read_moments(self, models: Iterable[Model], catalogs: Catalogs) -> None:
        """Read the moments of the lakes that models depend on, each once.

        What is derived after that, and kept, is of this moment or a later one. So a later change is
        one since the basis.

        Args:
            models: The models.
            catalogs: The catalogs of lakes.
        """
        models = tuple(models)
        lakes = {lake for model in models for lake in self.dependencies.by_lake(model)}
        unread = lakes & self.lasting_lakes - self._moments.keys()
        if not unread:
            return
        positions: dict[str, set[Position]] = defaultdict(set)
        for fingerprint in self._fingerprints_of(models):
            for kind in (_SLICES, _INTERVALS):
                entry = self._entry(f"{fingerprint}{kind}")
                for lake, basis in () if entry is None else entry[0]:
                    positions[lake].add(basis.position)
        for lake in unread:
            self._moments[lake] = None
            with suppress(LakeError):  # the derivation says what is wrong
                catalog = catalogs(lake)
                if catalog is not None:
                    with catalog.reading() as connection:
                        self._moments[lake] = read_moment(connection, positions[lake])

    def _fingerprints_of(self, models: Iterable[Model]) -> Iterable[str]:
        if self.is_of_all:
            return self.fingerprints.values()
        edges = (edge for model in models for edge in self.dependencies.edges.get(model.name, ()))
        names = {model.name for model in models} | {edge.upstream.name for edge in edges}
        return [self.fingerprints[name] for name in names]

    def keep(self, model: Model, states: States) -> None:
        """Remember the states of a model, if they stay until something moves.

        Args:
            model: The model.
            states: Its states, derived after `read_moments` was asked for it.
        """
        if not is_settled(states) or not self._may_keep(model):
            return
        bases = self._bases(model)
        if bases is None:
            return
        key = self.fingerprints[model.name]
        if isinstance(states, IntervalHistory):
            self.entries[key + _INTERVALS] = (bases, _plain_history(states), states.remakes)
        else:
            groups = _grouped(states)
            groups = self._groups.setdefault(groups, groups)  # one object takes room once
            self.entries[key + _SLICES] = (bases, groups, states.remakes)

    def _recall(
        self, models: Sequence[Model], catalogs: Catalogs, kind: str
    ) -> dict[str, tuple[Any, bool]]:
        """Return the contents of entries whose bases hold, with whether a run rebuilds slices."""
        candidates = [model for model in models if self._may_keep(model)]
        self.read_moments(candidates, catalogs)
        recalled: dict[str, tuple[Any, bool]] = {}
        for model in candidates:
            key = self.fingerprints[model.name] + kind
            entry = self._entry(key)
            if entry is None or not all(self._holds(lake, basis) for lake, basis in entry[0]):
                continue
            bases, content, can_rebuild = entry
            recalled[model.name] = content, can_rebuild
            if any(self._is_far(lake, basis) for lake, basis in bases):
                moved = self._bases(model)
                if moved is not None:
                    self.entries[key] = (moved, content, can_rebuild)
        return recalled

    def _may_keep(self, model: Model) -> bool:
        if model.query.files or not model.strategy.runs:
            return False
        return self.lasting_lakes.issuperset(self.dependencies.by_lake(model))

    def _bases(self, model: Model) -> tuple[tuple[str, Any], ...] | None:
        """Return what the states of a model depend on now; None where that cannot be told."""
        bases: list[tuple[str, Any]] = []
        for lake, (tables, targets) in self.dependencies.by_lake(model).items():
            moment = self._moments.get(lake)
            basis = None if moment is None else moment.make_basis(tables, targets)
            if basis is None:
                return None
            bases.append((lake, _plain(basis)))
        return tuple(bases)

    def _entry(self, key: str) -> tuple[list[tuple[str, Basis]], Any, bool] | None:
        entry = self.entries.get(key)
        if entry is None:
            return None
        bases, content, can_rebuild = entry
        return [(lake, _basis(parts)) for lake, parts in bases], content, can_rebuild

    def _holds(self, lake: str, basis: Basis) -> bool:
        moment = self._moments.get(lake)
        return moment is not None and moment.holds(basis)

    def _is_far(self, lake: str, basis: Basis) -> bool:
        """Tell whether so many snapshots came since that a plan takes long to look at them."""
        moment = self._moments[lake]
        assert moment is not None, "the basis holds"
        return moment.position.snapshot_id - basis.position.snapshot_id > _FAR

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
    return tuple(basis.position), basis.first_snapshot, basis.tables, revisions


def _basis(parts: Any) -> Basis:
    position, first_snapshot, tables, revisions = parts
    listed = tuple((target, Revision(*revision)) for target, revision in revisions)
    return Basis(Position(*position), first_snapshot, tables, listed)
