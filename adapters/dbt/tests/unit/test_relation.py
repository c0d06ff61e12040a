from __future__ import annotations

from datetime import UTC, datetime

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.penstock.relation import PenstockRelation

ORDERS = PenstockRelation.create("lake", "main", "orders")
NAME = '"lake"."main"."orders"'


@pytest.mark.parametrize(
    ("relation", "rendered"),
    [
        (ORDERS.at_version(3), f"{NAME} AT (VERSION => 3)"),
        (ORDERS.at_version("3"), f"{NAME} AT (VERSION => 3)"),
        (ORDERS.at_version(None), NAME),
        (ORDERS.at_timestamp(None), NAME),
        (
            ORDERS.at_timestamp("2026-01-31"),
            f"{NAME} AT (TIMESTAMP => '2026-01-31 00:00:00+00:00')",
        ),
        (
            ORDERS.at_timestamp("2026-01-31 12:00:00+02:00"),
            f"{NAME} AT (TIMESTAMP => '2026-01-31 10:00:00+00:00')",
        ),
        (
            ORDERS.at_timestamp(datetime(2026, 1, 31, tzinfo=UTC)),
            f"{NAME} AT (TIMESTAMP => '2026-01-31 00:00:00+00:00')",
        ),
        (ORDERS.at_version(1).at_version(2), f"{NAME} AT (VERSION => 2)"),
        (ORDERS.at_version(3).quote(database=False), 'lake."main"."orders" AT (VERSION => 3)'),
        (PenstockRelation.create(identifier="x", type="cte").at_version(3), '"x"'),
    ],
)
def test_a_relation_at_a_snapshot(relation: PenstockRelation, rendered: str) -> None:
    assert str(relation) == rendered


def test_a_relation_at_a_snapshot_that_is_empty_or_filtered() -> None:
    empty = PenstockRelation.create("lake", "main", "orders", limit=0).at_version(3)
    assert str(empty) == f"(select * from {NAME} AT (VERSION => 3) where false limit 0)"


@pytest.mark.parametrize("version", ["three", "1) or (1", "-1", 1.5, True])
def test_a_version_is_a_number(version: object) -> None:
    with pytest.raises(DbtRuntimeError, match="write the number of a snapshot"):
        ORDERS.at_version(version)


@pytest.mark.parametrize("moment", ["yesterday", "'", 3])
def test_a_moment_is_a_time(moment: object) -> None:
    with pytest.raises(DbtRuntimeError, match="is not a time"):
        ORDERS.at_timestamp(moment)
