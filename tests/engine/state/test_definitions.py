"""Definitions of models are recorded by runs, and read to show what has changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from penstock.engine.state.definitions import last_other
from penstock.engine.state.reading import VERSION
from penstock.model.definition.model import Model
from penstock.project.project import Project
from tests.engine.planning.test_reasons import Shop
from tests.engine.state.builders import run_record


def recorded(shop: Shop, model: Model) -> Mapping[str, str] | None:
    target, own = model.target.qualified, model.definition_hash
    return shop.state.read(lambda each: last_other(each, target, own), None)


def test_the_definition_of_slices_is_known_after_it_has_changed(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    model = shop.project.model("days")
    shop.state.begin_run(run_record("r2"), [model, model])
    shop.state.begin_run(run_record("r3"), [model])
    shop.made("days", "2026-01-01")
    assert recorded(shop, model) is None
    assert recorded(shop, replace(model, definition_hash="new")) == model.definition_parts


def test_a_definition_that_was_not_recorded_is_not_known(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.made("days", "2026-01-01", definition_hash="old")
    assert recorded(shop, shop.project.model("days")) is None


def test_tables_of_an_earlier_version_have_none(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    with shop.catalog.reading() as connection:
        connection.execution_options(**{VERSION: 8})
        assert last_other(connection, "main.days", "new") is None


def test_a_plan_shows_what_differs(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.state.begin_run(run_record("r2"), shop.project.models)
    shop.made("days", "2026-01-01")
    path = shop.project.settings.root / "models" / "days.sql"
    path.write_text(path.read_text().replace("SELECT", "SELECT 1 AS one,"))
    with Project.load(shop.project.settings.root) as project:
        (change,) = project.plan("days").changes
    assert str(change) == "changed: days (query); 1 slice"
    assert "+SELECT 1 AS one, '{partition}' AS day" in change.diff
