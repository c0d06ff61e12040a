"""The flights example lives through a month: late, corrected and bad files, downtime and restarts.

    python -m tests.server.flights_month --days 31

A copy of the example is served while a clock goes from day to day. Files of days arrive in the
evening, some of them later, some wrong, some again with other rows. Servers are stopped within a
cascade, and one is down for a day. At the end each table must be what a project has that runs all
days once. Days after those of the example have its files again, with other dates.
"""

from __future__ import annotations

import argparse
import gzip
import os
import random
import shutil
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.events import ignore
from penstock.project.project import Project
from penstock.scheduler.values import Firing, FiringState
from penstock.server.serving import ServeOptions, Server
from penstock.settings.config import SparkSettings
from tests.engine.toy import rows
from tests.examples.conftest import copy_of_example
from tests.examples.facts import EXAMPLE, NEW_YORK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.events import EventSink

FIRST, SHIPPED = date(2013, 1, 1), 14
LINES = {
    "raw/flights": (
        "on file://data/flights-{partition}.csv.gz",
        'on schedule cron="30 23 * * *" tz="America/New_York"',
    ),
    "raw/airports": ("on file://data/airports.csv",),
    "clean/airlines": ("on file://data/airlines.csv",),
    "clean/flights": ("on ducklake://main/flights_raw",),
    "marts/delays_daily": ("on ducklake://main/flights", "on ducklake://main/airlines"),
    "marts/airline_ranking": ("on ducklake://main/delays_daily",),
    "logs/loads": ("on ducklake://main/flights",),
    "logs/leaders": ("on ducklake://main/airline_ranking",),
}
COMPARED = ("airports", "airlines", "flights_raw", "flights", "delays_daily", "airline_ranking")
_SERVE = '\n[serve]\nfile_poll = "1s"\n'


def text_of(day: date) -> str:
    """Return the file of a day; the days after the example's have its rows with other dates."""
    number = (day - FIRST).days % SHIPPED
    source = FIRST + timedelta(days=number)
    text = gzip.decompress((EXAMPLE / "data" / f"flights-{source}.csv.gz").read_bytes()).decode()
    if source == day:
        return text
    header, *lines = text.splitlines(keepends=True)
    shifts = {source + timedelta(days=n): day + timedelta(days=n) for n in (0, 1)}
    for old, new in shifts.items():
        lines = [line.replace(f",{old}T", f",{new}T").replace(f",{old} ", f",{new} ")
                 for line in lines]  # fmt: skip
    prefix, other = (f"{each.year},{each.month},{each.day}," for each in (source, day))
    return header + "".join(other + line.removeprefix(prefix) for line in lines)


@dataclass
class Month:
    """The copy that is served, and what happened to it."""

    root: Path
    spark: SparkSession
    chance: random.Random
    moment: datetime = datetime(2013, 1, 1, 5, tzinfo=UTC)
    states: Counter[str] = field(default_factory=Counter)
    restarts: int = 0
    failures: list[str] = field(default_factory=list)

    def put(self, name: str, text: str) -> None:
        """Write a file of ``data`` at the time of the clock."""
        path = self.root / "data" / name
        is_packed = name.endswith(".gz")
        path.write_bytes(gzip.compress(text.encode(), mtime=0) if is_packed else text.encode())
        os.utime(path, (self.moment.timestamp(), self.moment.timestamp()))

    def put_day(self, day: date, *, is_bad: bool = False, delay: int = 0) -> None:
        """Write the file of a day: as it is, with an unknown airport, or with other delays."""
        text = text_of(day)
        if is_bad:
            text = text.replace(",JFK,", ",XXX,", 5)
        if delay:
            header, *lines = text.splitlines(keepends=True)
            fields = [line.split(",") for line in lines]
            column = header.split(",").index("air_time")
            for each in fields[::7]:
                each[column] = str(delay)
            text = header + "".join(map(",".join, fields))
        self.put(f"flights-{day}.csv.gz", text)

    def serve(self, local: datetime, stop_after: int | None = None) -> None:
        """Serve until nothing is open; first stop within a cascade and begin again, if asked to."""
        self.moment = local.replace(tzinfo=NEW_YORK).astimezone(UTC)
        for limit in (*((stop_after,) if stop_after else ()), None):
            self._serve(limit)
            self.restarts += 1

    def _serve(self, limit: int | None) -> None:
        started: list[Firing] = []

        def sink(firing: Firing) -> EventSink:
            started.append(firing)
            if len(started) == limit:
                server.stop()
            return ignore

        with Project.load(self.root, spark=self.spark) as project:
            server = Server(
                project.context,
                ServeOptions(has_http=False, is_once=True, sink=sink, clock=lambda: self.moment),
            )
            server.run()
            for firing in started:
                record = server.store.read_firing(firing.id)
                assert record is not None
                self.states[f"{firing.model} {record.firing.state.value}"] += 1
                if record.firing.state is FiringState.FAILED:
                    self.failures.append(f"{firing.model} {firing.key}: {record.firing.reason}")
            if limit is None:
                assert server.store.list_undecided(10) == []
                assert server.store.load().firings == {}, server.store.load().firings


def prepare(target: Path) -> Path:
    """Copy the example with lines ``on``, without the files of days."""
    target.mkdir()
    root = copy_of_example(target)
    for model, lines in LINES.items():
        path = root / "models" / f"{model}.sql"
        added = "".join(f"-- {line}\n" for line in lines)
        path.write_text(path.read_text().replace("-- pipeline\n", f"-- pipeline\n{added}", 1))
    with (root / "penstock.toml").open("a") as config:
        config.write(_SERVE)
    for path in (root / "data").glob("flights-*"):
        path.unlink()
    return root


def play(month: Month, days: int) -> None:
    """Let the days pass. The chance says what happens on each; the second one is always late."""
    with Project.load(month.root, spark=month.spark) as project:
        for name in ("airports", "airlines"):
            assert project.run(name).state == "done"
    month.serve(datetime.combine(FIRST, datetime.min.time()))  # it begins to look from here
    owed: dict[date, list[tuple[date, dict[str, Any]]]] = {}
    for number in range(days):
        day = FIRST + timedelta(days=number)
        evening = datetime.combine(day, datetime.min.time()) + timedelta(hours=23, minutes=30)
        began = time.monotonic()
        month.moment = evening.replace(tzinfo=NEW_YORK).astimezone(UTC)
        fate = "late" if number == 1 else "bad" if number == 3 else _fate(month.chance)
        for due, options in owed.pop(day, []):
            month.put_day(due, **options)
        if fate == "late":
            owed.setdefault(min(day + timedelta(days=2), _end(days)), []).append((day, {}))
        else:
            month.put_day(day, is_bad=fate == "bad")
        if fate in {"bad", "corrected"}:
            delay = {"delay": 100 + number} if fate == "corrected" else {}
            owed.setdefault(min(day + timedelta(days=1), _end(days)), []).append((day, delay))
        if number % 7 == 4:
            _add_airline(month, number)
        if fate != "down":
            month.serve(evening + timedelta(seconds=30), month.chance.choice((None, 1, 2, 4)))
        print(f"{day} {fate:<10} {time.monotonic() - began:5.1f} s", flush=True)
    for due in sorted(owed):
        month.moment += timedelta(hours=1)
        for day, options in owed[due]:
            month.put_day(day, **options)
    month.serve(datetime.combine(_end(days), datetime.min.time()) + timedelta(hours=9))


def _end(days: int) -> date:
    return FIRST + timedelta(days=days)


def _fate(chance: random.Random) -> str:
    return chance.choice(("usual", "usual", "usual", "late", "corrected", "bad", "down"))


def _add_airline(month: Month, number: int) -> None:
    """Add a line. Slices of the past mean the airlines as they were: no name of theirs changes."""
    text = (month.root / "data" / "airlines.csv").read_text()
    month.put("airlines.csv", f"{text}X{number},Airline {number} Inc.\n")


def compare(month: Month, days: int) -> list[str]:
    """Return the tables that are not what a project has that runs all days once."""
    fresh = month.root.parent.parent / "fresh" / "flights"
    shutil.copytree(month.root, fresh, ignore=shutil.ignore_patterns("lake", ".penstock"))
    with (
        Project.load(fresh, spark=month.spark) as computed,
        Project.load(month.root, spark=month.spark) as served,
    ):
        result = computed.run(from_=str(FIRST), to=str(_end(days) - timedelta(days=1)))
        assert result.state == "done", [step for step in result.steps if step.state != "done"]
        query = "SELECT * FROM {}"
        different = [
            table
            for table in COMPARED
            if sorted(map(str, rows(served, query.format(table))))
            != sorted(map(str, rows(computed, query.format(table))))
        ]
        last = """SELECT _wm_partition, max_by(flights, loaded_at), max_by(raw_rows, loaded_at)
            FROM loads GROUP BY 1 ORDER BY 1"""
        if rows(served, last) != rows(computed, last):
            different.append("loads")
        return different


def run(work: Path, spark: SparkSession, days: int, seed: int = 1) -> tuple[Month, list[str]]:
    """Play some days; return what happened, and the tables that are wrong."""
    month = Month(prepare(work / "served"), spark, random.Random(seed))
    play(month, days)
    return month, compare(month, days)


def main() -> None:
    """Play the days that the command line says."""
    from penstock.engine.session.spark import start_session

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=31)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    spark = start_session(SparkSettings(master="local[2]", conf={}), "flights-month")
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as work:
        month, different = run(Path(work), spark, arguments.days, arguments.seed)
    for name, number in sorted(month.states.items()):
        print(f"{number:>4}  {name}")
    for failure in month.failures:
        print(f"failed: {failure}")
    print(f"{month.restarts} servers, {time.monotonic() - began:.0f} s")
    if different:
        raise SystemExit(f"differ from a recomputation: {', '.join(different)}")
    print("each table equals a recomputation")


if __name__ == "__main__":
    main()
