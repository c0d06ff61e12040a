"""What triggers a model: projects as subscriptions."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from penstock.errors import ModelError
from penstock.model.time.cron import Cron
from penstock.model.time.partition import PartitionSpec
from penstock.scheduler.subscription import Source, Subscription, subscriptions_of
from penstock.scheduler.values import Catchup
from penstock.settings.config import load_settings
from penstock.settings.serve_settings import ServeSettings
from tests.model.definition.test_triggers import BLOCK, step
from tests.model.project.test_loader import scan
from tests.model.project.test_python_models import WRITER

DAY = datetime(2026, 1, 31, tzinfo=UTC)


def subscribe(root: Path, **scripts: str) -> dict[str, Subscription]:
    loaded = scan(root, **{f"models__{name}": text for name, text in scripts.items()})
    assert loaded.errors == ()
    return subscriptions_of(loaded.models)


def assets(reader: Subscription) -> list[tuple[str, bool, timedelta | None]]:
    return [(each.name, each.is_partitioned, each.debounce) for each in reader.sources]


def serve_settings(root: Path, text: str = "") -> ServeSettings:
    lake = '[lakes.main]\ncatalog = "sqlite:meta.sqlite"\n'
    (root / "penstock.toml").write_text(f"{lake}[serve]\n{text}")
    return load_settings(root, environ={}).serve


def test_a_subscription_says_nothing_of_catching_up() -> None:
    source = Source("main.main.orders", is_partitioned=True)
    assert Subscription("daily", sources=(source,)).catchup.mode is None


def test_a_model_without_a_trigger_has_a_subscription_that_nothing_fires(tmp_path: Path) -> None:
    found = subscribe(
        tmp_path, a=step("s.a", "tag heavy"), b="-- materialize ducklake://main/b\nFROM s.a"
    )
    assert found == {
        "a": Subscription("a", "main.s.a", frozenset({"heavy"})),
        "b": Subscription("b", "main.main.b", reads=("a",)),
    }


def test_the_documents_example_of_a_join(tmp_path: Path) -> None:
    found = subscribe(
        tmp_path,
        raw=step("raw_orders", "partitioned daily", "on schedule cron=@daily"),
        users=step("users", "partitioned daily"),
        names=step("names"),
        daily=step(
            *("daily", "partitioned daily", "trigger all", "debounce 5m"),
            *("on ducklake://main/raw_orders debounce=60", "on ducklake://main/users"),
            *("on ducklake://main/names", "on s3:///x/{partition}/a.json", "on S3://b/c"),
            *("on s3://b/c", "on ducklake://analytics/s.t"),
        ),
    )
    assert found["raw"].cron == Cron("@daily")
    daily = found["daily"]
    assert (daily.joins, daily.debounce) == (True, timedelta(minutes=5))
    assert daily.partition == PartitionSpec("daily")
    assert assets(daily) == [
        ("main.main.raw_orders", True, timedelta(minutes=1)),
        ("main.main.users", True, None),
        ("main.main.names", False, None),
        ("s3:///x/{partition}/a.json", True, None),
        ("s3://b/c", False, None),
        ("analytics.s.t", False, None),
    ]


def test_a_reader_without_partitions_joins_files_only(tmp_path: Path) -> None:
    lines = ("trigger all", "on ducklake://main/a", "on s3://b/{partition}")
    found = subscribe(tmp_path, a=step("a", "partitioned daily"), b=step("b", *lines))
    assert [source.is_partitioned for source in found["b"].sources] == [False, True]


def test_a_view_stands_for_the_tables_that_it_reads(tmp_path: Path) -> None:
    view = "MODEL (name {}, kind {});\nSELECT * FROM {}"
    found = subscribe(
        tmp_path,
        a=step("a"),
        b=step("b"),
        embedded=view.format("embedded", "EMBEDDED", "a CROSS JOIN elsewhere"),
        outer=view.format("outer", "VIEW", "embedded CROSS JOIN b"),
        reader=step("reader", "on ducklake://main/outer debounce=5s", "on ducklake://main/B"),
    )
    sources = found["reader"].sources
    assert {source.name for source in sources} == {
        "main.main.a",
        "main.main.elsewhere",
        "main.main.b",
    }
    assert {source.debounce for source in sources} == {timedelta(seconds=5)}
    assert (found["embedded"].target, found["outer"].target) == (None, "main.main.outer")


def test_a_step_that_writes_files_has_no_table(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    writer = WRITER.replace('"exports"', '"s3://lake/raw"')
    (tmp_path / "models/writer.py").write_text(writer)
    found = subscribe(tmp_path, r=step("r", "on s3://lake/raw/{partition}/x.json"))
    assert assets(found["r"]) == [("s3://lake/raw/{partition}/x.json", True, None)]
    assert found["r"].reads == ("writer",)
    assert found["writer"].target is None


def test_messages_and_their_debounces(tmp_path: Path) -> None:
    lines = (
        *("on webhook", "on webhook name=new debounce=5s", "on data_upload name=new"),
        *("on kafka topic=orders debounce=1m", "on postgres channel=orders", "on kafka"),
        *("on mqtt", "on data_upload", "debounce 2s"),
    )
    reader = subscribe(tmp_path, shop__orders=step("t", *lines))["shop/orders"]
    assert reader.messages == ("shop/orders", "new", "kafka:orders", "postgres:orders")
    assert [reader.debounce_of(name) for name in reader.messages] == [
        timedelta(seconds=2),
        timedelta(seconds=5),
        timedelta(minutes=1),
        timedelta(seconds=2),
    ]


@pytest.mark.parametrize(
    ("properties", "starts_at", "ends_at"),
    [
        ("", None, None),
        ("start '2026-01-31'", DAY, None),
        ("start '1 year ago'", None, None),
        ("start '2026-01-31', end '2026-01-31'", DAY, DAY + timedelta(days=1)),
        (
            "start '2026-01-31', end '2026-01-31', cron '0 6 * * *'",
            DAY,
            DAY + timedelta(days=1, hours=6),
        ),
        (
            "start '2026-01-31', end '2026-01-31 12:00:00', cron '@hourly'",
            DAY,
            DAY + timedelta(hours=12),
        ),
        ("start '2026-01-31', end 'today'", DAY, None),
        ("start '2026-01-31', end '9999-12-31'", DAY, None),
    ],
)
def test_a_block_is_due_between_its_start_and_its_end(
    tmp_path: Path, properties: str, starts_at: datetime | None, ends_at: datetime | None
) -> None:
    text = BLOCK.format("t", "FULL", f", {properties}" if properties else "")
    reader = subscribe(tmp_path, t=text)["t"]
    assert reader.cron is not None
    assert (reader.starts_at, reader.ends_at) == (starts_at, ends_at)
    assert reader.is_due_at(DAY + timedelta(hours=1))
    assert reader.is_due_at(DAY - timedelta(hours=1)) == (starts_at is None)
    assert ends_at is None or reader.is_due_at(ends_at)
    assert reader.is_due_at(DAY + timedelta(days=2)) == (ends_at is None)


@pytest.mark.parametrize("kind", ["EMBEDDED", "SEED (path 'x.csv')"])
def test_what_no_run_makes_and_seeds_are_never_due(tmp_path: Path, kind: str) -> None:
    query = "" if kind.startswith("SEED") else "\nSELECT 1 AS id"
    reader = subscribe(tmp_path, t=f"MODEL (name t, kind {kind});{query}")["t"]
    assert (reader.cron, reader.sources, reader.messages) == (None, (), ())


@pytest.mark.parametrize(
    ("line", "settings", "expected"),
    [
        (None, None, Catchup()),
        (None, "", Catchup(None, 100, timedelta(days=30))),
        (None, 'catchup = "none"\nmax_catchup = 3\n', Catchup("none", 3, timedelta(days=30))),
        ("latest", None, Catchup("latest")),
        ("all max=5 window=2h", 'catchup = "none"\n', Catchup("all", 5, timedelta(hours=2))),
        ("all", 'max_catchup = 7\ncatchup_window = "1d"\n', Catchup("all", 7, timedelta(days=1))),
    ],
)
def test_what_happens_to_missed_times(
    tmp_path: Path, line: str | None, settings: str | None, expected: Catchup
) -> None:
    lines = ("on schedule cron=@daily", *(() if line is None else (f"catchup {line}",)))
    models = scan(tmp_path, models__t=step("t", *lines)).models
    serve = None if settings is None else serve_settings(tmp_path, settings)
    assert subscriptions_of(models, serve)["t"].catchup == expected


def test_a_model_of_another_environment_is_fired_by_nothing(tmp_path: Path) -> None:
    lines = ("on webhook", "on schedule cron=@daily", "freshness 1h", "on ducklake://main/u")
    (model,) = scan(tmp_path, models__t=step("t", *lines)).models
    (reader,) = subscriptions_of([replace(model, own=False)]).values()
    assert reader == Subscription("t", "main.main.t")
    (own,) = subscriptions_of([model]).values()
    assert (own.freshness, own.cron) == (timedelta(hours=1), Cron("@daily"))


def test_a_circle_is_an_error(tmp_path: Path) -> None:
    a, b = step("a", "on ducklake://main/b"), step("b", "on ducklake://main/a")
    loaded = scan(tmp_path, models__a=a, models__b=b)
    with pytest.raises(ModelError, match="depend on each other"):
        subscriptions_of(loaded.models)
