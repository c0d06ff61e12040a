"""A project for kills: what is sent to it, what its tables must be in the end, and what is open."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import select

from penstock.engine.state.agenda_tables import EVENT, FIRING, OUTCOME
from penstock.lakes.catalog.catalog import Catalog
from penstock.project.project import Project
from penstock.scheduler.values import EventKind, FiringState, TriggerEvent
from penstock.server.agenda_store import AgendaStore
from penstock.server.backfilling import queue_backfill
from penstock.server.opening import open_agenda
from tests.engine.toy import write_project
from tests.server.sparkless import COLUMNS, MAKERS, PARTITION, Row

CONFIG = """
[project]
name = "killed"
[lakes.main]
catalog = "{catalog}"
data_path = "lake/data"
[serve]
slots = 3
drain_timeout = "5s"
"""
_DAILY = "-- pipeline\n{}-- partitioned daily start=2026-01-01\n-- materialize ducklake://main/{}\n"
_ON = "-- on ducklake://main/{}\n"
_KEY = "WHERE _wm_partition = '{partition}'"
SCRIPTS = {
    "models/days": _DAILY.format(_ON.format("events"), "days") + f"SELECT id, v FROM events {_KEY}",
    "models/sums": _DAILY.format(_ON.format("days"), "sums")
    + f"SELECT count(*) AS n, coalesce(sum(v), 0) AS v FROM days {_KEY}",
    "models/costs": _DAILY.format(_ON.format("rates"), "costs") + f"SELECT v FROM rates {_KEY}",
    "models/both": _DAILY.format(
        _ON.format("days") + _ON.format("costs") + "-- trigger all\n", "both"
    )
    + f"SELECT coalesce((SELECT sum(v) FROM days {_KEY}), 0)"
    + f" + coalesce((SELECT sum(v) FROM costs {_KEY}), 0) AS v",
    "models/hist": _DAILY.format("", "hist") + f"SELECT v FROM old {_KEY}",
    "models/notes": "-- pipeline\n-- $id (int)\n-- on webhook name=note\n"
    "-- materialize ducklake://main/notes append\nSELECT $id AS id",
    "models/tenants": "-- pipeline\n-- $n (int)\n-- on webhook name=signup\n"
    '-- partitioned dynamic key="$.tenant"\n-- materialize ducklake://main/tenants\nSELECT $n AS n',
}
SOURCES = ("events", "rates", "old")
DAYS = tuple(f"2026-01-{day:02d}" for day in range(1, 6))
_STOPPED = {FiringState.WAITING, *(state for state in FiringState if not state.is_open)}


@dataclass
class Served:
    """A project, and what was sent to it. ``commits`` are the ids of events of its own commits."""

    root: Path
    project: Project
    store: AgendaStore
    chance: random.Random
    tables: dict[str, list[tuple[Row, str]]] = field(
        default_factory=lambda: {name: [] for name in SOURCES}
    )
    notes: list[int] = field(default_factory=list)
    tenants: dict[str, int] = field(default_factory=dict)
    backfilled: set[str] = field(default_factory=set)
    events: list[str] = field(default_factory=list)
    number: int = 0

    @classmethod
    def create(cls, root: Path, catalog: str, chance: random.Random, *, spark: bool) -> Served:
        project = Project.load(write_project(root, SCRIPTS, CONFIG.format(catalog=catalog)))
        lake = project.lake("main")
        for name in SOURCES if spark else COLUMNS:
            columns = ", ".join(f"{column} INTEGER" for column in COLUMNS[name])
            lake.sql(
                f"CREATE TABLE {name} ({columns}, {PARTITION} VARCHAR) PARTITIONED BY ({PARTITION})"
            )
        served = cls(root, project, open_agenda(project.context), chance)
        for day in DAYS:
            served.insert("old", day)
        served.events.clear()  # nobody reads them
        return served

    # --- what is sent

    def act(self) -> str:
        """Do something by chance; return what."""
        deeds = (self.commit, self.commit, self.commit, self.note, self.signup, self.backfill)
        return self.chance.choice(deeds)()

    def commit(self) -> str:
        name = self.chance.choice(("events", "events", "rates"))
        return self.insert(name, *self.chance.sample(DAYS, self.chance.choice((1, 1, 2))))

    def insert(self, name: str, *days: str) -> str:
        rows: list[tuple[Row, str]] = []
        for day in days:
            self.number += 1
            rows.append((tuple(self.number for _ in COLUMNS[name]), day))
        values = ", ".join(f"({', '.join(map(str, row))}, '{day}')" for row, day in rows)
        lake = self.project.lake("main")
        lake.sql(f"INSERT INTO {name} VALUES {values}")
        self.tables[name] += rows
        self.events += [f"{name}/{day}" for day in days]
        return f"{name} {' '.join(days)}"

    def note(self) -> str:
        self.number += 1
        self._send("note", str(self.number), {"id": self.number})
        self.notes.append(self.number)
        return f"note {self.number}"

    def signup(self) -> str:
        self.number += 1
        tenant = self.chance.choice("ab")
        self._send("signup", str(self.number), {"tenant": tenant, "n": self.number})
        self.tenants[tenant] = self.number
        return f"signup {tenant} {self.number}"

    def _send(self, name: str, key: str, payload: Mapping[str, object]) -> None:
        event = TriggerEvent(
            f"message:{name}/{key}", EventKind.MESSAGE, name, datetime.now(UTC), payload=payload
        )
        assert self.store.accept(event)
        if self.chance.random() < 0.3:
            assert not self.store.accept(event)  # sent again

    def backfill(self) -> str:
        start = self.chance.randrange(len(DAYS))
        days = DAYS[start : start + self.chance.choice((1, 3))]
        model = self.project.model("hist")
        bounds = {"from_": days[0], "to": days[-1]}
        queue_backfill(self.project.context, self.store, model, bounds, all_=self.number % 2 == 0)
        self.backfilled |= set(days)
        return f"backfill {days[0]} {days[-1]}"

    # --- what comes of it

    def settle(self, seconds: float) -> list[str]:
        """Wait until nothing is left to do, and send what joins wait for; return what is wrong."""
        deadline = time.monotonic() + seconds
        quiet = 0
        while time.monotonic() < deadline:
            busy = self.open_work()
            quiet = 0 if busy else quiet + 1
            if quiet >= 2 and not self._complete():
                return []
            time.sleep(0.1)
        return [f"after {seconds} s there is still {busy or 'a join that waits'}"]

    def open_work(self) -> list[str]:
        """What is not done: firings, events, and commits that were not looked at."""
        firings = self.store.load().firings.values()
        open_ = [f"{one.model} {one.key} {one.state.value}" for one in firings if not _waits(one)]
        open_ += [f"undecided {event.id}" for event in self.store.list_undecided(10)]
        newest = self.project.lake("main").catalog.latest().id
        looked = {position.snapshot_id for position in self.store.positions().values()}
        return open_ + ([] if looked == {newest} else [f"snapshot {newest}, looked at {looked}"])

    def _complete(self) -> bool:
        """Send what one join waits for; whether there is one."""
        for firing in self.store.load().firings.values():
            missing = {name.rpartition(".")[2] for name in firing.missing}
            self.insert("rates" if "costs" in missing else "events", firing.key)
            return True
        return False

    def check(self) -> Iterator[str]:
        """Yield what is wrong after all was done."""
        expected, there = self.expected(), self.content()
        for name, rows in expected.items():
            if Counter(rows) != Counter(there[name]):
                yield f"{name} is {sorted(there[name])}, not {sorted(rows)}"
        with self.store.catalog.reading() as connection:
            decided = select(OUTCOME.c.event_id)
            lost = EVENT.c.decided_at.is_(None) | EVENT.c.event_id.not_in(decided)
            for row in connection.execute(select(EVENT).where(lost)):
                yield f"event {row.event_id} has no outcome, decided at {row.decided_at}"
            seen = Counter(
                f"{row.source.rpartition('.')[2]}/{row.partition_value}"
                for row in connection.execute(select(EVENT).where(EVENT.c.kind == "asset"))
            )
            for name, number in Counter(self.events).items():
                if seen[name] != number:
                    yield f"{number} changes of {name}, {seen[name]} events"
            for row in connection.execute(select(FIRING).where(FIRING.c.state != "done")):
                firing = f"firing {row.firing_id} {row.model} {row.slice_key}"
                yield f"{firing}: {row.state} ({row.reason})"

    def expected(self) -> dict[str, list[tuple[Row, str | None]]]:
        """What the tables of the models are in an undisturbed run."""
        known: dict[str, dict[str, list[Row]]] = {name: {} for name in COLUMNS}
        for name, rows in self.tables.items():
            for row, key in rows:
                known[name].setdefault(key, []).append(row)

        def read(name: str, key: str) -> list[Row]:
            return known[name].get(key, [])

        keys = {
            "days": set(known["events"]),
            "costs": set(known["rates"]),
            "sums": set(known["events"]),
            "both": set(known["events"]) & set(known["rates"]),
            "hist": self.backfilled,
        }
        for name, slices in keys.items():
            for key in slices:
                known[name][key] = MAKERS[name](read, key, {})
        found: dict[str, list[tuple[Row, str | None]]] = {
            name: [(row, key) for key in slices for row in known[name][key]]
            for name, slices in keys.items()
        }
        found["notes"] = [((number,), None) for number in self.notes]
        found["tenants"] = [((number,), tenant) for tenant, number in self.tenants.items()]
        return found

    def content(self) -> dict[str, list[tuple[Row, str | None]]]:
        """What they are."""
        lake = self.project.lake("main")
        found: dict[str, list[tuple[Row, str | None]]] = {}
        snapshot = lake.catalog.latest()
        for name in MAKERS:
            found[name] = []
            if lake.catalog.known_table("main", name, snapshot) is None:
                continue
            columns = COLUMNS[name] if name == "notes" else (*COLUMNS[name], PARTITION)
            rows = lake.table(name).few_rows(columns, snapshot.id)
            assert rows is not None, f"{name} is not simple to read"
            for row in rows.to_pylist():
                values = tuple(row[column] for column in COLUMNS[name])
                found[name].append((values, row.get(PARTITION)))
        return found

    def close(self) -> None:
        catalog = self.store.catalog
        assert isinstance(catalog, Catalog)
        catalog.close()
        self.project.close()


def _waits(firing: object) -> bool:
    return getattr(firing, "state", None) in _STOPPED
