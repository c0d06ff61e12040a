"""When models are due, and what `check` reports of their triggers.

Tests ``model/project/defaults.py`` (the cron of a line ``on schedule``), too.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import Diagnostic, Location
from penstock.model.definition.graph import makers_by_table
from penstock.model.definition.triggers import (
    check_triggers,
    cron_of,
    joins_by_partition,
    maker_of,
    why_never_due,
)
from penstock.model.project.loader import Loaded, load_models
from penstock.model.time.cron import Cron
from penstock.model.values.asset import Asset
from penstock.model.values.schedule import UNSERVED, Trigger
from penstock.settings.project_settings import ModelDefaults
from tests.model.project.test_loader import LAKES, project, scan

STEP = "-- materialize ducklake://main/{}\n{}\nSELECT {} AS day"


def step(table: str, *lines: str) -> str:
    """A step with header lines; it reads its partition where it has one."""
    is_partitioned = any(line.startswith("partitioned") for line in lines)
    header = "\n".join(f"-- {line}" for line in lines)
    return STEP.format(table, header, "'{partition}'" if is_partitioned else "1")


def found_in(loaded: Loaded) -> list[tuple[str, str, int | None, int | None]]:
    return [
        (finding.severity, finding.rule, finding.location.line, finding.location.column)
        for finding in loaded.diagnostics
    ]


def finding_of(root: Path, *lines: str) -> Diagnostic:
    (finding,) = scan(root, models__t=step("t", *lines)).diagnostics
    return finding


@pytest.mark.parametrize(
    "lines",
    [
        ('on schedule cron="0 6 * * *" tz="Europe/Berlin"', "catchup all max=5 window=30d"),
        ("on schedule cron=@hourly", "catchup none"),
        ("on webhook", "on webhook name=b debounce=5s", "on data_upload name=c"),
        ("on kafka topic=a", "on postgres channel=b", "debounce 5s"),
        ("on ducklake://main/u debounce=1m", "on s3://bucket/x", "trigger any", "freshness 1h"),
        ("on s3://bucket/{partition}/x", "trigger all", "debounce 5m"),
        ('partitioned dynamic key="$.tenant"', "on webhook"),
        ("freshness 1h",),
    ],
)
def test_what_is_served_is_not_reported(tmp_path: Path, lines: tuple[str, ...]) -> None:
    assert scan(tmp_path, models__t=step("t", *lines)).diagnostics == ()


@pytest.mark.parametrize("kind", sorted(UNSERVED))
def test_an_event_that_nothing_serves_is_named(tmp_path: Path, kind: str) -> None:
    finding = finding_of(tmp_path, f"on {kind}")
    assert (finding.severity, finding.location.line) == ("warning", 2)
    assert finding.message == f"nothing serves `{kind}`, so it never fires the model"
    assert "on webhook name=NAME" in (finding.hint or "")


@pytest.mark.parametrize("asset", ["datatable://m/t", "res://f/x", "volume://v/x"])
def test_an_asset_that_nothing_watches_is_named(tmp_path: Path, asset: str) -> None:
    finding = finding_of(tmp_path, f"on {asset}")
    assert (finding.severity, finding.rule) == ("warning", "idle")
    assert finding.message == f"nothing watches {asset}, so it never fires the model"


@pytest.mark.parametrize(
    ("line", "column", "said"),
    [
        ('on schedule cron="0 0 31 2 *"', 16, "is never due"),
        ("on schedule cron=daily", 16, "is not a cron expression"),
        ('on schedule tz=UTC cron="0 25 * * *"', 23, "is not a cron expression"),
        ("on schedule cron=@daily tz=Europe/Berln", 28, "`Europe/Berln` is not a time zone"),
        ("on schedule cron=@daily tz=Mars", 28, "`Mars` is not a time zone"),
    ],
)
def test_a_schedule_that_cannot_be_read_is_an_error(
    tmp_path: Path, line: str, column: int, said: str
) -> None:
    finding = finding_of(tmp_path, line)
    assert said in finding.message
    assert finding.hint
    assert (finding.severity, finding.location.line, finding.location.column) == (
        "error",
        2,
        column,
    )


@pytest.mark.parametrize(
    ("lines", "line", "said"),
    [
        (("on schedule",), 2, "the schedule has no cron"),
        (("on kafka",), 2, "`on kafka` names no topic"),
        (("on postgres debounce=5s",), 2, "`on postgres` names no channel"),
        (("trigger all",), 2, "`trigger all` has no effect"),
        (("trigger all", "on webhook"), 2, "`trigger all` has no effect"),
        (("debounce 5m", "on schedule cron=@daily"), 2, "`debounce` has no effect"),
        (("on webhook", "catchup latest"), 3, "`catchup` has no effect: the model has no schedule"),
        (("on webhook debounce=2h", "freshness 1h"), 2, "a debounce of 2h is longer than"),
        (("on s3://x", "debounce 90m", "freshness 1h"), 3, "a debounce of 90m is longer than"),
        (("on ducklake://main/t",), 2, "main.t is the table of the model itself"),
        (
            ('partitioned dynamic key="$.k"', "on schedule cron=@daily"),
            3,
            "a schedule has no payload with `$.k`",
        ),
        (
            ('partitioned dynamic key="$.k"', "on ducklake://main/u"),
            3,
            "ducklake://main/u has no partitions, so a change of it has no `$.k`",
        ),
        (("on ducklake://main/u", "trigger all"), 3, "the model is not partitioned"),
        (("partitioned daily", "on ducklake://main/u", "trigger all"), 4, "no input is"),
    ],
)
def test_what_a_trigger_cannot_do_is_a_warning(
    tmp_path: Path, lines: tuple[str, ...], line: int, said: str
) -> None:
    finding = finding_of(tmp_path, *lines)
    assert said in finding.message
    assert finding.hint
    assert (finding.severity, finding.location.line, finding.location.column) == (
        "warning",
        line,
        4,
    )


def test_a_join_waits_for_the_tables_of_partitioned_models(tmp_path: Path) -> None:
    lines = ("partitioned daily", "on ducklake://main/a", "on ducklake://main/b", "trigger all")
    loaded = scan(
        tmp_path,
        models__a=step("a", "partitioned daily"),
        models__b=step("b"),
        models__c=step("c", *lines),
    )
    assert loaded.diagnostics == ()
    a, b, c = loaded.models
    makers = makers_by_table(loaded.models)
    triggers = c.schedule.triggers
    assert [maker_of(each, makers) for each in triggers] == [a, b]
    assert joins_by_partition(triggers[0], c, a)
    assert not joins_by_partition(triggers[1], c, b)
    assert not joins_by_partition(triggers[0], b, a), "the reader has no partitions"
    file = Trigger("asset", Asset("s3object", "x/{partition}"))
    assert joins_by_partition(file, b, maker_of(file, makers))


def test_two_models_may_share_a_message_with_a_warning(tmp_path: Path) -> None:
    loaded = scan(
        tmp_path,
        models__a=step("a", "on webhook name=new"),
        models__b=step("b", "on data_upload name=new"),
        models__c=step("c", "on kafka topic=new"),
        models__new=step("d", "on webhook"),
    )
    assert found_in(loaded) == [("warning", "shared-message", 2, 4)] * 2
    assert [finding.message for finding in loaded.diagnostics] == [
        "messages `new` fire a as well"
    ] * 2
    assert [Path(finding.location.path).name for finding in loaded.diagnostics] == [
        "b.sql",
        "new.sql",
    ]


@pytest.mark.parametrize(
    "scripts",
    [
        {"a": step("a", "on ducklake://main/b"), "b": step("b", "on ducklake://main/a")},
        {"a": step("a", "on ducklake://main/b"), "b": step("b").replace("1 AS", "day FROM a --")},
        {
            "a": step("a", "on ducklake://main/c"),
            "b": step("b", "on ducklake://main/a"),
            "c": step("c").replace("1 AS", "day FROM b --"),
        },
    ],
)
def test_a_cascade_without_an_end_is_an_error(tmp_path: Path, scripts: dict[str, str]) -> None:
    loaded = scan(tmp_path, **{f"models__{name}": text for name, text in scripts.items()})
    (finding,) = loaded.diagnostics
    assert (finding.severity, finding.rule) == ("error", "cycle")
    assert finding.message.count(" -> ") == len(scripts)


BLOCK = "MODEL (name {}, kind {}{});\nSELECT 1 AS id"


@pytest.mark.parametrize(
    ("text", "cron"),
    [
        (BLOCK.format("t", "FULL", ""), Cron("@daily")),
        (BLOCK.format("t", "VIEW", ", cron '@hourly'"), Cron("@hourly")),
        (
            BLOCK.format(
                "t",
                "FULL",
                ", cron '0 6 * * *', cron_tz 'Europe/Berlin', end '2030-01-01', start '2026-01-01'",
            ),
            Cron("0 6 * * *", "Europe/Berlin"),
        ),
        (BLOCK.format("t", "EMBEDDED", ""), None),
        (step("t"), None),
        (step("t", "on webhook"), None),
        (step("t", "on schedule"), None),
        (step("t", "on schedule cron=@hourly"), Cron("@hourly")),
        (
            step("t", "on webhook", 'on schedule cron="0 6 * * *" tz=Europe/Berlin'),
            Cron("0 6 * * *", "Europe/Berlin"),
        ),
    ],
)
def test_when_a_model_is_due(tmp_path: Path, text: str, cron: Cron | None) -> None:
    (model,) = scan(tmp_path, models__t=text).models
    assert cron_of(model) == cron


@pytest.mark.parametrize("name", ["interval_unit day", "allow_partials true"])
def test_intervals_that_no_query_reads_have_no_effect(tmp_path: Path, name: str) -> None:
    (finding,) = scan(tmp_path, models__t=BLOCK.format("t", "FULL", f", {name}")).diagnostics
    assert "has no effect: the query does not read by intervals" in finding.message


def test_an_embedded_model_is_never_due(tmp_path: Path) -> None:
    text = BLOCK.format("t", "EMBEDDED", ", cron '@hourly', catchup latest")
    loaded = scan(tmp_path, models__t=text)
    assert [finding.rule for finding in loaded.diagnostics] == ["trigger", "model-idle"]
    (model,) = loaded.models
    assert all(why_never_due(model) in finding.message for finding in loaded.diagnostics)
    assert [finding.rule for finding in check_triggers(model)] == ["trigger"]


def test_a_schedule_takes_its_cron_from_the_defaults_of_its_folder(tmp_path: Path) -> None:
    defaults = (
        ModelDefaults("", {"cron": "@daily", "cron_tz": "Europe/Berlin"}),
        ModelDefaults("m", {"cron": "@hourly"}),
    )
    places = tuple(
        ModelDefaults(
            each.folder,
            each.values,
            dict.fromkeys(each.values, Location(tmp_path / "penstock.toml")),
        )
        for each in defaults
    )
    root = project(
        tmp_path,
        models__a=step("a", "on schedule"),
        models__b=step("b", 'on schedule cron="0 6 * * *"'),
        models__c=step("c", "on schedule tz=UTC"),
        models__d=step("d"),
        models__m__e=step("e", "on schedule"),
    )
    loaded = load_models(root, lakes=LAKES, defaults=places)
    assert loaded.diagnostics == ()
    assert {model.name: cron_of(model) for model in loaded.models} == {
        "a": Cron("@daily", "Europe/Berlin"),
        "b": Cron("0 6 * * *", "Europe/Berlin"),
        "c": Cron("@daily", "UTC"),
        "d": None,
        "m/e": Cron("@hourly", "Europe/Berlin"),
    }


LINES = (
    "on schedule cron=@daily",
    "on webhook name=x debounce=5s",
    "on kafka topic=x",
    "catchup all max=3",
    "debounce 5s",
    "freshness 1h",
)


def test_triggers_change_no_definition(tmp_path: Path) -> None:
    (plain,) = scan(tmp_path, models__t=step("t")).models
    (triggered,) = scan(tmp_path, models__t=step("t", *LINES)).models
    assert triggered.schedule != plain.schedule
    assert triggered.definition_hash == plain.definition_hash
    (block,) = scan(tmp_path, models__t=BLOCK.format("t", "FULL", "")).models
    (caught_up,) = scan(tmp_path, models__t=BLOCK.format("t", "FULL", ", catchup none")).models
    assert caught_up.definition_hash == block.definition_hash
