"""A table goes back, with the slices that are recorded of it. No Spark.

Tests ``engine/answers/read_later.py`` and ``cli/rollback.py`` as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from penstock.cli.main import main
from penstock.engine.answers.read_later import Reader
from penstock.engine.state.claims import Asked, Claims, Timing
from penstock.engine.state.records import InputRead, ReadRecord
from penstock.engine.state.store import State, StepRecords, holders_of
from penstock.errors import ArgumentError, CommitConflict, SnapshotNotFound
from penstock.events import Event
from penstock.project.project import Project
from tests import duck
from tests.engine.state.builders import publication, run_record, step_record
from tests.engine.toy import write_project

HEAD = "-- pipeline\n-- partitioned daily start=2026-01-01\n-- materialize ducklake://main/{}\n"
SCRIPTS = {
    "models/days": HEAD.format("days") + "SELECT '{partition}' AS day, 1 AS n",
    "models/reader": HEAD.format("reader") + "SELECT day FROM days WHERE day = '{partition}'",
    "models/top": "-- pipeline\n-- materialize ducklake://main/top\nSELECT max(day) d FROM reader",
    "models/seen": "MODEL (name seen, kind VIEW);\nSELECT day FROM days",
}
CREATE = "CREATE TABLE {} (day VARCHAR, n INT, _wm_partition VARCHAR)"


class Shop:
    """A lake that runs have written, as far as its tables and its records say."""

    def __init__(self, root: Path) -> None:
        self.project = Project.load(write_project(root / "shop", SCRIPTS))
        self.lake = self.project.lake("main")
        self.state = State(self.lake.catalog)
        self.number = 0
        self.lake.sql(CREATE.format("days"))
        self.lake.sql(CREATE.format("reader"))

    def made_empty(self, name: str, day: str, at: datetime) -> None:
        """A run that makes a day without rows: it needs no snapshot."""
        self.number += 1
        run, model = f"r{self.number}", self.project.model(name)
        key = {"step": name, "target": model.target.qualified, "slice": day}
        self.state.begin_run(run_record(run))
        self.state.begin_step(step_record(run, started_at=at, **key))
        made = publication(
            run,
            **key,
            rows=0,
            made_before=None,
            definition_hash=model.definition_hash,
            slicing=model.slicing,
            columns=(),
            at=at,
        )
        records = StepRecords((replace(made, state="unchanged"),), self.lake.catalog.latest().id)
        self.state.write(records.write)
        self.state.end_run(run, "done", 0)

    def made(self, name: str, day: str, n: int, *, read: str = "src") -> int:
        """A run that makes a day, and what it read; the snapshot of it."""
        self.number += 1
        run = f"r{self.number}"
        self.state.begin_run(run_record(run))
        before = self.lake.catalog.latest().id
        self.lake.sql(f"DELETE FROM {name} WHERE day = '{day}'")
        self.lake.sql(f"INSERT INTO {name} VALUES ('{day}', {n}, '{day}')")
        at = self.lake.catalog.latest().id
        model = self.project.model(name)
        target = model.target.qualified
        self.state.begin_step(step_record(run, step=name, target=target, slice=day))
        inputs = (InputRead("table", f"main.main.{read}"),)
        made = publication(
            run,
            step=name,
            target=target,
            slice=day,
            definition_hash=model.definition_hash,
            slicing=model.slicing,
            columns=(),
            read_id=f"read-{run}",
            at=datetime(2026, 2, 1, tzinfo=UTC),
        )
        record = ReadRecord(f"read-{run}", target, run, {"main": before}, inputs)
        records = StepRecords((made,), before, reads=(record,))
        self.state.write(lambda connection: records.write(connection, at))
        self.state.end_run(run, "done", 0)
        return at

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        return sorted(tuple(row) for row in self.project.query(f"SELECT day, n FROM {name}").rows)


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    made = Shop(tmp_path)
    with made.project:
        yield made


def test_slices_made_since_are_missing_and_their_readers_behind(shop: Shop) -> None:
    good = shop.made("days", "2026-01-01", 1)
    shop.made("days", "2026-01-02", 2)
    shop.made("reader", "2026-01-02", 2, read="days")
    done = shop.project.rollback("days", good)
    (table,) = done.tables
    assert (table.to, table.rows_before, table.rows) == (good, 2, 1)
    assert (table.slices_missing, table.slices_back) == (("2026-01-02",), ())
    assert table.snapshot == shop.lake.catalog.latest().id
    assert done.behind == (Reader("reader", "main.reader", ("2026-01-02",)),)
    assert shop.rows("days") == [("2026-01-01", 1)]
    states = {each.slice: each.state for each in shop.project.status("days")[0].slices}
    assert states == {"2026-01-01": "materialized", "2026-01-02": "missing"}
    (reader,) = shop.project.status("reader")[0].slices
    assert (reader.slice, reader.state) == ("2026-01-02", "behind")
    assert "1 table, 1 behind" in repr(done)


def test_a_dry_run_says_the_same_and_writes_nothing(shop: Shop) -> None:
    good = shop.made("days", "2026-01-01", 1)
    shop.made("days", "2026-01-02", 2)
    latest = shop.lake.catalog.latest().id
    told = shop.project.rollback("days", "r1", dry_run=True)
    assert shop.lake.catalog.latest().id == latest
    done = shop.project.rollback("days", good)
    assert replace(done.tables[0], snapshot=None) == told.tables[0]
    assert told.dry_run


def test_a_slice_that_was_made_again_comes_back_as_it_was(shop: Shop) -> None:
    good = shop.made("days", "2026-01-01", 1)
    shop.made("days", "2026-01-01", 9)
    (table,) = shop.project.rollback("days", good).tables
    assert (table.slices_missing, table.slices_back) == ((), ("2026-01-01",))
    assert shop.rows("days") == [("2026-01-01", 1)]


def test_a_slice_without_rows_is_missing_only_if_it_was_made_since(shop: Shop) -> None:
    shop.made("days", "2026-01-01", 1)
    shop.made_empty("days", "2026-01-02", datetime.now(UTC))
    good = shop.made("days", "2026-01-03", 1)
    shop.made("days", "2026-01-04", 1)
    for day in ("2026-01-02", "2026-01-05"):  # the first of them again
        shop.made_empty("days", day, datetime.now(UTC))
    told = shop.project.rollback("days", good, dry_run=True).tables[0]
    assert (told.slices_missing, told.slices_back) == (("2026-01-04", "2026-01-05"), ())
    assert shop.project.rollback("days", good).tables[0].slices_missing == told.slices_missing
    states = {each.slice: each.state for each in shop.project.status("days")[0].slices}
    assert (states["2026-01-02"], states["2026-01-05"]) == ("materialized", "missing")
    planned = shop.project.plan("days", from_="2026-01-01", to="2026-01-05").steps[0]
    assert [each.text for each in planned.slices] == ["2026-01-04", "2026-01-05"]


def test_slices_are_named_in_order(shop: Shop) -> None:
    good = [shop.made("days", f"2026-01-0{n}", 1) for n in (3, 1, 2)][-1]
    for number in (5, 4, 2, 3, 1):
        shop.made("days", f"2026-01-0{number}", 9)
    (table,) = shop.project.rollback("days", good, dry_run=True).tables
    assert table.slices_missing == ("2026-01-04", "2026-01-05")
    assert table.slices_back == ("2026-01-01", "2026-01-02", "2026-01-03")


def test_a_slice_that_was_dropped_since_is_there_again(shop: Shop) -> None:
    shop.made("days", "2026-01-01", 1)
    good = shop.made("days", "2026-01-02", 2)
    shop.made("reader", "2026-01-02", 2, read="days")
    shop.project.drop("days", "2026-01-02")
    (table,) = shop.project.rollback("days", good).tables
    assert (table.slices_missing, table.slices_back) == ((), ("2026-01-02",))
    states = {each.slice: each for each in shop.project.status("days")[0].slices}
    assert {name: each.state for name, each in states.items()} == {
        "2026-01-01": "materialized",
        "2026-01-02": "stale",
    }
    assert (states["2026-01-02"].run_id, states["2026-01-02"].snapshot_id) == ("r2", good)
    asked: dict[str, Any] = {"from_": "2026-01-01", "to": "2026-01-02"}
    days, reader = shop.project.plan("days", "reader", **asked).steps
    assert days.skipped is not None
    back = shop.lake.catalog.latest().id
    assert [str(each) for each in reader.ranges] == [
        "2026-01-01 missing",
        f"2026-01-02 behind (days 2026-01-02: snapshot {back}, read {good})",
    ]


def test_a_slice_stays_dropped_where_the_table_goes_back_to_a_later_moment(shop: Shop) -> None:
    shop.made("days", "2026-01-01", 1)
    shop.project.drop("days", "2026-01-01")
    later = shop.made("days", "2026-01-02", 2)
    shop.made("days", "2026-01-01", 3)
    shop.project.drop("days", "2026-01-01")
    shop.made("days", "2026-01-03", 3)
    shop.project.rollback("days", later)
    states = {each.slice: each.state for each in shop.project.status("days")[0].slices}
    assert states == {"2026-01-02": "materialized", "2026-01-03": "missing"}
    assert shop.rows("days") == [("2026-01-02", 2)]


def test_all_slices_that_were_dropped_are_there_again(shop: Shop) -> None:
    good = shop.made("days", "2026-01-01", 1)
    shop.project.drop("days", "2026-01-01")
    shop.project.rollback("days", good)
    (slice_,) = shop.project.status("days")[0].slices
    assert (slice_.state, slice_.rows, slice_.run_id) == ("stale", 3, "r1")
    back = shop.lake.catalog.latest().id
    shop.project.drop("days", "2026-01-01")
    assert shop.rows("days") == []
    (table,) = shop.project.rollback("days", back).tables
    assert table.slices_back == ("2026-01-01",)
    assert shop.rows("days") == [("2026-01-01", 1)]


def test_what_is_there_again_names_the_run_that_made_it(shop: Shop) -> None:
    good = shop.made("days", "2026-01-01", 1)
    shop.made("days", "2026-01-01", 9)
    shop.made("days", "2026-01-02", 9)
    shop.project.rollback("days", good)
    back, missing = shop.project.status("days")[0].slices
    assert (back.state, back.run_id, back.snapshot_id) == ("stale", "r1", good)
    assert (missing.state, missing.run_id, missing.snapshot_id, missing.time) == (
        ("missing", None, None, None)
    )
    made = shop.project.why("days", "2026-01-01").made
    assert made is not None
    assert made.run_id == "r1"
    assert shop.project.why("days", "2026-01-02").made is None


def test_downstream_goes_back_to_the_same_moment(shop: Shop) -> None:
    shop.made("days", "2026-01-01", 1)
    good = shop.made("reader", "2026-01-01", 1, read="days")
    shop.made("days", "2026-01-01", 9)
    shop.made("reader", "2026-01-01", 9, read="days")
    shop.lake.sql("CREATE TABLE top (d VARCHAR)")
    done = shop.project.rollback("days", good, downstream=True)
    assert [(each.model, each.rows) for each in done.tables] == [("days", 1), ("reader", 1)]
    assert done.behind == ()
    assert shop.rows("reader") == [("2026-01-01", 1)]
    (reader,) = shop.project.status("reader")[0].slices
    assert reader.state == "stale"  # as slices are that come back


def test_what_was_made_since_stays_and_is_behind(shop: Shop) -> None:
    good = shop.lake.catalog.latest().id
    shop.lake.sql("DROP TABLE reader")
    shop.lake.sql(CREATE.format("reader"))
    shop.made("days", "2026-01-01", 1)
    shop.made("reader", "2026-01-01", 1, read="days")
    (behind,) = shop.project.rollback("days", good, downstream=True, dry_run=True).behind
    assert (behind.model, behind.reason) == ("reader", "its table was made since")


def test_a_rollback_can_be_rolled_back(shop: Shop) -> None:
    good = shop.made("days", "2026-01-01", 1)
    later = shop.made("days", "2026-01-02", 2)
    shop.project.rollback("days", good)
    (table,) = shop.project.rollback("days", later).tables
    assert (table.rows_before, table.rows) == (1, 2)
    assert shop.rows("days") == [("2026-01-01", 1), ("2026-01-02", 2)]


def test_twice_to_one_point_is_once(shop: Shop) -> None:
    """Rows that are inlined in the catalog come back as new versions, which are the old ones."""
    good = shop.made("days", "2026-01-01", 1)
    shop.made("days", "2026-01-01", 9)
    shop.project.rollback("days", good)
    latest = shop.lake.catalog.latest().id
    (table,) = shop.project.rollback("days", good).tables
    assert (table.differs, table.snapshot) == (False, None)
    assert shop.lake.catalog.latest().id == latest
    assert shop.rows("days") == [("2026-01-01", 1)]


def test_a_run_that_makes_the_table_is_waited_for(shop: Shop) -> None:
    good = shop.made("days", "2026-01-01", 1)
    shop.made("days", "2026-01-02", 2)
    shop.state.prepare()
    with Claims(timing=Timing(lease=1.5, look=0.05)) as claims:
        asked = Asked("main", "main.days", ("2026-01-02",), "r9")
        claim, _ = claims.take(shop.state, asked)
        with pytest.raises(CommitConflict, match=r"run r9 \(.* is making main.days") as refused:
            shop.project.rollback("days", good, wait=False)
        assert refused.value.exit_code == 3
        assert shop.project.rollback("days", good, dry_run=True).tables[0].differs
        said: list[str] = []

        def hear(event: Event) -> None:
            said.append(str(getattr(event, "message", "")))
            claims.release(claim)

        shop.project.on_event = hear
        (table,) = shop.project.rollback("days", good).tables
    assert len(said) == 1
    assert said[0].startswith("waits for main.days: run r9 (")
    assert table.rows == 1
    assert not holders_of(shop.lake.catalog)("main.days", ("",))


def test_what_cannot_be_rolled_back_is_named(shop: Shop) -> None:
    with pytest.raises(ArgumentError, match="seen has no rows of its own"):
        shop.project.rollback("seen", 1)
    with pytest.raises(SnapshotNotFound):
        shop.project.rollback("days", 99)
    with pytest.raises(ArgumentError, match="'nosuch' is not a snapshot, time, age or run"):
        shop.project.rollback("days", "nosuch")


def test_yesterday_is_refused_with_the_points_that_it_may_mean(shop: Shop) -> None:
    with pytest.raises(ArgumentError, match="'yesterday' is not a snapshot") as caught:
        shop.project.rollback("days", "yesterday")
    assert "a date for its begin in UTC (2026-11-27), an age (24h)" in str(caught.value.hint)
    with pytest.raises(SnapshotNotFound):  # a date is read; the lake is younger
        shop.project.rollback("days", "2001-11-27")


def test_duckdb_reads_what_is_back(shop: Shop) -> None:
    good = shop.made("days", "2026-01-01", 1)
    shop.made("days", "2026-01-02", 2)
    shop.project.rollback("days", good)
    root = shop.project.settings.root
    shop.project.close()
    with duck.attach(f"ducklake:sqlite:{root / 'lake/meta.sqlite'}", f"{root}/lake/data/") as lake:
        assert lake.execute("SELECT day, n FROM lk.days").fetchall() == [("2026-01-01", 1)]


def test_the_command(shop: Shop) -> None:
    good = shop.made("days", "2026-01-01", 1)
    shop.made("days", "2026-01-02", 2)
    shop.made("reader", "2026-01-02", 2, read="days")
    root = str(shop.project.settings.root)
    asked = ["rollback", "days", "--to", str(good), "--project", root]
    text = CliRunner().invoke(main, [*asked, "--dry-run"]).stdout
    assert f"main.days would be as it was at snapshot {good}: 1 row instead of 2" in text
    assert "  missing: 2026-01-02\nbehind: reader 2026-01-02\nNothing was written." in text
    told = json.loads(CliRunner().invoke(main, [*asked, "--json"]).stdout)
    assert (told["tables"][0]["to"], told["dry_run"]) == (good, False)
    text = CliRunner().invoke(main, asked).stdout
    assert text == f"main.days is as it was at snapshot {good}\nbehind: reader 2026-01-02\n"
