"""What is there of each slice, and what `status` may name of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from penstock.engine.state.store import State as Records
from penstock.model.time.interval import interval_of
from tests.engine.strategies.input_models import (
    EVENTS,
    NAMES,
    WHOLE,
    Model,
    Read,
    Row,
    Unit,
    World,
)
from tests.engine.strategies.input_sources import Change, Made, Sources, Tables, Wrong

Named = Mapping[str, tuple[str, str]]  # the state and the reason of slices, by their names


class Checks(Sources):
    """Compares what is there, and what `status` says, with what the queries make."""

    def _stored(self) -> list[Model]:
        return [each for each in self.world.models.values() if each.is_stored]

    def _recorded(self, model: Model, ids: Collection[str] | None = None) -> list[Unit]:
        found: list[Unit] = []
        records = Records(self.project.lake("main").catalog)
        for record in records.slices_there(f"main.{model.name}"):
            if ids is not None and record.run_id not in ids:
                continue
            interval = interval_of(record.slice)
            if model.cadence is None:
                found.append(WHOLE)
            elif interval is not None:
                found += model.cadence.units(interval.start, interval.end)
            else:
                found.append(self.world.unit(model, record.slice))
        return found

    # --- what is there

    def _observe(self) -> None:
        tables: dict[str, Sequence[Row]] = {}
        there = {name for (name,) in self.duck.execute("SHOW TABLES").fetchall()}
        stored = [model.name for model in self._stored()]
        self.views = (there & self.world.models.keys()) - {*stored}
        for name in (EVENTS, NAMES, *stored):
            if name in there:
                tag = "_wm_partition" if self._is_tagged(name) else "NULL"
                query = f"SELECT ts, g, v, {tag} FROM {name}"
                tables[name] = [row_of(*row) for row in self.duck.execute(query).fetchall()]
        self.snapshots.append(self.project.lake("main").catalog.latest().id)
        rolled = [name for name, at in self.seen.back.items() if at == self.seen.action]
        self.seen.now(tables, rolled)

    def _is_tagged(self, name: str) -> bool:
        model = self.world.models.get(name)
        return model is not None and model.kind == "part"

    def _rows(self, model: Model, unit: Unit) -> list[Row]:
        """The rows that are there of a slice."""
        rows = self.seen.content(model.name)
        if model.kind == "part":
            return sorted(row for row in rows if row[3] == unit.name)
        return sorted(row for row in rows if unit.has(row[0])) if model.cadence else sorted(rows)

    def _content(self, name: str, tables: Tables, held: Tables) -> Sequence[Row]:
        """The rows of a table, or of a view; ``held`` are tables as they were."""
        return self._content_of(name, self.world, tables, held)

    def _content_of(self, name: str, world: World, tables: Tables, held: Tables) -> Sequence[Row]:
        """The same, as embedded models are in ``world``: a view keeps the query it was made of."""
        model = world.models.get(name)
        if model is None or model.is_stored:
            return held.get(name, tables.get(name, ()))
        if model.kind == "view":
            world = self.queries.get(name, self.world)
            model = world.models[name]
        return model.rows(WHOLE, lambda each: self._content_of(each, world, tables, held))

    def _expected(self, model: Model, unit: Unit, tables: Tables | None = None) -> list[Row]:
        """What a slice is made of by what there is; whole tables are held as they were."""
        if model.op == "file":
            at, values = unit.start, self.values.get(unit.name, ())
            return sorted((at, g, v + model.add, unit.name) for g, v in values)
        known = self.seen.tables if tables is None else tables
        made = self.seen.made.get((model.name, unit.name))
        held: dict[str, Sequence[Row]] = {}
        if made is not None:
            held = {name: made.tables.get(name, ()) for name in self._held(model, made)}
        return sorted(model.rows(unit, lambda name: self._content(name, known, held)))

    def _held(self, model: Model, made: Made) -> Iterator[str]:
        """The tables that a slice means as they were: whole ones, read without its bounds, and
        those of which nobody can tell what has changed.
        """
        expired = self.seen.expired > made.action
        for read in self.world.leaves(model):
            if self.world.cadence(read.table) is not None:
                continue
            is_ours = read.table in self.world.models
            if model.cadence is None:
                if expired and not is_ours:
                    yield read.table
            elif read.how == "all" or expired or self.seen.back.get(read.table, -1) > made.action:
                yield read.table

    def _require(
        self, model: Model, unit: Unit, there: Sequence[Row], wanted: Sequence[Row], what: str
    ) -> None:
        if sorted(there) != sorted(wanted):
            raise Wrong(f"{what} {model.name} {unit.name}: {shown(there)}\n  not {shown(wanted)}")

    # --- what status names

    def _statuses(self) -> Mapping[str, Named]:
        found: dict[str, Named] = {}
        for status in self.project.status():
            model = self.world.models.get(status.model or "")
            if model is None or not model.is_stored:
                continue
            own: dict[str, tuple[str, str]] = {}
            for each in status.slices:
                for name in self.names[model.name].get(each.slice or "", [each.slice or ""]):
                    own[name] = each.state, each.reason or ""
            found[model.name] = own
        return found

    def _check(self, statuses: Mapping[str, Named] | None = None) -> None:
        statuses = self._statuses() if statuses is None else statuses
        for model in self._stored():
            for unit in self._recorded(model):
                state, reason = statuses[model.name].get(unit.name, ("missing", ""))
                made = self.seen.made.get((model.name, unit.name))
                if made is not None and not self._is_forgotten(model, made):
                    self._check_slice(model, unit, state, reason, made)

    def _is_forgotten(self, model: Model, made: Made) -> bool:
        above = (read.table for read in self.world.leaves(model))
        return self.seen.is_forgotten((model.name, *above), made)

    def _check_slice(self, model: Model, unit: Unit, state: str, reason: str, made: Made) -> None:
        back = self.seen.back.get(model.name, -1) >= made.action
        other = made.meaning != self.world.meaning(model)
        there = self._rows(model, unit)
        what = f"{model.name} {unit.name} is {state} ({reason})"
        if state == "materialized" and other:
            raise Wrong(f"{what}, of another definition")
        if state == "materialized":
            self._check_current(model, unit, what, made)
        elif state == "stale" and not other and not back:
            raise Wrong(f"{what}, of the same definition")
        elif (
            state == "behind"
            and "perhaps" not in reason
            and not self._has_changed(model, unit, made)
        ):
            raise Wrong(f"{what}, and nothing of its input has changed")
        elif state == "changed outside" and not back and sorted(made.rows) == sorted(there):
            touched = any(True for _ in self.seen.since(model.name, made.action))
            if not touched:
                raise Wrong(f"{what}, and nobody has changed it")

    def _check_current(self, model: Model, unit: Unit, what: str, made: Made) -> None:
        if model.op == "file":
            if self._has_another_file(unit, made):
                raise Wrong(f"{what}, and its file has changed")
            self._require(model, unit, self._rows(model, unit), made.rows, f"{what}: there is")
            return
        wanted = self._expected(model, unit)
        if not model.appends:
            self._require(model, unit, self._rows(model, unit), wanted, f"{what}: there is")
            return
        before = self._expected_at(model, unit, made)
        if sorted(wanted) not in (sorted(made.rows), sorted(before)):
            raise Wrong(f"{what}, and its input has changed")

    def _expected_at(self, model: Model, unit: Unit, made: Made) -> list[Row]:
        return sorted(model.rows(unit, lambda name: self._content(name, made.tables, {})))

    def _has_changed(self, model: Model, unit: Unit, made: Made) -> bool:
        """Whether slices that this one needs, or rows of its bounds, changed after it was made."""
        if model.op == "file":
            return self._has_another_file(unit, made)
        before = (c for c in self.seen.since(model.name, made.action) if model.op == "running")
        if any(row[3] is not None and row[3] < unit.name for c in before for row in c.rows):
            return True
        views = self.world.views(model)
        if any(self.created.get(name, -1) > made.action for name in views):
            return True
        return any(
            self._is_about(model, unit, read, change)
            for read in self.world.leaves(model)
            for change in self.seen.since(read.table, made.action)
        )

    def _has_another_file(self, unit: Unit, made: Made) -> bool:
        """Whether its file is there, and not as it was read."""
        return self.values.get(unit.name, made.file) != made.file

    def _is_about(self, model: Model, unit: Unit, read: Read, change: Change) -> bool:
        above, (first, end) = self.world.models.get(read.table), model.window(read, unit)
        if change.anew or model.cadence is None or self._is_wide(model, read):
            return True
        if above is None or above.cadence is None:
            whole = above is not None  # of a whole table that is made again all files are others
            return any(whole or first <= row[0] < end for row in change.rows)
        if above.kind == "time":
            return True  # a batch that is made again with other rows is not compared by its units
        for row in change.rows:
            at = row[0]
            own = next(above.cadence.units(at, at + timedelta(microseconds=1)))
            if row[3] is not None:
                own = self.world.unit(above, row[3])
            if own.start < max(end, unit.end) and min(first, unit.start) < own.end:
                return True
        return False

    def _is_wide(self, model: Model, read: Read) -> bool:
        """Whether more slices are needed than those whose rows its query reads: all where the query
        does not show which, and some where it compares dates of two zones.
        """
        edges = self.project.edges.get(model.name, ())
        edge = next((each for each in edges if each.upstream.name == read.table), None)
        zones = {of.cadence.zone for of in (model, self.world.models.get(read.table))
                 if of is not None and of.cadence is not None}  # fmt: skip
        by_day = read.how in ("day", "dayback") and len(zones) > 1
        return edge is not None and (edge.need.in_doubt or by_day)


def row_of(at: datetime, g: str, v: int, tag: str | None) -> Row:
    return at.astimezone(UTC), g, v, tag


def shown(rows: Sequence[Row]) -> str:
    return ", ".join(f"{at:%m-%dT%H:%M} {g} {v}" for at, g, v, _ in sorted(rows)) or "no rows"
