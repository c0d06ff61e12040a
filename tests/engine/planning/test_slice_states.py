"""The states of intervals, where DuckDB changed rows of a table. No Spark."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from penstock.engine.planning.behind import Changed, Input, Inputs, Read, inputs_of
from penstock.engine.planning.intervals import parts_made
from penstock.engine.planning.slice_states import Recorded
from penstock.engine.state.other_writers import Outside, Undone
from penstock.engine.state.records import Publication, SliceRecord, StepRecord
from penstock.engine.state.store import State
from penstock.lakes.catalog.catalog import Catalog
from penstock.model.time.interval import Interval
from penstock.model.time.slice import Part, Slice
from penstock.project.project import Project
from tests import duck
from tests.engine.state.builders import at, publication, run_record
from tests.engine.toy import write_project

KIND = "INCREMENTAL_BY_TIME_RANGE (time_column {}), start '2026-01-01', end '2026-01-05'"
SCRIPT = "MODEL (name main.t, kind {});\nSELECT ds, n FROM raw WHERE ds >= @start_date"
WEEK = Interval(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 6, tzinfo=UTC))
DAY = timedelta(days=1)
NOW = datetime(2026, 1, 9, tzinfo=UTC)


def damaged(root: Path, column: str, value: str, inline: int) -> Project:
    """A table of five days of which DuckDB changed two."""
    duck.required()
    script = SCRIPT.format(KIND.format(column))
    project = Project.load(write_project(root / "p", {"models/t": script}))
    uri = f"ducklake:sqlite:{root}/p/lake/meta.sqlite"
    (root / "p" / "lake").mkdir()
    with duck.attach(uri, root / "p" / "lake" / "data", inline=inline) as duckdb:
        duckdb.execute(f"CREATE TABLE t AS SELECT {value.format(1)} AS ds, 1 AS n")
        for day in range(2, 6):
            duckdb.execute(f"INSERT INTO t SELECT {value.format(day)}, {day}")
        model = project.model("t")
        with Catalog.open(uri) as catalog:
            state = State(catalog)
            state.begin_run(run_record())
            of = ("r1", "t", "done", "main.t", WEEK.text, "time_range", 5, None)
            what = Publication(*of, model.definition_hash, (), (), datetime.now(UTC))
            state.confirm(what, catalog.latest().id)
        duckdb.execute("DELETE FROM t WHERE n = 2")
        duckdb.execute(f"INSERT INTO t SELECT {value.format(4)}, 9")
    return project


@pytest.mark.parametrize("inline", [0, 10])
@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("ds", "DATE '2026-01-0{}'"),
        ("ds", "TIMESTAMP '2026-01-0{} 23:59:59.999999'"),
        ("ds", "TIMESTAMPTZ '2026-01-0{} 00:00:00+00'"),
        ("ds", "'2026-01-0{}'"),
        ("(ds, '%Y%m%d')", "2026010{}::INT"),
    ],
)
def test_the_intervals_that_duckdb_changed(
    tmp_path: Path, column: str, value: str, inline: int
) -> None:
    with damaged(tmp_path, column, value, inline) as project:
        states = [(each.slice, each.state) for each in project.status("t")[0].slices]
        (step,) = project.plan(fire_time=NOW).steps
        assert states == [
            ("2026-01-01", "materialized"),
            ("2026-01-02", "changed outside"),
            ("2026-01-03", "materialized"),
            ("2026-01-04", "changed outside"),
            ("2026-01-05", "materialized"),
        ]
        assert [str(each) for each in step.slices] == ["2026-01-02", "2026-01-04"]
        ranged = project.status("t", from_="2026-01-01", to="2026-01-05")[0]
        assert [(each.slice, each.state) for each in ranged.slices] == states


def test_a_change_that_no_bounds_place_is_one_of_all_intervals(tmp_path: Path) -> None:
    expression = "strptime(ds, '%d.%m.%Y')"
    with damaged(tmp_path, expression, "'0{}.01.2026'", 0) as project:
        (status,) = project.status("t")[0].slices
        assert (status.slice, status.state) == ("2026-01-01 to 2026-01-05", "changed outside")
        (step,) = project.plan(fire_time=NOW).steps
        assert "5 slices changed by another writer" in project.plan(fire_time=NOW).notices[0]
        assert step.slices == (WEEK,)


def test_an_attempt_that_failed_does_not_hide_what_changed_before(tmp_path: Path) -> None:
    script = SCRIPT.format(KIND.format("ds"))
    model = Project.load(write_project(tmp_path / "p", {"models/t": script})).model("t")
    made = publication(target="main.t", slice=WEEK.text, strategy="time_range", slicing="time")
    tried = StepRecord("r2", "t", "main.t", WEEK.text, "failed", at(1))
    recorded = Recorded((made.record(7, 7),), tried=(tried,))
    assert [event.state for event in recorded.painted(model).events] == ["failed"]
    assert recorded.changes(model) == [Changed(WEEK, 7)]


def test_of_intervals_that_were_made_at_once_those_are_behind_whose_input_changed(
    tmp_path: Path,
) -> None:
    scripts = {
        "models/raw": "-- pipeline\n-- partitioned daily\n-- materialize ducklake://main/raw\n"
        "SELECT 1 AS n, '{partition}' AS ds",
        "models/t": SCRIPT.format(KIND.format("ds")),
    }
    project = Project.load(write_project(tmp_path / "p", scripts))
    (edge,) = project.edges["t"]
    changes = [Changed(Part("2026-01-01"), 3), Changed(Part("2026-01-04"), 9)]
    made = publication(target="main.t", slice=WEEK.text, strategy="time_range", slicing="time")
    model = project.model("t")
    record = replace(made.record(7, 7), read_id="a", definition_hash=model.definition_hash)
    inputs = Inputs((Input(edge, lambda: changes, 9),))
    recorded = Recorded((record,), reads={"a": {"main": 6}}, inputs=inputs)
    events = recorded.painted(model).events
    assert [(str(each.interval), each.state) for each in events] == [
        ("2026-01-01 to 2026-01-03", "materialized"),
        ("2026-01-04", "behind"),
        ("2026-01-05", "materialized"),
    ]


def test_intervals_that_a_rollback_has_undone_have_changed(tmp_path: Path) -> None:
    script = SCRIPT.format(KIND.format("ds"))
    model = Project.load(write_project(tmp_path / "p", {"models/t": script})).model("t")
    made = publication(target="main.t", slice=WEEK.text, strategy="time_range", slicing="time")
    recorded = Recorded((made.record(7, 7),), lost=Undone(frozenset({WEEK.text}), (), 9))
    assert recorded.changes(model) == [Changed(WEEK, 9)]


def test_the_parts_of_an_interval_by_what_made_them() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    days = [Interval(start + n * DAY, start + (n + 1) * DAY) for n in range(6)]

    def made(first: int, last: int, made_in: int | None) -> SliceRecord:
        text = Interval(days[first].start, days[last].end).text
        return replace(publication(slice=text).record(9, None), made_in=made_in)

    records = [made(0, 1, 3), made(2, 2, 5), made(3, 3, 3), made(4, 4, None)]
    found = parts_made(records, Interval(days[1].start, days[5].end))
    assert [(str(part), at) for part, at in found] == [
        ("2026-01-02", 3),
        ("2026-01-03", 5),
        ("2026-01-04", 3),
        ("2026-01-05 to 2026-01-06", None),
    ]


def test_a_slice_that_was_dropped_has_changed_for_its_readers(tmp_path: Path) -> None:
    daily = "-- pipeline\n-- partitioned daily\n-- materialize ducklake://main/{}\n"
    scripts = {
        "models/raw": daily.format("raw") + "SELECT 1 AS n, '{partition}' AS ds",
        "models/day": daily.format("day") + "SELECT * FROM raw WHERE ds = '{partition}'",
        "models/t": SCRIPT.format(KIND.format("ds")),
    }
    project = Project.load(write_project(tmp_path / "p", scripts))
    above = Recorded(dropped={"2026-01-02": 9, "2026-W01": 9})
    assert above.changes(project.model("raw")) == [Changed(Part("2026-01-02"), 9)]
    inputs = inputs_of(project.edges["day"], {"raw": above})
    read: dict[Slice, Read] = {Part(f"2026-01-0{n}"): {"main": 7 + n // 3} for n in (1, 2, 3)}
    found = {slice_.text: str(why) for slice_, why in inputs.behind(read).items()}
    assert found == {"2026-01-02": "raw 2026-01-02: snapshot 9, read 7"}
    assert not inputs.behind({Part("2026-01-02"): {"main": 9}})
    by_time = Recorded(dropped={WEEK.text: 9, "2026-01-02": 9})
    assert by_time.changes(project.model("t")) == [Changed(WEEK, 9)]


def test_a_view_is_as_old_as_its_own_query(tmp_path: Path) -> None:
    """What others did to tables of the lake is not about it."""
    scripts = {
        "models/raw": "-- pipeline\n-- materialize ducklake://main/raw\nSELECT 1 AS n",
        "models/v": "MODEL (name main.v, kind VIEW);\nSELECT n FROM raw",
    }
    view = Project.load(write_project(tmp_path / "p", scripts)).model("v")
    made = publication(target="main.v", slice="", strategy="view", slicing="")
    outside = Outside(parts={("main.t", WEEK.text): ((WEEK, 12),)})
    recorded = Recorded((made.record(7, 7),), outside)
    assert inputs_of((), {"v": recorded}, views=[view]).views == (("v", "main", 7),)
