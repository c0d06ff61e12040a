"""Sequences by chance of edits and runs of some models that read each other.

After each action `status` must name every slice that is not what its query makes of its inputs as
they are, and no slice whose inputs have not changed since it was made. What a run has made must be
what its query makes of what is there. In the end everything is made, and each table must be what it
is from scratch; then a run has nothing to do.

A whole table that a sliced model reads without the bounds of its slice is held as it was when the
slice was made.
"""

from __future__ import annotations

import sqlite3
import traceback
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.engine.results import RunResult
from penstock.engine.state.store import State as Records
from penstock.errors import ArgumentError, PartitionError
from tests.engine.strategies.input_checks import Checks, Named, shown
from tests.engine.strategies.input_models import EVENTS, NAMES, TOO_MUCH, Model, Row, Unit
from tests.engine.strategies.input_runs import Duckling
from tests.engine.strategies.input_sources import Made, Wrong
from tests.engine.strategies.range_reference import DAY, HOUR
from tests.engine.strategies.range_sequences import Death, Killed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ACTIONS = 7
_NOBODY = 2**22 + 1  # no process has this number
_BAD = ("failed", "missing", "skipped", "waiting", "running")


class Play(Checks):
    """One project, its sources and what is done with them."""

    def __init__(self, spark: SparkSession | None, folder: Path, seed: int) -> None:
        super().__init__(spark, folder, seed)
        self._observe()

    def play(self, actions: int) -> str | None:
        try:
            for _ in range(actions):
                self.seen.action += 1
                self._act()
            self._finish()
        except Wrong as wrong:
            return "\n".join((*self.log, f"WRONG: {wrong}"))
        except Exception:
            return "\n".join((*self.log, traceback.format_exc()))
        finally:
            self.project.close()
            self.duck.close()
        return None

    # --- what is done

    def _act(self) -> None:
        if self.chance.random() < 0.5:
            self._run_some()
            return
        edits = self.edits
        for _ in range(self.chance.choice((1, 1, 2))):
            self.chance.choice(edits)()
        self._observe()
        self._check()

    # --- runs

    def _run_some(self) -> None:
        chance, world = self.chance, self.world
        names = [m.name for m in world.models.values() if m.kind != "embedded"]
        select: list[str] = []
        if chance.random() < 0.5:
            select = sorted(chance.sample(names, chance.randrange(1, len(names) + 1)))
        self.now = min(self.now + chance.choice((0, 1, 1, 2)) * DAY, world.end + 12 * HOUR)
        asked: dict[str, Any] = {"fire_time": self.now + chance.choice((0, 5)) * HOUR}
        way = chance.choice(("range", "range", "range", "range", "all", "plain", "partition"))
        if way in ("range", "all"):
            days = sorted(chance.choice(self._days()) for _ in range(2))
            asked |= {"from_": str(days[0]), "to": str(days[1])}
        if way == "all":
            asked["all_"] = True
        if way == "partition":
            asked["partition"] = str(chance.choice(self._days()))
        if chance.random() < 0.15:
            asked["allow_missing"] = True
        elif chance.random() < 0.3:
            asked["upstream"] = True
        if chance.random() < 0.4:
            asked["behind"] = chance.choice((True, True, False))
        self._run(select, asked, self._kill())

    def _kill(self) -> int | None:
        """After how many events the process of a run ends; None: at its end."""
        return self.chance.randrange(20) if self.chance.random() < 0.2 else None

    def _run(
        self, select: Sequence[str], asked: Mapping[str, Any], kill: int | None = None
    ) -> RunResult | None:
        shown = ", ".join(f"{key}={value}" for key, value in asked.items())
        self.log.append(f"run {' '.join(select)} {shown} {'' if kill is None else f'kill={kill}'}")
        death, result, before = Death(kill), None, self._run_ids()
        lacking = list(self._lacking()) if "from_" in asked and not asked.get("all_") else []
        try:
            result = self._perform(select, asked, death)
        except Killed:
            self._die()
        except (ArgumentError, PartitionError) as error:
            self.log.append(f"  refused: {error.message}")
        for step in () if result is None else result.steps:
            why = (step.reason or (step.error and step.error.message) or "").splitlines()[:1]
            self.log.append(f"  {step.name} {step.slice or ''}: {step.state} {' '.join(why)}")
        ids = self._run_ids() - before
        self._note_views()
        self._observe()
        self._require_added_once(lacking)
        statuses = self._statuses()
        self._note_made(ids, statuses, asked)
        self._check(statuses)
        return result

    def _lacking(self) -> Iterator[tuple[Model, Unit, list[Row]]]:
        """The slices of appends that are named as missing, with the rows that are there."""
        appends = [model for model in self._stored() if model.appends]
        statuses = self._statuses() if appends else {}
        for model in appends:
            for unit in self.world.units(model):
                rows = self._rows(model, unit)
                if rows and unit.name not in statuses[model.name]:
                    yield model, unit, rows

    def _require_added_once(self, lacking: Sequence[tuple[Model, Unit, list[Row]]]) -> None:
        for model, unit, rows in lacking:
            self._require(model, unit, self._rows(model, unit), rows, "a range has added to")

    def _note_views(self) -> None:
        """The views that a run has created again have their new queries."""
        records = Records(self.project.lake("main").catalog)
        for name in list(self.queries):
            known = records.slice(f"main.{name}", "")
            now = self.project.model(name).definition_hash
            if known is not None and known.definition_hash == now:
                del self.queries[name]
                self.created[name] = self.seen.action

    def _perform(self, select: Sequence[str], asked: Mapping[str, Any], death: Death) -> RunResult:
        if self.spark is not None:
            return self.project.run(*select, on_event=death, jobs=1, **asked)
        return self._duckling().run(select, death, asked)

    def _duckling(self) -> Duckling:
        content = {name: list(rows) for name, rows in self.seen.tables.items()}
        queries = dict(self.queries)
        views = set(self.views)
        return Duckling(self.project, self.world, self.duck, content, views, self.values, queries)

    def _die(self) -> None:
        """Everything of the run is gone with its process."""
        self.project.close()
        self.log.append("  killed")
        with self._catalog() as connection:
            names = "('penstock_run', 'penstock_claim')"
            known = f"SELECT name FROM sqlite_master WHERE name IN {names}"
            for (table,) in connection.execute(known).fetchall():
                where = " WHERE state = 'running'" if table == "penstock_run" else ""
                connection.execute(f"UPDATE {table} SET pid = {_NOBODY}{where}")
        self.project = self._open()

    @contextmanager
    def _catalog(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self.root / "lake/meta.sqlite")
        try:
            with connection:
                yield connection
        finally:
            connection.close()

    def _run_ids(self) -> set[str]:
        with self._catalog() as connection:
            known = "SELECT name FROM sqlite_master WHERE name = 'penstock_run'"
            if not connection.execute(known).fetchall():
                return set()
            return {id_ for (id_,) in connection.execute("SELECT run_id FROM penstock_run")}

    def _note_made(
        self, ids: Collection[str], statuses: Mapping[str, Named], asked: Mapping[str, Any]
    ) -> None:
        """What a run has made is what its query makes of what is there now."""
        now = asked["fire_time"]
        for model in self._stored():
            for unit in self._recorded(model, ids):
                rows = self._rows(model, unit)
                meaning, file = self.world.meaning(model), self.values.get(unit.name)
                made = Made(self.seen.action, meaning, dict(self.seen.tables), rows, file)
                self.seen.made[model.name, unit.name] = made
                if not model.appends:
                    self._require(model, unit, rows, self._expected(model, unit), "has made")
                if not asked.get("allow_missing"):
                    self._was_not_to_wait(model, unit, statuses, now)

    def _was_not_to_wait(
        self, model: Model, unit: Unit, statuses: Mapping[str, Named], now: datetime
    ) -> None:
        """All that it needs was there: what is over, and has begun. That holds for its own slices
        before it as well (docs/inputs.md): one that a run makes ahead of its time does not wait for
        the one before, which will be over only then (seed 7012).
        """
        own = model.op == "running" and unit.start <= now
        if own and model.begins and unit.start > model.begins:
            name = f"{unit.start - DAY:%Y-%m-%d}"
            state, _ = statuses[model.name].get(name, ("missing", ""))
            if state in _BAD:
                raise Wrong(f"{model.name} {unit.name} was made, {name} of it is {state}")
        for read in self.world.leaves(model):
            above = self.world.models.get(read.table)
            if above is None or above.cadence is None or read.how == "tag" or above is model:
                continue
            first, end = model.window(read, unit)
            if model.cadence is None or read.how == "all":
                continue
            first = max(first, above.begins or first)
            for each in above.cadence.units(first, end):
                if each.end <= now and above.begins and each.start >= above.begins:
                    state, _ = statuses[above.name].get(each.name, ("missing", ""))
                    if state in _BAD:
                        lacks = f"{above.name} {each.name} is {state}"
                        raise Wrong(f"{model.name} {unit.name} was made, {lacks}")

    # --- the end

    def _finish(self) -> None:
        """Everything is made, and each table is what it is from scratch."""
        self.seen.action += 1
        self._heal()
        self._observe()
        self._check()
        last = self._last_day()
        days = {"from_": str(self.world.first), "to": str(last)}
        noon = self.world.end + (last - self.world.last) + 12 * HOUR  # the last day is over
        asked: dict[str, Any] = {**days, "fire_time": noon, "behind": True}
        self._everything(asked)
        if self._make_stale(asked):
            self.seen.action += 1
            self._everything(asked)
        self._compare()
        self.seen.action += 1
        result = self._everything(asked)
        again = [s for s in result.steps if s.state not in ("skipped", "unchanged")]
        if again:
            raise Wrong(f"made again: {[(s.name, s.slice, s.state, s.reason) for s in again]}")

    def _last_day(self) -> date:
        """The last day of ranges, or the one after it where a plain run made a slice of that: what
        this was made from may be behind, and a range makes nothing again that lies outside of it.
        """
        stored = [model for model in self._stored() if model.cadence]
        asked = {m.name: {unit.name for unit in self.world.units(m)} for m in stored}
        beyond = any(u.name not in asked[m.name] for m in stored for u in self._recorded(m))
        return self.world.last + DAY if beyond else self.world.last

    def _make_stale(self, asked: Mapping[str, Any]) -> bool:
        """What another definition has made is made again by runs that ask for it, and so is what
        holds rows of a whole table that fail its readers.
        """
        some = False
        for model in self._stored():
            bad = any(v >= TOO_MUCH for _, _, v, _ in self.seen.content(model.name))
            states = self._statuses()[model.name].values()
            if bad or any(state == "stale" for state, _ in states):
                some = True
                self.seen.action += 1
                ways = {"fire_time": asked["fire_time"]}
                self._run([model.name], {**asked, "all_": True} if model.cadence else ways)
        return some

    def _everything(self, asked: Mapping[str, Any]) -> RunResult:
        names = [m.name for m in self.world.models.values() if m.kind != "embedded"]
        if not any(self.world.models[name].cadence for name in names):
            asked = {"fire_time": asked["fire_time"]}
        result = self._run([], asked)
        assert result is not None, "a range of everything is not refused"
        return result

    def _heal(self) -> None:
        """Take away what no slice can be made of. Rows that an append made of rows that are gone
        stay, as no run takes them back (docs/inputs.md), and would fail what reads it for ever:
        they are deleted there as well, as somebody who runs it would (seed 8013).
        """
        if any(v >= TOO_MUCH for _, _, v, _ in self.seen.content(EVENTS)):
            self._sql(f"DELETE FROM {EVENTS} WHERE v >= {TOO_MUCH}")
        for model in self._stored():
            bad = any(v >= TOO_MUCH for _, _, v, _ in self.seen.content(model.name))
            if model.appends and bad:
                self.seen.foreign[model.name].append(self.seen.action)
                self._sql(f"DELETE FROM {model.name} WHERE v >= {TOO_MUCH}")
        for day in self._file_days():
            if str(day) not in self.values:
                self._write_file(day, good=True)

    def _compare(self) -> None:
        tables: dict[str, Sequence[Row]] = {
            name: self.seen.content(name) for name in (EVENTS, NAMES)
        }
        statuses = self._statuses()
        for model in self._stored():
            asked = {unit.name: unit for unit in self.world.units(model)}
            units = {**asked, **{unit.name: unit for unit in self._recorded(model)}}
            rows: list[Row] = []
            for unit in sorted(units.values(), key=lambda each: each.start):
                tables[model.name] = rows
                state, reason = statuses[model.name].get(unit.name, ("missing", ""))
                if state != "materialized" and not model.appends and unit.name in asked:
                    raise Wrong(f"in the end {model.name} {unit.name} is {state} ({reason})")
                own = self._rows(model, unit)
                made = self.seen.made.get((model.name, unit.name))
                lost = made is not None and self._is_forgotten(model, made)
                if not model.appends and not lost and unit.name in asked:
                    wanted = self._expected(model, unit, tables)
                    self._require(model, unit, own, wanted, "in the end")
                rows += own
            extra = Counter(self.seen.content(model.name)) - Counter(rows)
            if extra:
                raise Wrong(f"in the end {model.name} has other rows: {shown(list(extra))}")
            tables[model.name] = rows


def wrong(
    spark: SparkSession | None, folder: Path, seed: int, actions: int = ACTIONS
) -> str | None:
    """What came out otherwise, with all that was done; None for nothing."""
    folder.mkdir(exist_ok=True)
    return Play(spark, folder, seed).play(actions)
