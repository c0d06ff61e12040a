"""How old slices are of models that say how fresh they must be."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from penstock.project.project import Project
from penstock.scheduler.values import WHOLE, Age
from penstock.server.ages import LOOK, AgeReader, read_ages
from tests.engine.planning.test_reasons import LATER, Shop, days
from tests.engine.toy import write_project

FRESH = {
    "models/apart": "-- pipeline\n-- freshness 1h\n-- partitioned daily start=2026-01-01\n"
    "-- materialize ducklake://main/apart\nSELECT day FROM days WHERE day = '{partition}'",
    "models/fu": "-- pipeline\n-- freshness 1h\n-- materialize ducklake://main/fu\n"
    "SELECT * FROM whole",
    "models/log": "-- pipeline\n-- materialize ducklake://main/log append\nSELECT 1 AS a",
}


def test_only_models_with_freshness_have_ages(tmp_path: Path) -> None:
    shop = Shop(tmp_path, FRESH)
    shop.made("days", *days(1))
    shop.made("apart", *days(1, 2))
    shop.failed("apart", "2026-01-03")
    read = read_ages(shop.project.context, LATER)
    ages = {(age.model, age.key): age for age in read}
    assert sorted(ages) == [
        ("apart", "2026-01-01"),
        ("apart", "2026-01-02"),
        ("apart", "2026-01-03"),
        ("fu", WHOLE),
    ]
    assert ages["apart", "2026-01-01"] == Age("apart", "2026-01-01", LATER)
    assert ages["apart", "2026-01-03"].built_at is None
    assert ages["fu", WHOLE].built_at is None


def test_without_such_models_nothing_is_read(tmp_path: Path) -> None:
    project = Project.load(write_project(tmp_path / "p", {}))
    assert read_ages(project.context, LATER) == ()


def test_ages_are_read_seldom() -> None:
    seconds, reads = [0.0], list[int]()
    age = Age("orders", WHOLE, datetime(2026, 1, 1, tzinfo=UTC))

    def read() -> tuple[Age, ...]:
        reads.append(1)
        return (age,)

    reader = AgeReader(read, lambda: seconds[0])
    assert reader() == reader() == (age,)
    seconds[0] = LOOK + 1
    assert reader() == (age,)
    assert len(reads) == 2
    reader.reset()
    assert reader() == (age,)
    assert len(reads) == 3
