"""Which slices are behind their files. No Spark."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from penstock.engine.planning.files_behind import Disk, changed_files
from penstock.engine.planning.files_read import files_of
from penstock.engine.planning.slice_states import Recorded
from penstock.engine.planning.slices import bindings_at
from penstock.engine.state.records import ReadRecord, SliceRecord
from penstock.engine.state.store import State, insert_read
from penstock.lakes.catalog.catalog import Catalog
from penstock.model.definition.model import Model
from penstock.model.time.interval import Interval, interval_of
from penstock.model.time.slice import WHOLE, Part
from penstock.project.project import Project
from tests import duck
from tests.engine.planning.test_files_read import model_of
from tests.engine.state.builders import at, publication, run_record
from tests.engine.toy import write_project

DAY = "read_csv('data/' || '{partition}' || '.csv')"
DAYS = ("2026-01-01", "2026-01-02", "2026-01-03")
NOW = datetime(2026, 1, 9, tzinfo=UTC)
HEAD = "-- pipeline\n-- materialize ducklake://main/t"


def write(root: Path, *names: str, text: str = "n\n1\n") -> None:
    for name in names:
        (root / "p" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "p" / name).write_text(text)


def made(root: Path, model: Model, *texts: str) -> tuple[list[SliceRecord], dict[str, ReadRecord]]:
    """Slices as a run records them."""
    records, reads = [], {}
    for text in texts:
        slice_ = interval_of(text) or (Part(text) if text else WHOLE)
        files = tuple(files_of(model, bindings_at(model, slice_, {}, at(1)), root / "p"))
        reads[f"of {text}"] = ReadRecord(f"of {text}", "main.t", "r1", {"main": 3}, files)
        what = publication(
            target="main.t",
            slice=text,
            strategy=model.strategy.name,
            slicing=model.slicing,
            definition_hash=model.definition_hash,
        )
        records.append(replace(what.record(3, 3), read_id=f"of {text}"))
    return records, reads


def behind(
    root: Path, model: Model, known: tuple[list[SliceRecord], dict[str, ReadRecord]]
) -> dict[str, str]:
    return dict(changed_files(model, *known, Disk(root / "p")))


def test_the_slices_of_a_file_that_changed(tmp_path: Path) -> None:
    model = model_of(tmp_path, f"SELECT * FROM {DAY}")
    write(tmp_path, *(f"data/{day}.csv" for day in DAYS))
    known = made(tmp_path, model, *DAYS)
    assert behind(tmp_path, model, known) == {}
    write(tmp_path, "data/2026-01-02.csv", text="n\n1\n2\n")
    assert behind(tmp_path, model, known) == {"2026-01-02": "file data/2026-01-02.csv changed"}


def test_a_file_that_is_gone_and_one_with_the_same_content_say_nothing(tmp_path: Path) -> None:
    model = model_of(tmp_path, f"SELECT * FROM {DAY}")
    write(tmp_path, *(f"data/{day}.csv" for day in DAYS))
    known = made(tmp_path, model, *DAYS)
    (tmp_path / "p/data/2026-01-01.csv").unlink()
    os.utime(tmp_path / "p/data/2026-01-02.csv", ns=(1, 1))
    assert behind(tmp_path, model, known) == {}
    write(tmp_path, "data/2026-01-02.csv", text="n\n7\n")
    assert list(behind(tmp_path, model, known)) == ["2026-01-02"]


@pytest.mark.parametrize(
    ("path", "before", "new"),
    [
        ("'data/' || '{partition}' || '*.csv'", "data/2026-01-02.csv", "data/2026-01-02-b.csv"),
        ("'data/' || '{partition}' || '/*.csv'", "data/2026-01-02/a.csv", "data/2026-01-02/b.csv"),
        ("'data/*/' || '{partition}' || '.csv'", "data/a/2026-01-02.csv", "data/b/2026-01-02.csv"),
        ("'data/' || '{partition}'", "data/2026-01-02/a.csv", "data/2026-01-02/b/c.csv"),
        ("['data/' || '{partition}' || '*.csv', 'all.csv']", "data/2026-01-02.csv",
         "data/2026-01-02-b.csv"),
    ],
)  # fmt: skip
def test_a_file_that_is_new(tmp_path: Path, path: str, before: str, new: str) -> None:
    model = model_of(tmp_path, f"SELECT * FROM read_csv({path})")
    write(tmp_path, before, before.replace("01-02", "01-03"), "all.csv")
    known = made(tmp_path, model, "2026-01-02", "2026-01-03")
    write(tmp_path, new.replace(Path(new).name, f"_{Path(new).name}"))
    assert behind(tmp_path, model, known) == {}
    write(tmp_path, new)
    assert behind(tmp_path, model, known) == {"2026-01-02": f"file {new} is new"}


def test_a_whole_table_and_what_an_argument_says(tmp_path: Path) -> None:
    scripts = {"models/t": f"{HEAD}\n-- $of (text) = a\nSELECT * FROM read_csv($of || '/*.csv')"}
    model = Project.load(write_project(tmp_path / "p", scripts)).model("t")
    write(tmp_path, "a/1.csv", "b/1.csv")
    records, reads = made(tmp_path, model, "")
    write(tmp_path, "b/2.csv")
    assert behind(tmp_path, model, (records, reads)) == {}
    other = {"of ": replace(reads["of "], arguments={"of": "b"})}
    assert behind(tmp_path, model, (records, other)) == {"": "file b/1.csv is new"}
    write(tmp_path, "a/2.csv")
    assert behind(tmp_path, model, (records, reads)) == {"": "file a/2.csv is new"}


def test_new_files_of_an_append_and_changed_ones_which_it_leaves(tmp_path: Path) -> None:
    head = f"{HEAD} append\n-- incremental files\n"
    scripts = {"models/t": f"{head}SELECT * FROM read_csv('in/*.csv')"}
    model = Project.load(write_project(tmp_path / "p", scripts)).model("t")
    write(tmp_path, "in/1.csv")
    known = made(tmp_path, model, "")
    write(tmp_path, "in/1.csv", text="n\n1\n2\n")
    assert behind(tmp_path, model, known) == {}
    write(tmp_path, "in/2.csv")
    assert behind(tmp_path, model, known) == {"": "file in/2.csv is new"}


def test_each_file_is_looked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(tmp_path, f"SELECT * FROM {DAY} JOIN read_csv('dim.csv') USING (n)")
    write(tmp_path, *(f"data/{day}.csv" for day in DAYS), "dim.csv")
    known, looked, stat = made(tmp_path, model, *DAYS), list[str](), os.stat

    def counted(path: str) -> os.stat_result:
        looked.append(path)
        return stat(path)

    monkeypatch.setattr(os, "stat", counted)
    assert behind(tmp_path, model, known) == {}
    assert sorted(Path(each).name for each in looked) == [
        *(f"{day}.csv" for day in DAYS),
        "dim.csv",
    ]


def test_what_is_not_recorded_or_has_a_uri_is_not_behind(tmp_path: Path) -> None:
    model = model_of(tmp_path, "SELECT * FROM read_parquet('s3://b/x/*')")
    records, reads = made(tmp_path, model, *DAYS)
    assert behind(tmp_path, model, (records, reads)) == {}
    assert behind(tmp_path, model, (records, {})) == {}


def test_of_intervals_those_whose_file_changed(tmp_path: Path) -> None:
    kind = "INCREMENTAL_BY_TIME_RANGE (time_column ds, batch_size 1), start '2026-01-01'"
    query = "SELECT * FROM read_csv('data/' || @start_ds || '.csv')"
    scripts = {"models/t": f"MODEL (name main.t, kind {kind});\n{query}"}
    model = Project.load(write_project(tmp_path / "p", scripts)).model("t")
    write(tmp_path, *(f"data/{day}.csv" for day in DAYS))
    days = [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2, 3)]
    texts = [Interval(*pair).text for pair in pairwise(days)]
    records, reads = made(tmp_path, model, *texts)
    write(tmp_path, "data/2026-01-02.csv", text="n\n1\n2\n")
    files = behind(tmp_path, model, (records, reads))
    known = Recorded(records, reads={name: read.lakes for name, read in reads.items()})
    known = replace(known, inputs=replace(known.inputs, files=files))
    events = known.painted(model).events
    assert [(str(e.interval), e.state, e.behind) for e in events] == [
        ("2026-01-01", "materialized", None),
        ("2026-01-02", "behind", "file data/2026-01-02.csv changed"),
    ]


def test_status_and_plans_name_the_file(tmp_path: Path) -> None:
    """Three days are made; the file of one is corrected."""
    duck.required()
    head = f"{HEAD}\n-- partitioned daily start=2026-01-01\n"
    scripts = {"models/t": f"{head}SELECT n FROM {DAY}"}
    project = Project.load(write_project(tmp_path / "p", scripts))
    model, uri = project.model("t"), f"ducklake:sqlite:{tmp_path}/p/lake/meta.sqlite"
    write(tmp_path, *(f"data/{day}.csv" for day in DAYS))
    (tmp_path / "p" / "lake").mkdir()
    with duck.attach(uri, tmp_path / "p" / "lake" / "data") as duckdb, Catalog.open(uri) as catalog:
        duckdb.execute("CREATE TABLE t (n INTEGER, _wm_partition VARCHAR)")
        state, (records, reads) = State(catalog), made(tmp_path, model, *DAYS)
        state.begin_run(run_record())
        for record in records:
            what = publication(
                target="main.t", slice=record.slice, strategy=record.strategy,
                slicing=record.slicing, definition_hash=record.definition_hash,
                read_id=record.read_id, at=NOW,
            )  # fmt: skip
            state.confirm(what, catalog.latest().id)
        for read in reads.values():
            state.write(partial(insert_read, read=read))
    write(tmp_path, "data/2026-01-02.csv", text="n\n1\n2\n")
    with Project.load(tmp_path / "p") as project:
        slices = project.status("t")[0].slices
        assert [(each.slice, each.state, each.reason) for each in slices] == [
            ("2026-01-01", "materialized", None),
            ("2026-01-02", "behind", "file data/2026-01-02.csv changed"),
            ("2026-01-03", "materialized", None),
        ]
        (step,) = project.plan(fire_time=NOW, from_=DAYS[0], to=DAYS[2]).steps
        assert [str(each) for each in step.ranges] == [
            "2026-01-02 behind (file data/2026-01-02.csv changed)"
        ]
        (step,) = project.plan(fire_time=NOW, from_=DAYS[0], to=DAYS[2], behind=False).steps
        assert step.slices == ()
        notice = "t: this run leaves 1 slice behind its input: penstock run t --behind"
        assert project.plan(fire_time=NOW, partition=DAYS[0]).notices == (notice,)
        assert project.plan(fire_time=NOW).notices == (notice,)
        assert project.plan(fire_time=NOW, partition=DAYS[1]).notices == ()
