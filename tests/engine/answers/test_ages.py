"""How old slices are, and which are past the freshness of their model. No Spark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from penstock.cli.main import main
from penstock.engine.answers.ages import find_ages, freshness_of
from penstock.engine.answers.status import statuses
from penstock.engine.planning.slice_states import KnownSlices, Recorded
from penstock.engine.results import ModelStatus
from penstock.engine.state.records import InputRead, ReadRecord, SliceRecord
from penstock.engine.state.store import State, insert_read
from penstock.model.definition.model import Model
from penstock.model.values.schedule import Schedule
from penstock.project.project import Project
from penstock.scheduler.values import WHOLE, Age
from tests.engine.state.builders import publication, run_record, step_record
from tests.engine.toy import write_project

HEAD = "-- pipeline\n-- freshness 1h\n-- materialize ducklake://main/{}\n"
DAILY = "-- partitioned daily start=2026-01-01\n"
SCRIPTS = {
    "models/total": HEAD.format("total") + "SELECT count(*) AS n FROM events",
    "models/days": HEAD.format("days")
    + DAILY
    + "SELECT n FROM events WHERE _wm_partition = '{partition}'",
    "models/other": "-- pipeline\n-- materialize ducklake://main/other\nSELECT n FROM events",
}
HOUR = timedelta(hours=1)


class Shop:
    """A project whose state a test writes; ``built`` is when its slices were made."""

    def __init__(self, root: Path) -> None:
        self.root = write_project(root / "p", SCRIPTS)
        self.project = Project.load(self.root)
        self.lake = self.project.lake("main")
        for name in ("events", "days", "total", "other"):
            self.lake.sql(f"CREATE TABLE {name} (n INT, _wm_partition VARCHAR)")
        self.state = State(self.lake.catalog)
        self.state.begin_run(run_record())
        self.state.begin_run(run_record("r2"))
        self.built = datetime.now(UTC)

    def made(self, name: str, *slices: str, at: datetime | None = None) -> None:
        model, snapshot = self.project.model(name), self.lake.catalog.latest().id
        target, read_id = model.target.qualified, f"{name}{snapshot}"
        inputs = (InputRead("table", "main.events"),)
        read = ReadRecord(read_id, target, "r1", {"main": snapshot}, inputs)
        self.state.write(lambda connection: insert_read(connection, read))
        for slice_ in slices:
            what = publication(
                step=name,
                target=target,
                slice=slice_,
                slicing=model.slicing,
                definition_hash=model.definition_hash,
                columns=(),
                checks=(),
                read_id=read_id,
                at=at or self.built,
            )
            self.state.confirm(what, snapshot)

    def failed(self, name: str, slice_: str) -> None:
        target = self.project.model(name).target.qualified
        later = datetime.now(UTC)
        self.state.begin_step(
            step_record("r2", step=name, target=target, slice=slice_, started_at=later)
        )
        self.state.end_step(("r2", name, slice_), "failed", "no")

    def arrives(self, day: str) -> None:
        self.lake.sql(f"INSERT INTO events VALUES (1, '{day}')")

    def ages(self, name: str, after: timedelta = 2 * HOUR) -> dict[str, Age]:
        context, model = self.project.context, self.project.model(name)
        knowledge = context.slices()
        recorded = knowledge.recorded([model])[name]
        found = find_ages(knowledge, model, recorded, self.built + after)
        return {age.key: age for age in found}

    def overdue(self, name: str, after: timedelta = 2 * HOUR) -> list[str | None]:
        return [each.slice for each in self.status(name, after).slices if each.is_overdue]

    def status(self, name: str, after: timedelta = 2 * HOUR) -> ModelStatus:
        context = self.project.context
        return statuses(
            context.slices(), context.models, [context.model(name)], self.built + after
        )[0]

    def command(self, *words: str) -> Result:
        return CliRunner().invoke(main, ["status", *words, "--project", str(self.root)])


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    shop = Shop(tmp_path)
    with shop.project:
        yield shop


def test_a_table_is_overdue_once_its_input_has_changed_and_its_time_is_over(shop: Shop) -> None:
    shop.made("total", "")
    assert shop.overdue("total") == []
    shop.arrives("2026-01-01")
    assert shop.overdue("total", HOUR) == []
    assert shop.overdue("total", HOUR + timedelta.resolution) == [None]
    status = shop.status("total")
    assert status.freshness == "1h"
    assert status.lateness == "past its freshness (1h)"


def test_what_never_was_built_is_overdue_without_a_change(shop: Shop) -> None:
    assert shop.ages("total")[WHOLE].built_at is None
    assert shop.overdue("total", timedelta()) == [None]
    assert shop.status("other").freshness is None
    assert freshness_of(shop.project.model("other")) is None


def test_slices_of_the_past_are_overdue_only_if_their_own_input_changed(shop: Shop) -> None:
    shop.made("days", "2026-01-01", "2026-01-02")
    shop.arrives("2026-01-02")
    assert shop.overdue("days", timedelta(days=300)) == ["2026-01-02"]
    assert shop.status("days").lateness == "1 past its freshness (1h)"


def test_a_slice_that_fails_keeps_the_age_of_its_rows(shop: Shop) -> None:
    shop.made("days", "2026-01-01", "2026-01-02")
    shop.arrives("2026-01-02")
    shop.failed("days", "2026-01-01")
    shop.failed("days", "2026-01-02")
    ages = shop.ages("days")
    assert ages["2026-01-01"] == Age("days", "2026-01-01", shop.built)
    assert ages["2026-01-02"].built_at == shop.built
    assert ages["2026-01-02"].inputs_changed_at is not None
    assert shop.overdue("days", timedelta()) == []
    assert shop.overdue("days") == ["2026-01-02"]


def test_a_slice_that_only_failed_is_due_at_its_end(shop: Shop) -> None:
    shop.failed("days", "2026-01-01")
    end = datetime(2026, 1, 2, tzinfo=UTC)
    assert shop.ages("days")["2026-01-01"].due_at == end
    assert shop.overdue("days", end + HOUR - shop.built) == []
    assert shop.overdue("days", end + 2 * HOUR - shop.built) == ["2026-01-01"]


def test_a_slice_whose_time_was_not_over_is_overdue_if_its_own_input_changed(shop: Shop) -> None:
    today = f"{shop.built:%Y-%m-%d}"
    shop.made("days", today)
    assert shop.status("days").slices[0].state == "unfinished"
    shop.arrives("2026-01-01")
    assert shop.overdue("days") == []
    shop.arrives(today)
    assert shop.overdue("days") == [today]


def _by_time(root: Path) -> tuple[KnownSlices, Model]:
    script = "MODEL (name t, kind INCREMENTAL_BY_TIME_RANGE (time_column d), start '2026-01-01');\n"
    project = Project.load(write_project(root / "t", {"models/t": f"{script}SELECT d FROM src"}))
    model = replace(project.model("t"), schedule=Schedule(freshness="1h"))
    return KnownSlices(project.settings, lambda _: None), model


def test_of_a_model_by_time_the_newest_build_counts(tmp_path: Path) -> None:
    knowledge, model = _by_time(tmp_path)
    moments = [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2, 3)]
    records = [
        SliceRecord(
            model.target.qualified,
            f"{begin.isoformat()}/{end.isoformat()}",
            *("r1", "t", model.strategy.name, 7, 1, None, model.definition_hash, end),
        )
        for begin, end in pairwise(moments)
    ]
    recorded = Recorded(records)

    def ages(moment: datetime) -> tuple[Age, ...]:
        return find_ages(knowledge, model, recorded, moment)

    assert ages(moments[2]) == (Age("t", WHOLE, moments[2]),)
    assert find_ages(knowledge, model, Recorded(), moments[0]) == ()
    assert find_ages(knowledge, model, Recorded(), moments[2])[0].built_at is None


def test_status_says_what_is_late_and_monitors_hear_of_it(shop: Shop) -> None:
    old = shop.built - 3 * HOUR
    shop.made("days", "2026-01-01", "2026-01-02", "2026-01-03", at=old)
    shop.made("total", "", at=old)
    shop.made("other", "", at=old)
    assert shop.command("--fail-on", "late").exit_code == 0
    shop.arrives("2026-01-02")
    shop.arrives("2026-01-03")
    shown = shop.command()
    assert "2 behind; 2 past their freshness (1h)" in shown.stdout
    assert "behind; past its freshness (1h)" in shown.stdout
    assert "behind, past its freshness" in shop.command("days").stdout
    failed = shop.command("--fail-on", "late")
    assert failed.exit_code == 1
    assert failed.stderr == "3 slices: 3 past freshness\n"
    both = shop.command("--fail-on", "late,behind")
    assert both.stderr == "4 slices: 4 behind, 3 past freshness\n"
    alone = shop.command("days", "--fail-on", "late").stdout
    assert "2026-01-02" in alone
    assert "2026-01-01" not in alone


def test_notebooks_show_what_is_late(shop: Shop) -> None:
    shop.made("total", "", at=shop.built - 3 * HOUR)
    shop.arrives("2026-01-01")
    statuses_ = shop.project.status("total")
    assert "<td>behind, past its freshness (1h)</td>" in statuses_._repr_html_()
    assert "past its freshness (1h)" in repr(statuses_[0])
    assert "past its freshness" in repr(statuses_[0].slices[0])
    assert "<td>behind, past its freshness</td>" in statuses_[0]._repr_html_()
