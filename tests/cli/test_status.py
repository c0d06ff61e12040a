"""``penstock status`` and ``show`` without a run. No Spark."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from penstock.cli.main import main
from penstock.cli.status import print_models
from penstock.engine.answers.summaries import ModelSummary
from penstock.engine.results import ModelStatus, SliceStatus
from penstock.states import SliceState
from tests.engine.toy import write_project


def printed(project: Path, command: str, *arguments: str) -> str:
    result = CliRunner().invoke(main, [command, "--project", str(project), *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_an_embedded_model_is_said_to_make_nothing(tmp_path: Path) -> None:
    script = "MODEL (name s.e, kind EMBEDDED);\nSELECT 1 AS a"
    project = write_project(tmp_path / "p", {"models/e": script})
    makes = "nothing: its query stands in the models that read main.s.e"
    assert printed(project, "status", "e") == f"e makes {makes} (embedded)\n"
    shown = printed(project, "show", "e")
    assert f"makes     {makes}\n" in shown
    assert "state     embedded\n" in shown


def test_show_says_what_a_slice_is(tmp_path: Path) -> None:
    by_time = "MODEL (name t, kind INCREMENTAL_BY_TIME_RANGE (time_column d), cron '@hourly');\n"
    scripts = {
        "models/t": f"{by_time}SELECT TIMESTAMP '2026-01-01' AS d",
        "models/m": "-- pipeline\n-- partitioned monthly\n-- materialize ducklake://main/m\n"
        "SELECT '{partition}' AS m",
    }
    project = write_project(tmp_path / "p", scripts)
    assert "slice     an interval of time, by hour\n" in printed(project, "show", "t")
    assert "slice     monthly\n" in printed(project, "show", "m")


def test_a_table_was_last_made_when_rows_of_it_were(capsys: pytest.CaptureFixture[str]) -> None:
    made, tried = (datetime(2026, 1, day, 12, tzinfo=UTC) for day in (1, 2))
    slices = (
        SliceStatus("2026-01-01", SliceState.MATERIALIZED, 1, 7, made),
        SliceStatus("2026-01-02", SliceState.SKIPPED, time=tried),
    )
    status = ModelStatus("m", "main.m", "replace", "daily", slices)
    print_models((ModelSummary.of_status(status),))
    assert "2026-01-01 " in (told := capsys.readouterr().out)
    assert "2026-01-02 " not in told


def test_a_model_that_never_ran(tmp_path: Path) -> None:
    project = write_project(tmp_path / "p", {"models/t": "MODEL (name t, kind FULL);\nSELECT 1"})
    assert "t makes main.t (replace)" in printed(project, "status", "t")
    assert "No such result of a data test is recorded." in printed(project, "show", "t", "--tests")


HEAD = "-- pipeline\n{}-- materialize ducklake://main/{}\n-- tag {}\nSELECT * FROM {}"
SHOP = {
    "models/raw/orders": HEAD.format("-- partitioned daily\n", "raw_orders", "hourly", "src"),
    "models/marts/days": HEAD.format("", "days", "nightly", "raw_orders"),
    "models/marts/months": HEAD.format("", "months", "nightly", "days"),
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_project(tmp_path_factory.mktemp("shop") / "p", SHOP)


@pytest.mark.parametrize(
    ("arguments", "models"),
    [
        ((), ["marts/days", "marts/months", "raw/orders"]),
        (("marts/",), ["marts/days", "marts/months"]),
        (("tag:nightly", "--exclude", "months"), ["marts/days"]),
        (("--to", "marts/days"), ["marts/days", "raw/orders"]),
        (("raw/orders+1", "-s", "months"), ["marts/days", "marts/months", "raw/orders"]),
        (("state:missing,raw/",), ["raw/orders"]),
        (("state:failed",), []),
        (("raw/", "--from", "2026-01-01", "--to", "2026-01-02"), ["raw/orders"]),
        (("--from", "2026-01-01", "--to", "2026-01-02", "--to", "marts/days"), ["raw/orders"]),
        (("state:missing", "--from", "2026-01-01", "--to", "2026-01-02"), ["raw/orders"]),
    ],
)
def test_the_selected_models(shop: Path, arguments: tuple[str, ...], models: list[str]) -> None:
    found = json.loads(printed(shop, "status", *arguments, "--json"))
    assert sorted(each["model"] for each in found["models"]) == models


def test_how_selected_models_are_printed(shop: Path) -> None:
    assert printed(shop, "status", "raw/orders.sql").startswith("raw/orders makes main.raw_orders")
    assert printed(shop, "status", "raw/").startswith("model ")
    none = "No model is selected: none has such a slice.\n"
    assert printed(shop, "status", "state:failed") == none
    ranged = printed(shop, "status", "raw/", "--from", "2026-01-01", "--to", "2026-01-02")
    assert "2 missing" in ranged
