"""Hints about annotations. Each row: a line, and the line that its hint leads to."""

from __future__ import annotations

import pytest

from penstock.model.headers.annotation import parse
from tests.hints.follow import followed

TABLE = "materialize ducklake://main/t"
TESTS = (
    ("not_null eur, severity=warn", "not_null eur severity=warn"),
    ("not_null eur,, id", "not_null eur, id"),
    ("unique id -- comment", "unique id"),
    ("unique id # comment", "unique id"),
    ("unique", "unique column"),
    ("uniq id severity=warn", "unique id severity=warn"),
    ("unique id severity=wran", "unique id severity=warn"),
    ("not_null", "not_null column"),
    ("accepted_values s", "accepted_values s = a,b"),
    ("accepted_values s a,b", "accepted_values s = a,b"),
    ("accepted_values s in (a, b)", "accepted_values s = a, b"),
    ("accepted_values s =", "accepted_values s = a,b"),
    ("accepted_range n", "accepted_range n min=0 max=100"),
    ("accepted_range n minimum=0", "accepted_range n min=0"),
    ("accepted_range n min=1 inclusive=maybe", "accepted_range n min=1 inclusive=true"),
    ("row_count", "row_count min=1"),
    ("expression", "expression column > 0"),
    ("relationships a", "relationships a -> ducklake://main/table.column"),
    ("relationships a -> b.c", "relationships a -> ducklake://main/b.c"),
    ("relationships a main.b.c", "relationships a -> ducklake://main/main.b.c"),
    ("relationships a -> ducklake://main/b", "relationships a -> ducklake://main/b.a"),
    ("relationship a -> ducklake://main/b.c", "relationships a -> ducklake://main/b.c"),
    ("tests", "path/of/test"),
)
TABLES = (
    ("", TABLE.replace("/t", "/table")),
    ("t", TABLE),
    ("main/t", TABLE),
    ("s.t", "materialize ducklake://main/s.t"),
    ("ducklake://", TABLE.replace("/t", "/table")),
    ("manual t", "materialize manual ducklake://main/t"),
)
OPTIONS = (
    ("APPEND", "append"),
    ("append=true", "append"),
    ("key", "key=column"),
    ("key=", "key=column"),
    ("keys=id", "key=id"),
    ("merge", "key=column"),
    ("strategy=merge", "key=column"),
    ("strategy=scd2", "history"),
    ("strategy=append", "append"),
    ("deletes=open", "deletes=close"),
    ("on_schema_change=wran", "on_schema_change=warn"),
    ("lookback=x", "lookback=1"),
    ("batch_size=", "batch_size=1"),
    ("time=", "time=column"),
    ("sequence=", "sequence=column"),
    ("sequenz=s", "sequence=s"),
    ("tracks=a,b", "track=a,b"),
)
LINES = (
    ("partitioned", "partitioned daily"),
    ("partitioned day", "partitioned daily"),
    ('partitioned dayly tz="Europe/Paris"', 'partitioned daily tz="Europe/Paris"'),
    ("partitioned quarterly", "partitioned daily"),
    ("partitioned dynamic", 'partitioned dynamic key="$.path"'),
    ("pipeline yes", "pipeline"),
    ("macros yes", "macros"),
    ("use x", "use path/of/library"),
    ("incremental change", "incremental changes"),
    ("tag two words", "tag two"),
    ("tag", "tag heavy"),
    ("dialect duck", "dialect duckdb"),
    ("dialect Spark", "dialect spark"),
    ("retry", "retry 3"),
    ("retry 0", "retry 1"),
    ("retry 3 soon", "retry 3 5s"),
    ("timeout soon", "timeout 10m"),
    ("freshness", "freshness 1h"),
    ("freshness soon", "freshness 1h"),
    ("debounce", "debounce 1h"),
    ("on", "on ducklake://main/table"),
    ("on schedul", "on schedule"),
    ("on kafka orders", "on kafka topic=orders"),
    ("on schedule cron=0 6 * * *", 'on schedule cron="0 6 * * *"'),
    ("on schedule corn=@daily", "on schedule cron=@daily"),
    ("on webhook debounce=soon", "on webhook debounce=60s"),
    ("catchup newest", "catchup latest"),
    ("catchup latest max=3", "catchup latest"),
    ("trigger some", "trigger all"),
    ("column a", "column out <- ducklake://main/table.column"),
    ("column a <- b", "column out <- ducklake://main/table.column"),
    ("data_tests unique a", "data_test unique a"),
    ("data-test unique a", "data_test unique a"),
    ("partition daily", "partitioned daily"),
    ("Partitioned daily", "partitioned daily"),
    ("dialects duckdb", "dialect duckdb"),
    ("retrys 3", "retry 3"),
)
CASES = (
    *((f"data_test {wrong}", f"data_test {right}") for wrong, right in TESTS),
    *((f"materialize {wrong}".strip(), right) for wrong, right in TABLES),
    *((f"{TABLE} {wrong}", f"{TABLE} {right}") for wrong, right in OPTIONS),
    *LINES,
)


@pytest.mark.parametrize(("wrong", "right"), CASES)
def test_the_line_as_hinted_has_no_fault(wrong: str, right: str) -> None:
    head = "-- pipeline\n" + ("" if "materialize" in wrong else f"-- {TABLE}\n")
    text = f"{head}-- {wrong}\nSELECT 1 AS a"
    finding, *_ = parse(text)[1]
    hinted = followed(text, finding)
    assert hinted.split("\n")[-2] == f"-- {right}"
    assert parse(hinted)[1] == ()
