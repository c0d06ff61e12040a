"""The JSON of a plan is built without the command line."""

from __future__ import annotations

from pathlib import Path

from penstock.engine.answers.plan_document import jobs_of, needs_of, plan_document
from tests.engine.planning.test_reasons import Shop, days


def test_a_step_has_its_slices_and_their_ranges(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.made("days", *days(2, 4, 5))
    plan = shop.project.plan("days", from_="2026-01-01", to="2026-01-05")
    document = plan_document(plan, None)
    assert sorted(document) == ["changes", "notices", "steps"]
    (step,) = document["steps"]
    assert step["state"].startswith("planned: 2 missing, 3 materialized")
    assert [(range_["slices"], range_["reason"]) for range_ in step["ranges"]] == [
        ("2026-01-01", "missing"),
        ("2026-01-03", "missing"),
    ]
    assert (step["first"], step["last"], step["slices"]) == ("2026-01-01", "2026-01-03", 2)
    assert jobs_of(plan.steps[0]).startswith("one by one, as the partition stands outside")
    assert step["apart"] in jobs_of(plan.steps[0])


def test_needs_and_estimates_are_there_if_asked_for(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    plan = shop.project.plan("days", from_="2026-01-01", to="2026-01-02")
    document = plan_document(plan, {})
    assert document["needs"] == list(needs_of(plan))
    assert document["steps"][0]["estimate"] is None
    assert document["steps"][0]["jobs"] == jobs_of(plan.steps[0])
