"""Strategies know a destination by its protocol only: a history, which asks most, on every kind."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from penstock.destinations.destination import Destination
from penstock.engine.strategies import history
from penstock.engine.strategies.target import WriteTarget
from penstock.model.values.history import History
from tests.destinations.test_destination import NAME, listed

pytestmark = pytest.mark.spark

LOADS = ["(1, 'a'), (2, 'b'), (3, 'c')", "(1, 'A'), (2, 'b'), (4, 'd')"]
VERSIONS = [
    (1, "A", 2, None),
    (1, "a", 1, 2),
    (2, "b", 1, None),
    (3, "c", 1, 2),
    (4, "d", 2, None),
]


def test_a_history(destination: Destination, spark: Any) -> None:
    kept = History(track=("name",), closes=True)
    for day, values in enumerate(LOADS, 1):
        options = history.Options(kept, (("id", "`id`"),), datetime(2026, 1, day, tzinfo=UTC))
        df = spark.sql(f"SELECT * FROM VALUES {values} AS v(id, name)")
        with destination.transaction() as tx:
            staged = history.stage(tx.table(NAME), df, WriteTarget(options))
            assert not staged.unchanged
    rows = (
        destination.table(NAME).to_df().selectExpr("id", "name", "day(valid_from)", "day(valid_to)")
    )
    assert listed(rows) == sorted(VERSIONS, key=str)
