"""Materializations of dbt's as kinds of MODEL, with their options; what is lost is noted."""

from __future__ import annotations

import re
from typing import Any

import pytest

from penstock.dbt_import.kinds import Kind, kind_of, output_columns
from tests.dbt_import.manifests import node


def kind(materialized: str = "incremental", raw: str = "", **config: Any) -> Kind | str:
    return kind_of(
        node("model", "m", raw_code=raw, config={"materialized": materialized, **config})
    )


def snapshot(**config: Any) -> Kind | str:
    return kind_of(node("snapshot", "s", config={"unique_key": "id", **config}))


def flat(found: Kind | str) -> str:
    assert isinstance(found, Kind), found
    return " ".join(found.text.split())


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"materialized": "table"}, "FULL"),
        ({"materialized": "view"}, "VIEW"),
        ({"unique_key": "id"}, "INCREMENTAL_BY_UNIQUE_KEY ( unique_key (id) )"),
        (
            {"unique_key": ["a", "b c"], "on_schema_change": "sync_all_columns"},
            "INCREMENTAL_BY_UNIQUE_KEY ( unique_key (a, `b c`),"
            " on_additive_change allow, on_destructive_change allow )",
        ),
        (
            {"incremental_strategy": "insert_overwrite", "partition_by": "day"},
            "INCREMENTAL_BY_PARTITION",
        ),
        (
            {
                "incremental_strategy": "microbatch",
                "event_time": "at",
                "batch_size": "day",
                "begin": "2026-01-01T00:00:00",
                "lookback": 2,
            },
            "INCREMENTAL_BY_TIME_RANGE ( time_column at, lookback 2 )",
        ),
    ],
)
def test_a_materialization_is_a_kind(given: dict[str, Any], expected: str) -> None:
    assert flat(kind(**given)) == expected


def test_partitions_are_kept() -> None:
    found = kind(unique_key="id", partition_by=["day", "bucket(4, id)"])
    assert isinstance(found, Kind)
    assert found.properties == {"partitioned_by": "(day, bucket(4, id))"}


@pytest.mark.parametrize("materialized", ["table", "incremental"])
def test_partitions_of_bigquery_are_not_taken(materialized: str) -> None:
    found = kind(materialized, unique_key="id", partition_by={"field": "day", "data_type": "date"})
    assert isinstance(found, Kind)
    assert found.properties == {}


def test_a_microbatch_says_how_long_its_batches_are_and_where_they_begin() -> None:
    found = kind(
        incremental_strategy="microbatch", event_time="at", batch_size="hour", begin="2026-01-01"
    )
    assert isinstance(found, Kind)
    assert found.properties == {"cron": "'@hourly'", "start": "'2026-01-01'"}


def test_a_filter_of_new_rows_and_a_missing_key_are_noted() -> None:
    found = kind(raw="{% if is_incremental() %}")
    assert isinstance(found, Kind)
    assert found.text == "FULL"
    assert "no unique_key" in found.notes[0]
    assert "reads all its inputs" in found.notes[1]


def test_snapshots_are_histories() -> None:
    by_time = snapshot(strategy="timestamp", updated_at="changed", hard_deletes="invalidate")
    assert flat(by_time) == (
        "SCD_TYPE_2_BY_TIME ( unique_key (id), valid_from_name dbt_valid_from,"
        " valid_to_name dbt_valid_to, invalidate_hard_deletes true, updated_at_name changed,"
        " updated_at_as_valid_from true )"
    )
    by_column = snapshot(
        strategy="check", check_cols=["a"], snapshot_table_column_names={"dbt_valid_to": "until"}
    )
    assert "valid_to_name until, invalidate_hard_deletes false, columns (a)" in flat(by_column)
    assert "columns *" in flat(snapshot(strategy="check", check_cols="all"))
    open_ended = snapshot(strategy="check", check_cols="all", dbt_valid_to_current="'9999-12-31'")
    assert isinstance(open_ended, Kind)
    assert "of a current version is NULL, not '9999-12-31'" in open_ended.notes[1]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"materialized": "materialized_view"}, "'materialized_view' has no kind"),
        ({"incremental_strategy": "microbatch"}, "needs event_time"),
        ({"materialized": "ephemeral"}, "stands in those of its readers"),
    ],
)
def test_what_has_no_kind_says_why(given: dict[str, Any], reason: str) -> None:
    found = kind(**given)
    assert isinstance(found, str)
    assert reason in found


def test_new_records_of_deleted_rows_have_no_counterpart() -> None:
    found = snapshot(strategy="check", check_cols="all", hard_deletes="new_record")
    assert isinstance(found, str)
    assert "use invalidate" in found


LISTED = "with a as (select 1 as id, 2 as v, 3 as created) select * from a"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"merge_update_columns": "v"}, "(WHEN MATCHED THEN UPDATE SET target.v = source.v)"),
        (
            {"merge_exclude_columns": ["created"]},
            "(WHEN MATCHED THEN UPDATE SET target.v = source.v)",
        ),
        (
            {"matched_condition": "t.v < s.v", "source_alias": "s", "target_alias": "t"},
            "(WHEN MATCHED AND target.v < source.v THEN UPDATE SET target.v = source.v, "
            "target.created = source.created)",
        ),
    ],
)
def test_options_of_a_merge_are_kept(given: dict[str, Any], expected: str) -> None:
    config = {"materialized": "incremental", "unique_key": "id", **given}
    found = kind_of(node("model", "m", compiled_code=LISTED, config=config))
    assert flat(found) == (
        f"INCREMENTAL_BY_UNIQUE_KEY ( unique_key (id), when_matched {expected} )"
    )


def test_incremental_predicates_are_a_merge_filter() -> None:
    found = kind(unique_key="id", incremental_predicates=["DBT_INTERNAL_DEST.day > '2026-01-01'"])
    assert "merge_filter (target.day > '2026-01-01')" in flat(found)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"merge_exclude_columns": "created"}, "its query has a \\*"),
        ({"incremental_predicates": ["day > 1"]}, "day in its condition"),
        ({"merge_clauses": {"when_matched": []}, "not_matched_condition": "x"}, "merge_clauses"),
    ],
)
def test_a_merge_without_counterpart_is_left(given: dict[str, Any], reason: str) -> None:
    config = {"materialized": "incremental", "unique_key": "id", **given}
    found = kind_of(node("model", "m", compiled_code="select * from x", config=config))
    assert isinstance(found, str)
    assert re.search(reason, found)


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("select a, b + 1 as c from x", ["a", "c"]),
        ("with y as (select a from x) select y.*, 1 as b from y", ["a", "b"]),
        ("select * from x", None),
        ("select from where", None),
    ],
)
def test_columns_of_a_query(query: str, columns: list[str] | None) -> None:
    assert output_columns(query, "spark") == columns
