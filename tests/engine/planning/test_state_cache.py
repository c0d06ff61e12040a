"""States of slices are those that a process without the cache derives, whatever happened since.

Tests ``engine/planning/state_cache.py``, ``engine/state/basis.py`` and, as summaries depend on
them, ``engine/answers/summaries.py``. No Spark: DuckDB makes the
tables, and the records of runs are written as runs write them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import pytest
from sqlalchemy import Connection, update

from penstock.engine.answers.status import statuses
from penstock.engine.answers.summaries import ModelSummary, summarize
from penstock.engine.planning.intervals import IntervalHistory
from penstock.engine.planning.ranges import SliceStates
from penstock.engine.session.connections import Connections
from penstock.engine.state.records import ReadRecord
from penstock.engine.state.store import State, insert_read, publish
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.catalog.database import metadata as t
from penstock.model.time.interval import Interval
from penstock.project.context import ProjectContext
from penstock.project.project import Project
from penstock.settings.config import load_settings
from tests import duck
from tests.engine.state.builders import at, publication, run_record, step_record
from tests.engine.toy import write_project

HEADER = "-- pipeline\n-- partitioned daily\n-- materialize ducklake://main/{}\n"
MODELS = {
    "models/days": HEADER.format("days") + "SELECT n, '{partition}' AS day FROM raw",
    "models/marts": HEADER.format("marts")
    + "SELECT n FROM days JOIN named USING (n) WHERE days._wm_partition = '{partition}'",
    "models/total": "-- pipeline\n-- materialize ducklake://main/total\nSELECT n FROM raw",
    "models/named": "MODEL (name main.named, kind VIEW);\nSELECT 1 AS n",
    "models/feed": "MODEL (name main.feed, kind INCREMENTAL_BY_TIME_RANGE (time_column ds), "
    "start '2026-01-01', end '2026-01-03');\nSELECT ds, n FROM stream WHERE ds >= @start_date AND "
    "ds <= @end_date",
    "models/other": "-- pipeline\n-- materialize ducklake://main/other\nSELECT 2 AS n",
}
LATER = 60 * 24 * 30  # minutes: the days are over
DAYS = ("2026-01-01", "2026-01-02", "2026-01-03")
INTERVALS = tuple(
    Interval(datetime(2026, 1, day, tzinfo=UTC), datetime(2026, 1, day + days, tzinfo=UTC)).text
    for day, days in ((1, 2), (3, 1))
)
EVERY = [
    "days",
    "feed",
    "marts",
    "other",
    "total",
]  # the view has no rows of its own in a lake of DuckDB


@dataclass
class Lake:
    """A project, and its lake with tables that DuckDB made and records as runs write them."""

    root: Path
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    @property
    def uri(self) -> str:
        return f"ducklake:sqlite:{self.root}/lake/meta.sqlite"

    def sql(self, *statements: str) -> None:
        """Change tables as another writer."""
        with duck.attach(self.uri, self.root / "lake" / "data") as duckdb:
            for statement in statements:
                duckdb.execute(statement)

    @contextmanager
    def state(self) -> Iterator[tuple[State, int]]:
        """The state, and the id of the latest snapshot."""
        with Catalog.open(self.uri) as catalog:
            yield State(catalog), catalog.latest().id

    def context(self) -> ProjectContext:
        """A context as a new process has it."""
        settings = load_settings(self.root)
        connections = Connections(settings, None, None)
        return ProjectContext.of(settings, connections.load_models(), connections)

    def record(self, model: str, *values: str) -> None:
        """Record slices as a run does that reads everything as it is."""
        made = self.context().by_name[model]
        with self.state() as (state, latest):

            def write(connection: Connection) -> None:
                number = next(self.numbers)
                read_id = f"read{number}"
                read = ReadRecord(read_id, made.target.qualified, "r1", {"main": latest})
                insert_read(connection, replace(read, tests=made.terms))
                for value in values:
                    what = publication(
                        target=made.target.qualified,
                        slice=value,
                        step=model,
                        strategy=made.strategy.name,
                        slicing=made.slicing,
                        definition_hash=made.definition_hash,
                        read_id=read_id,
                        at=at(LATER + number),
                    )
                    publish(connection, latest, what)

            state.write(write)

    def states(self) -> tuple[Mapping[str, SliceStates], list[str]]:
        """The states by the cache, and which of them came from it; both are as without it."""
        context = self.context()
        models = [model for model in context.models if model.strategy.runs]
        known = context.slices()
        assert known.cache is not None
        feed = context.by_name["feed"]
        models.remove(feed)
        recalled = sorted(
            {
                **known.cache.recall_states(models, context.catalog),
                **known.cache.recall_histories([feed], context.catalog),
            }
        )
        histories = [context.slices().intervals([feed])["feed"]]
        states = context.slices().states(models)
        context.save_facts()
        without = replace(context.slices(), cache=None)
        histories.append(without.intervals([feed])["feed"])
        first, second = (
            [(e.at, e.interval, e.state, e.of, e.behind) for e in history.events]
            for history in histories
        )
        assert first == second
        assert (histories[0].runs, histories[0].remakes) == (
            histories[1].runs,
            histories[1].remakes,
        )
        states = {**states, "feed": _as_states(histories[0])}
        derived = {**without.states(models), "feed": states["feed"]}
        assert {name: dict(of) for name, of in states.items()} == {
            name: dict(of) for name, of in derived.items()
        }
        assert {name: (of.runs, of.remakes, of.causes) for name, of in states.items()} == {
            name: (of.runs, of.remakes, of.causes) for name, of in derived.items()
        }
        summaries = summarize(context.slices(), context.models)
        every = statuses(context.slices(), context.models)
        assert summaries == tuple(map(ModelSummary.of_status, every))
        return states, recalled


def _as_states(history: IntervalHistory) -> SliceStates:
    causes = {event.of: event.behind for event in history.events if event.behind}
    states = {event.interval.text: event.state for event in history.events}
    return SliceStates(states, history.runs, history.remakes, causes)


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    duck.required()
    monkeypatch.setenv("PENSTOCK_CACHE_DIR", str(tmp_path / "cache"))
    root = write_project(tmp_path / "p", MODELS)
    (root / "lake").mkdir()
    lake = Lake(root)
    days = "SELECT 1 AS n, unnest(['2026-01-01', '2026-01-02', '2026-01-03']) AS _wm_partition"
    lake.sql(
        "CREATE TABLE raw AS SELECT 1 AS n",
        "CREATE TABLE unread AS SELECT 1 AS n",
        "CREATE TABLE stream AS SELECT DATE '2026-01-01' AS ds, 1 AS n",
        "CREATE TABLE feed AS SELECT DATE '2026-01-01' AS ds, 1 AS n",
        f"CREATE TABLE days AS {days}",
        f"CREATE TABLE marts AS {days}",
        "CREATE TABLE total AS SELECT 1 AS n",
        "CREATE TABLE other AS SELECT 2 AS n",
        "CREATE VIEW named AS SELECT 1 AS n",
    )
    with lake.state() as (state, _):
        state.begin_run(run_record())
        state.end_run("r1", "success")
    copy = root / "lake" / "copy.sqlite"
    copy.write_bytes((root / "lake" / "meta.sqlite").read_bytes())
    lake.sql("INSERT INTO unread VALUES (9)")
    lake.record("named", "")
    lake.record("days", *DAYS)
    lake.record("marts", *DAYS)
    lake.record("feed", *INTERVALS)
    lake.record("total", "")
    lake.record("other", "")
    _, recalled = lake.states()
    assert recalled == []
    states, recalled = lake.states()
    assert set(EVERY) <= set(recalled)
    assert {str(state) for name in EVERY for state in states[name].values()} == {"materialized"}
    return lake


def _restore(lake: Lake) -> None:
    """Give the latest snapshot another time, as that of another history has."""
    with Catalog.open(lake.uri) as catalog, catalog.writing() as connection:
        latest = t.snapshot.c.snapshot_id == catalog.latest().id
        connection.execute(update(t.snapshot).where(latest).values(snapshot_time=at(9999)))


def _fail(lake: Lake, model: str = "days", value: str = DAYS[1]) -> None:
    with lake.state() as (state, _):
        step = step_record("r9", step=model, target=f"main.{model}", slice=value)
        state.begin_step(replace(step, started_at=at(2 * LATER)))
        state.end_step(("r9", model, value), "failed", "no")


def _forget(lake: Lake) -> None:
    with lake.state() as (state, _):
        state.forget("main.days", DAYS[2])


def _roll_back(lake: Lake) -> None:
    with lake.state() as (_, before):
        pass
    lake.sql(f"DELETE FROM days WHERE _wm_partition = '{DAYS[0]}'")
    lake.record("days", DAYS[0])
    with Project.load(lake.root) as project:
        project.rollback("days", before)


def _go_back(lake: Lake) -> None:
    """Restore a copy of the catalog that is older than all that is remembered."""
    current = lake.root / "lake" / "meta.sqlite"
    current.write_bytes((lake.root / "lake" / "copy.sqlite").read_bytes())


def _edit(lake: Lake) -> None:
    path = lake.root / "models" / "days.sql"
    path.write_text(path.read_text().replace("SELECT n,", "SELECT n + 1 AS n,"))


CHANGES: Mapping[str, tuple[Callable[[Lake], object], list[str]]] = {
    "nothing": (lambda lake: None, []),
    "a table that no model reads": (lambda lake: lake.sql("INSERT INTO unread VALUES (2)"), []),
    "a new table": (lambda lake: lake.sql("CREATE TABLE more AS SELECT 1 AS n"), []),
    "rows of a slice": (
        lambda lake: lake.sql(f"DELETE FROM days WHERE _wm_partition = '{DAYS[0]}'"),
        ["days", "marts"],
    ),
    "rows of a table that no model makes": (
        lambda lake: lake.sql("INSERT INTO raw VALUES (5)"),
        ["days", "total"],
    ),
    "rows within an interval": (
        lambda lake: lake.sql("INSERT INTO stream VALUES (DATE '2026-01-03', 2)"),
        ["feed"],
    ),
    "an interval": (lambda lake: lake.record("feed", INTERVALS[1]), ["feed"]),
    "an interval that failed": (lambda lake: _fail(lake, "feed", INTERVALS[0]), ["feed"]),
    "an own record": (lambda lake: lake.record("marts", DAYS[0]), ["marts"]),
    "a record of an input": (lambda lake: lake.record("days", DAYS[0]), ["days", "marts"]),
    "a failed attempt": (_fail, ["days", "marts"]),
    "a dropped slice": (_forget, ["days", "marts"]),
    "a rollback": (_roll_back, ["days", "marts"]),
    "a table that went": (lambda lake: lake.sql("DROP TABLE total"), ["total"]),
    "a table of another name": (
        lambda lake: lake.sql("ALTER TABLE raw RENAME TO raw2"),
        ["days", "total"],
    ),
    "a table that took the place": (
        lambda lake: lake.sql("DROP TABLE raw", "CREATE TABLE raw AS SELECT 1 AS n"),
        ["days", "total"],
    ),
    "a table of the same name": (
        lambda lake: lake.sql(
            "BEGIN; ALTER TABLE raw RENAME TO aside; ALTER TABLE aside RENAME TO raw; COMMIT"
        ),
        ["days", "total"],
    ),
    "a view": (
        lambda lake: lake.sql("CREATE OR REPLACE VIEW named AS SELECT 2 AS n"),
        EVERY,
    ),
    "another history": (_restore, EVERY),
    "expired snapshots": (
        lambda lake: lake.sql(
            "INSERT INTO unread VALUES (3)",
            "CALL ducklake_expire_snapshots('lk', older_than => now() + INTERVAL 1 DAY)",
        ),
        EVERY,
    ),
    "expired snapshots before": (
        lambda lake: lake.sql(
            "CALL ducklake_expire_snapshots('lk', older_than => now() + INTERVAL 1 DAY)"
        ),
        EVERY,
    ),
    "an older catalog": (_go_back, EVERY),
    "a definition": (_edit, ["days", "marts"]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_makes_states_derived_again(lake: Lake, change: str) -> None:
    act, derived = CHANGES[change]
    act(lake)
    _, recalled = lake.states()
    assert [name for name in EVERY if name not in recalled] == derived
    _, again = lake.states()
    states, _ = lake.states()
    settled = {
        name for name in EVERY if set(states[name].values()) <= {"materialized", "stale"}
    } - {name for name in EVERY if states[name].causes}
    if change == "a rollback":
        settled -= {"days", "marts"}  # whose history of runs counts, too
    assert settled <= set(again), "what was derived is remembered"


def test_changes_follow_upon_each_other(lake: Lake) -> None:
    for change, (act, _) in CHANGES.items():
        if change not in ("a table that went", "a table of another name"):
            act(lake)
            lake.states()
            lake.record("days", DAYS[1])
            lake.states()


def test_states_of_the_next_day_are_those_of_records_then(lake: Lake) -> None:
    lake.record("days", "2026-01-04")
    states, recalled = lake.states()
    assert "total" in recalled
    assert list(states["days"]) == [*DAYS, "2026-01-04"]
    assert states["days"].runs.keys() == {*DAYS, "2026-01-04"}


def test_a_file_that_is_damaged_is_none(lake: Lake) -> None:
    (file,) = (lake.root.parent / "cache").rglob("states.cache")
    for content in (b"", b"nonsense", file.read_bytes()[:-20]):
        file.write_bytes(content)
        _, recalled = lake.states()
        assert recalled == []


def test_what_changes_while_states_are_derived_is_seen_later(lake: Lake) -> None:
    lake.record("days", DAYS[0])
    context = lake.context()
    days = context.by_name["days"]
    known = context.slices()
    known.recorded([days])
    lake.sql(f"DELETE FROM days WHERE _wm_partition = '{DAYS[0]}'")
    assert set(known.states([days])["days"].values()) == {"materialized"}, "of one moment"
    context.save_facts()
    states, _ = lake.states()
    assert states["days"][DAYS[0]] == "changed outside"


def test_a_lake_that_no_model_uses_is_not_opened(lake: Lake) -> None:
    config = lake.root / "penstock.toml"
    broken = '\n[lakes.archive]\ncatalog = "sqlite:lake/broken.sqlite"\ndata_path = "lake/a"\n'
    config.write_text(config.read_text() + broken)
    (lake.root / "lake" / "broken.sqlite").write_text("no database")
    lake.states()


def test_plans_of_models_by_time_that_read_each_other(lake: Lake) -> None:
    path = lake.root / "models" / "below.sql"
    path.write_text(
        MODELS["models/feed"].replace("main.feed", "main.below").replace("stream", "feed")
    )
    lake.sql("CREATE TABLE below AS SELECT DATE '2026-01-01' AS ds, 1 AS n")
    lake.record("below", *INTERVALS)
    for _ in range(3):
        with Project.load(lake.root) as project:
            first = project.plan("below", "feed")
            ranged = project.plan("below", "feed", from_="2026-01-01", to="2026-01-03")
        for plan in (first, ranged):
            assert [(step.name, step.skipped is None) for step in plan.steps] == [
                ("feed", False),
                ("below", False),
            ]
    lake.sql("INSERT INTO stream VALUES (DATE '2026-01-03', 2)")
    for _ in range(3):
        with Project.load(lake.root) as project:
            project.plan()
            project.plan(from_="2026-01-01", to="2026-01-03")


def test_data_tests_of_the_project_are_part_of_what_a_view_is(lake: Lake) -> None:
    before = lake.context().fingerprints
    config = lake.root / "penstock.toml"
    config.write_text(config.read_text() + '\n[project.defaults]\ndata_tests = ["not_null n"]\n')
    after = lake.context().fingerprints
    assert before["named"] != after["named"]


def test_a_table_that_a_model_of_another_lake_has_is_made_by_none(lake: Lake) -> None:
    config = lake.root / "penstock.toml"
    second = '\n[lakes.two]\ncatalog = "sqlite:lake/two.sqlite"\ndata_path = "lake/two"\n'
    config.write_text(config.read_text() + second)
    path = lake.root / "models" / "total.sql"
    path.write_text(path.read_text().replace("ducklake://main/", "ducklake://two/"))
    with Project.load(lake.root) as project:
        tables = {(summary.model, summary.target) for summary in project.summaries()}
        assert tables == {(status.model, status.target) for status in project.status()}
        assert (None, "main.total") in tables
        assert any("no model makes" in notice for notice in project.plan().notices)
