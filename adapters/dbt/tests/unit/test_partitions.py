"""The partitions of dbt-bigquery, which packages configure."""

from __future__ import annotations

from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.penstock.partitions import time_partitions

MONTHS = ["year(at)", "month(at)"]


@pytest.mark.parametrize(
    ("option", "partitions"),
    [
        ({}, ["at"]),
        ({"data_type": "date", "granularity": "day"}, ["at"]),
        ({"data_type": "DATE", "granularity": "MONTH"}, MONTHS),
        ({"data_type": "timestamp"}, [*MONTHS, "day(at)"]),
        ({"data_type": "datetime", "granularity": "hour"}, [*MONTHS, "day(at)", "hour(at)"]),
        ({"data_type": "timestamp", "granularity": "year", "copy_partitions": True}, ["year(at)"]),
    ],
)
def test_a_granularity_is_parts_of_the_time(option: dict[str, str], partitions: list[str]) -> None:
    assert time_partitions({"field": "at", **option}, columns_only=False) == partitions


def test_dates_of_a_table_without_expressions_are_days() -> None:
    monthly = {"field": "at", "data_type": "date", "granularity": "month"}
    assert time_partitions(monthly, columns_only=True) == ["at"]


@pytest.mark.parametrize(
    "option",
    [
        {"data_type": "date"},
        {"field": "at", "granularity": "week"},
        {"field": "at", "granularity": "hour"},
        {"field": "id", "data_type": "int64", "range": {"start": 0, "end": 9, "interval": 3}},
        {"field": "at", "time_ingestion_partitioning": True},
    ],
)
def test_others_are_refused(option: dict[str, Any]) -> None:
    with pytest.raises(DbtRuntimeError, match="partition_by is a list of columns, or the field"):
        time_partitions(option, columns_only=False)
