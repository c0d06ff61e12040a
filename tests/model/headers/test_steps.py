"""Header lines by their keywords; ``needs`` in MODEL too.

Tests ``model/values/schedule.py`` (triggers as values).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ModelError
from penstock.model.headers.annotation import lines_of, parse
from penstock.model.headers.draft import Annotations
from penstock.model.time.needs import Rule
from penstock.model.time.partition import KINDS, PartitionSpec
from penstock.model.values.asset import Asset, ColumnInput, ColumnLineage
from penstock.model.values.schedule import (
    EVENTS,
    NAME_OPTIONS,
    CatchupLine,
    Retry,
    Trigger,
    read_catchup,
)
from penstock.project.project import Project
from tests.engine.toy import write_project


def header(text: str) -> Annotations:
    return parse(text)[0]


def warnings(text: str) -> list[str]:
    findings = parse(text)[1]
    assert all(finding.severity == "warning" for finding in findings)
    return [finding.hint or "" for finding in findings]


@pytest.mark.parametrize("word", ["pipeline", "macros"])
def test_words_that_stand_alone(word: str) -> None:
    assert header(f"-- {word}") != Annotations()
    assert header(f"-- {word} of orders") == Annotations()
    assert warnings(f"-- {word} of orders") == [f"write `-- {word}`"]


def test_libraries() -> None:
    text = "-- use f/a\n-- use g/b\n-- use f/a"
    assert header(text).use_libs == ("f/a", "g/b")
    assert warnings(text) == ["write `-- use f/a`"]
    assert warnings("-- use x") == ["write `-- use path/of/library`"]
    assert warnings("-- use a/b c") == ["write `-- use path/of/library`"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("retry 1", Retry(1)),
        ("retry 3 5s", Retry(3, "5s")),
        ("retry 3 60", Retry(3, "60")),
        ("retry +3 +60s", Retry(3, "+60s")),
        ("retry 4294967295", Retry(4294967295)),
    ],
)
def test_retry(line: str, expected: Retry) -> None:
    assert header(f"-- {line}").retry == expected
    assert warnings(f"-- {line}") == []


@pytest.mark.parametrize(
    ("line", "form"),
    [
        ("retry", "retry 3"),
        ("retry 0", "retry 1"),
        ("retry -1", "retry 3"),
        ("retry 3.5", "retry 3"),
        ("retry many", "retry 3"),
        ("retry 4294967296", "retry 4294967295"),
    ],
)
def test_retry_without_a_count_is_dropped(line: str, form: str) -> None:
    assert header(f"-- {line}").retry is None
    assert warnings(f"-- {line}") == [f"write `-- {form}`"]


def test_a_delay_that_is_no_duration_is_kept_and_reported() -> None:
    assert header("-- retry 3 delay=5s").retry == Retry(3, "delay=5s")
    assert warnings("-- retry 3 delay=5s") == ["write `-- retry 3 5s`"]


def test_the_first_retry_holds() -> None:
    assert header("-- retry 0\n-- retry 2\n-- retry 3").retry == Retry(2)


@pytest.mark.parametrize("keyword", ["freshness", "debounce"])
@pytest.mark.parametrize("duration", ["60", "1s", "5m", "2h", "7d"])
def test_durations(keyword: str, duration: str) -> None:
    found = header(f"-- {keyword} {duration}")
    assert duration in (found.freshness, found.debounce_default)
    assert warnings(f"-- {keyword} {duration}") == []


@pytest.mark.parametrize("keyword", ["freshness", "debounce"])
def test_a_wrong_duration_is_reported(keyword: str) -> None:
    assert len(warnings(f"-- {keyword} tomorrow")) == 1
    assert len(warnings(f"-- {keyword}")) == 1
    assert len(warnings(f"-- {keyword} 1h\n-- {keyword} 2h")) == 1


@pytest.mark.parametrize(
    ("line", "tag", "form"),
    [
        ("tag heavy", "heavy", None),
        (f"tag {'x' * 50}", "x" * 50, None),
        (f"tag {'x' * 51}", None, f"tag {'x' * 50}"),
        ("tag two words", None, "tag two"),
        ("tag", None, "tag heavy"),
    ],
)
def test_tags(line: str, tag: str | None, form: str | None) -> None:
    assert header(f"-- {line}").tag == tag
    assert warnings(f"-- {line}") == ([] if form is None else [f"write `-- {form}`"])


def test_the_first_tag_holds() -> None:
    assert header("-- tag a\n-- tag b").tag == "a"
    assert warnings("-- tag a\n-- tag b") == ["write `-- tag a`"]


def test_dialects() -> None:
    assert header("").dialect == "spark"
    assert header("-- dialect duckdb").dialect == "duckdb"
    assert header("-- dialect duckdb").to_dict() == {"dialect": "duckdb"}
    assert parse("-- dialect duckdb\n-- dialect duckdb")[1] == ()
    both, (finding,) = parse("-- dialect duckdb\n-- dialect spark")
    assert (both.dialect, finding.severity, finding.rule) == ("duckdb", "error", "dialect-second")


def test_an_unknown_dialect_is_an_error() -> None:
    (finding,) = parse("-- dialect DuckDB")[1]
    assert (finding.severity, finding.hint) == ("error", "write `-- dialect duckdb`")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "dynamic"])
def test_time_kinds(kind: str) -> None:
    assert parse(f"-- partitioned {kind}")[0].partition == PartitionSpec(kind)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('daily tz="Europe/Paris"', PartitionSpec("daily", tz="Europe/Paris")),
        ("daily tz=Europe/Paris", PartitionSpec("daily", tz="Europe/Paris")),
        ('daily format="%Y %m %d"', PartitionSpec("daily", format="%Y %m %d")),
        ("daily tz='Europe/Paris'", PartitionSpec("daily", tz="Europe/Paris")),
        ("daily format='%Y, %m' tz=UTC", PartitionSpec("daily", tz="UTC", format="%Y, %m")),
        ('hourly start="2026-01-01"', PartitionSpec("hourly", start="2026-01-01")),
        ('dynamic key="$.a.b"', PartitionSpec("dynamic", key="$.a.b")),
        ('daily  tz="UTC"   start=2026-01-01', PartitionSpec("daily", "UTC", None, "2026-01-01")),
    ],
)
def test_options(line: str, expected: PartitionSpec) -> None:
    annotations, findings = parse(f"-- partitioned {line}")
    assert annotations.partition == expected
    assert findings == ()


@pytest.mark.parametrize(
    ("line", "column", "severity", "rule"),
    [
        ('daily timezone="UTC"', 22, "error", "partitioned-option"),
        ("daily UTC", 22, "error", "partitioned-option"),
        ('daily tz="UTC" tz="UTC"', 31, "error", "partitioned-twice"),
        ('daily tz=""', 22, "error", "partitioned-empty"),
        ('daily key="$.a"', 22, "warning", "partitioned-option"),
        ('dynamic key="$.a" tz="UTC"', 34, "warning", "partitioned-option"),
        ('daily tz="UTC', 22, "warning", "partitioned-quote"),
        ("daily tz='UTC", 22, "warning", "partitioned-quote"),
    ],
)
def test_reports(line: str, column: int, severity: str, rule: str) -> None:
    _, (finding,) = parse(f"-- partitioned {line}")
    assert (finding.location.column, finding.severity, finding.rule) == (column, severity, rule)


@pytest.mark.parametrize(
    ("line", "form"),
    [
        ("Daily", "-- partitioned daily"),
        ("dialy", "-- partitioned daily"),
        ("month", "-- partitioned monthly"),
        ("Weekly tz=UTC", "-- partitioned weekly tz=UTC"),
        ("dynamic", '-- partitioned dynamic key="$.path"'),
        ("by day", "-- partitioned daily"),
        ("", "-- partitioned daily"),
    ],
)
def test_a_lost_partition_is_an_error_with_the_nearest_form(line: str, form: str) -> None:
    annotations, findings = parse(f"-- partitioned {line}")
    assert annotations.partition is None
    assert (findings[-1].severity, findings[-1].hint) == ("error", f"write `{form}`")


def test_a_second_partition_is_an_error() -> None:
    text = "-- partitioned hours\n-- partitioned daily\n-- partitioned weekly"
    annotations, findings = parse(text)
    assert annotations.partition == PartitionSpec("daily")
    assert [(f.severity, f.location.line) for f in findings] == [("warning", 1), ("error", 3)]
    assert (
        'for slices of two dimensions, as a day and a customer, write `partitioned dynamic key="'
        in (findings[-1].hint or "")
    )


@pytest.mark.parametrize("event", EVENTS)
def test_an_event_may_stand_alone(event: str) -> None:
    assert parse(f"-- on {event}")[0].triggers == (Trigger(event),)
    annotations, (finding,) = parse(f"-- on {event} topic")
    assert annotations.triggers == ()
    name = NAME_OPTIONS.get(event)
    assert finding.hint == f"write `-- on {event}{f' {name}=topic' if name else ''}`"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            'schedule cron="0 6 * * *" tz="Europe/Berlin"',
            Trigger("schedule", cron="0 6 * * *", tz="Europe/Berlin"),
        ),
        ("schedule tz=UTC cron=@daily", Trigger("schedule", cron="@daily", tz="UTC")),
        ("webhook name=orders/new", Trigger("webhook", name="orders/new")),
        ("data_upload name='x' debounce=5s", Trigger("data_upload", name="x", debounce="5s")),
        ("postgres channel=orders", Trigger("postgres", name="orders")),
        ("kafka debounce=60 topic=a.b", Trigger("kafka", name="a.b", debounce="60")),
    ],
)
def test_options_of_events(line: str, expected: Trigger) -> None:
    annotations, findings = parse(f"-- on {line}")
    assert (annotations.triggers, findings) == ((expected,), ())
    assert parse("\n".join(f"-- {text}" for text in lines_of(annotations)))[0] == annotations


@pytest.mark.parametrize(
    ("line", "trigger", "column", "hint"),
    [
        ("schedule crn=@daily", Trigger("schedule"), 16, "on schedule cron=@daily"),
        ("webhook topic=x", Trigger("webhook"), 15, "on webhook"),
        ("kafka topic=a topic=b", Trigger("kafka", name="a"), 21, "on kafka topic=a"),
        ("webhook name=", Trigger("webhook"), 15, "on webhook"),
        (
            'schedule cron="0 6 * * *',
            Trigger("schedule", cron="0 6 * * *"),
            16,
            'on schedule cron="0 6 * * *"',
        ),
        ("mqtt debounce=5s", Trigger("mqtt"), 12, "on mqtt"),
    ],
)
def test_an_option_that_cannot_be_read_is_dropped(
    line: str, trigger: Trigger, column: int, hint: str
) -> None:
    annotations, (finding,) = parse(f"-- on {line}")
    assert annotations.triggers == (trigger,)
    assert (finding.severity, finding.location.column) == ("warning", column)
    assert (finding.hint or "").startswith(f"write `-- {hint}`")


def test_a_cron_without_quotes_is_named_with_them() -> None:
    annotations, (finding,) = parse("-- on schedule cron=0 6 * * * tz=Europe/Berlin")
    assert annotations.triggers == ()
    assert finding.hint == 'write `-- on schedule cron="0 6 * * *" tz=Europe/Berlin`'


@pytest.mark.parametrize("line", ['postgres channel="a b"', "webhook name=a?b", "kafka topic=ä"])
def test_a_name_that_no_message_can_have_is_an_error(line: str) -> None:
    (finding,) = parse(f"-- on {line}")[1]
    assert (finding.severity, finding.rule) == ("error", "on-name")


def test_a_model_may_have_several_messages_and_one_schedule() -> None:
    lines = ("webhook", "webhook name=b", "schedule cron=@daily", "schedule cron=@hourly")
    annotations, (finding,) = parse("\n".join(f"-- on {line}" for line in lines))
    assert [(each.kind, each.name, each.cron) for each in annotations.triggers] == [
        ("webhook", None, None),
        ("webhook", "b", None),
        ("schedule", None, "@daily"),
    ]
    assert finding.location.line == 4


@pytest.mark.parametrize(
    ("trigger", "message"),
    [
        (Trigger("webhook"), "shop/orders"),
        (Trigger("data_upload", name="new"), "new"),
        (Trigger("kafka", name="new"), "kafka:new"),
        (Trigger("postgres", name="new"), "postgres:new"),
        (Trigger("kafka"), None),
        (Trigger("schedule"), None),
        (Trigger("mqtt"), None),
        (Trigger("asset", Asset("s3object", "a")), None),
    ],
)
def test_the_name_of_messages(trigger: Trigger, message: str | None) -> None:
    assert trigger.message("shop/orders") == message


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("none", CatchupLine("none")),
        ("latest window=36h", CatchupLine("latest", window="36h")),
        ("all", CatchupLine("all")),
        ("all max=10 window=30d", CatchupLine("all", 10, "30d")),
    ],
)
def test_catchup_in_both_forms(tmp_path: Path, line: str, expected: CatchupLine) -> None:
    assert header(f"-- catchup {line}").catchup == expected
    assert str(expected) == line
    text = f"MODEL (name main.a, kind FULL, catchup '{line}');\nSELECT 1 AS id"
    project = Project.load(write_project(tmp_path / "p", {"models/a": text}))
    assert project.model("a").schedule.catchup == expected


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("catchup", "catchup latest"),
        ("catchup al", "catchup all"),
        ("catchup latest max=3", "catchup latest"),
        ("catchup none window=1d", "catchup none"),
        ("catchup all max=0", "catchup all"),
        ("catchup all window=soon", "catchup all"),
        ("catchup all max=1 max=2", "catchup all"),
    ],
)
def test_a_dropped_catchup_is_a_warning(text: str, hint: str) -> None:
    assert header(f"-- {text}").catchup is None
    assert warnings(f"-- {text}") == [f"write `-- {hint}`"]
    assert warnings(f"-- catchup none\n-- {text}") == ["write `-- catchup none`"]


def test_a_catchup_of_a_block_is_an_error_with_its_place(tmp_path: Path) -> None:
    text = "MODEL (name main.a, kind FULL,\n  catchup 'some');\nSELECT 1 AS id"
    with pytest.raises(ModelError, match=r"a\.sql:2:11: error: a mode is one of none, latest, all"):
        Project.load(write_project(tmp_path / "p", {"models/a": text}))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ducklake://main/t", Trigger("asset", Asset("ducklake", "main/t"))),
        ("ducklake://main/s.t", Trigger("asset", Asset("ducklake", "main/s.t"))),
        ("res://f/x", Trigger("asset", Asset("resource", "f/x"))),
        ("datatable://m/t debounce=5m", Trigger("asset", Asset("datatable", "m/t"), "5m")),
        ("s3:///a debounce=60", Trigger("asset", Asset("s3object", "/a"), "60")),
        ("s3://a b debounce=1h", Trigger("asset", Asset("s3object", "a b"), "1h")),
    ],
)
def test_assets(line: str, expected: Trigger) -> None:
    annotations, findings = parse(f"-- on {line}")
    assert annotations.triggers == (expected,)
    assert findings == ()


@pytest.mark.parametrize("path", ["main/t", "main/t_{partition}", "a/{partition}/b"])
def test_partition_bearing(path: str) -> None:
    (trigger,) = parse(f"-- on s3://{path}")[0].triggers
    assert trigger.bears_partition == ("{partition}" in path)
    assert not Trigger("schedule").bears_partition


@pytest.mark.parametrize(
    ("line", "form"),
    [
        ("ducklake", "on ducklake://main/table"),
        ("ducklake://", "on ducklake://main/table"),
        ("shedule", "on schedule"),
        ("web hook", "on webhook"),
        ("", "on ducklake://main/table"),
        ("the other hand", "on ducklake://main/table"),
    ],
)
def test_a_dropped_trigger_is_a_warning(line: str, form: str) -> None:
    annotations, (finding,) = parse(f"-- on {line}")
    assert annotations.triggers == ()
    assert finding.severity == "warning"
    assert finding.hint is not None
    assert finding.hint.startswith("write `-- on ")
    assert line == "web hook" or finding.hint == f"write `-- {form}`"


@pytest.mark.parametrize("duration", ["soon", "1w", "1.5h", "-1"])
@pytest.mark.parametrize("asset", ["s3://a", "schedule"])
def test_only_the_option_that_cannot_be_read_is_dropped(asset: str, duration: str) -> None:
    annotations, (finding,) = parse(f"-- on {asset} debounce={duration}")
    assert annotations.triggers[0].debounce is None
    assert (finding.severity, finding.rule) == ("warning", "debounce")


def test_an_event_has_no_debounce() -> None:
    annotations, (finding,) = parse("-- on schedule debounce=5m")
    assert annotations.triggers == (Trigger("schedule"),)
    assert finding.hint == "write `-- on schedule`"


def test_repeated_triggers_are_one() -> None:
    text = "-- on ducklake://m/t\n-- on ducklake://m/t debounce=1m\n-- on schedule\n-- on schedule"
    annotations, findings = parse(text)
    assert [trigger.kind for trigger in annotations.triggers] == ["asset", "schedule"]
    assert [finding.location.line for finding in findings] == [2, 4]


@pytest.mark.parametrize(
    ("text", "mode", "reports"),
    [
        ("-- trigger all", "all", 0),
        ("-- trigger any", "any", 0),
        ("-- trigger all\n-- trigger any", "any", 1),
        ("-- trigger all\n-- trigger all", "all", 0),
        ("-- trigger both", None, 1),
        ("-- trigger", None, 1),
    ],
)
def test_join_modes(text: str, mode: str | None, reports: int) -> None:
    annotations, findings = parse(text)
    assert annotations.join_mode == mode
    assert [finding.severity for finding in findings] == ["warning"] * reports


@pytest.mark.parametrize(
    ("line", "asset", "text"),
    [
        ("needs raw.orders lag=7d", "raw.orders", "lag=7d"),
        ("needs ducklake://main/raw.orders all", "ducklake://main/raw.orders", "all"),
        ("needs orders same", "orders", "same"),
    ],
)
def test_a_line_names_a_table_and_what_is_needed(line: str, asset: str, text: str) -> None:
    annotations, findings = parse(f"-- {line}")
    (found,) = annotations.needs
    assert (found.asset, found.text, findings) == (asset, text, ())


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (("needs orders",), "it names a table"),
        (("needs orders 7d",), "what is needed is lag=7d, same, all or none"),
        (("needs orders all", "needs orders none"), "already"),
    ],
)
def test_other_lines_are_errors(lines: tuple[str, ...], message: str) -> None:
    _, (finding,) = parse("\n".join(f"-- {line}" for line in lines))
    assert finding.severity == "error"
    assert message in finding.message


def test_both_forms_say_the_same(tmp_path: Path) -> None:
    header = (
        "-- pipeline\n-- partitioned daily\n-- materialize ducklake://main/a\n-- needs raw lag=2d"
    )
    model = (
        "MODEL (name main.b, kind INCREMENTAL_BY_TIME_RANGE (time_column day), "
        "start '2026-01-01', needs (raw = 'lag=2d'));\nSELECT day FROM raw "
        "WHERE day BETWEEN @start_ds AND @end_ds"
    )
    scripts = {"models/a": f"{header}\nSELECT * FROM raw", "models/b": model}
    project = Project.load(write_project(tmp_path / "p", scripts))
    a, b = (project.model(name).input_needs for name in ("a", "b"))
    assert a == b
    ((table, need),) = a
    assert (str(table), need.rule, need.said) == ("main.raw", Rule.MOMENTS, "lag=2d")


def test_a_lake_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    header = "-- pipeline\n-- materialize ducklake://main/a\n-- needs nope.raw.x all\nSELECT 1 AS x"
    with pytest.raises(ModelError, match="nope"):
        Project.load(write_project(tmp_path / "p", {"models/a": header}))


ORDERS = Asset("ducklake", "warehouse/orders")


@pytest.mark.parametrize(
    "line",
    [
        "total <- ducklake://warehouse/orders.amount, ducklake://warehouse/orders.tax",
        "total<-ducklake://warehouse/orders.amount,ducklake://warehouse/orders.tax",
    ],
)
def test_lineage(line: str) -> None:
    expected = ColumnLineage("total", (ColumnInput(ORDERS, "amount"), ColumnInput(ORDERS, "tax")))
    annotations, findings = parse(f"-- column {line}")
    assert annotations.column_lineage == (expected,)
    assert findings == ()


@pytest.mark.parametrize("line", ["a", "a <-", "a <- b", "a -> ducklake://m/t.c", "", "<- x.y"])
def test_what_says_no_lineage_is_dropped(line: str) -> None:
    annotations, (finding,) = parse(f"-- column {line}")
    assert annotations.column_lineage == ()
    assert finding.severity == "warning"


def test_one_bad_input_does_not_lose_the_others() -> None:
    annotations, (finding,) = parse("-- column a <- x, ducklake://m/t.c")
    assert annotations.column_lineage[0].inputs == (ColumnInput(Asset("ducklake", "m/t"), "c"),)
    assert "`x` is dropped" in finding.message


def test_a_type_is_declared() -> None:
    text = "-- column n BIGINT\n-- column 'a b' STRUCT(x INT, y VARCHAR[])\n-- column N DATE"
    annotations, (finding,) = parse(text)
    assert [(c.name, c.type, c.location.line) for c in annotations.column_types] == [
        ("n", "BIGINT", 1),
        ("a b", "STRUCT(x INT, y VARCHAR[])", 2),
    ]
    assert (finding.severity, finding.rule, finding.location.line) == ("error", "column-twice", 3)


@pytest.mark.parametrize("line", ["n TIME", "order is kept", "n NOTYPE", "n"])
def test_what_is_no_type_is_dropped(line: str) -> None:
    annotations, (finding,) = parse(f"-- column {line}")
    assert annotations.column_types == ()
    assert (finding.severity, finding.rule) == ("warning", "dropped-column")


NAMES = st.from_regex(r"[A-Za-z0-9_./-]{1,20}", fullmatch=True)
DURATIONS = st.none() | st.from_regex(r"[1-9][0-9]{0,3}[smhd]?", fullmatch=True)
TEXTS = st.none() | st.text("*0123456789,/ -'\"", min_size=1, max_size=12).map(str.strip).filter(
    bool
)
TRIGGERS = st.one_of(
    st.builds(Trigger, st.just("schedule"), cron=TEXTS, tz=TEXTS),
    st.builds(
        Trigger, st.sampled_from(sorted(NAME_OPTIONS)), st.none(), DURATIONS, st.none() | NAMES
    ),
    st.builds(Trigger, st.just("asset"), st.builds(Asset, st.just("s3object"), NAMES), DURATIONS),
)


@given(TRIGGERS)
def test_a_trigger_is_read_as_it_is_written(trigger: Trigger) -> None:
    (line,) = lines_of(Annotations(triggers=(trigger,)))
    annotations, findings = parse(f"-- {line}")
    assert (annotations.triggers, findings) == ((trigger,), ())


@given(st.text("nonelatstmxwid =0123456789", max_size=30))
def test_a_text_is_a_catchup_or_an_error(text: str) -> None:
    try:
        line = read_catchup(text)
    except ValueError:
        return
    assert read_catchup(str(line)) == line
