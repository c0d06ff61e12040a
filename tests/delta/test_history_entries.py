"""What a commit tells DESCRIBE HISTORY."""

from __future__ import annotations

import pytest

from penstock.delta.history_entries import (
    BYTES,
    DELETED,
    FILES,
    INSERTED,
    UPDATED,
    WRITTEN,
    name_metrics,
    name_parameters,
)

COUNTS = {INSERTED: 1, UPDATED: 2, DELETED: 3, WRITTEN: 4, FILES: 5, BYTES: 6}


@pytest.mark.parametrize(
    ("operation", "metrics"),
    [
        ("WRITE", {"numOutputRows": "4", "numFiles": "5", "numOutputBytes": "6"}),
        (
            "CREATE TABLE AS SELECT",
            {"numOutputRows": "4", "numFiles": "5", "numOutputBytes": "6"},
        ),
        ("UPDATE", {"numUpdatedRows": "2"}),
        ("DELETE", {"numDeletedRows": "3"}),
        (
            "MERGE",
            {
                "numTargetRowsInserted": "1",
                "numTargetRowsUpdated": "2",
                "numTargetRowsDeleted": "3",
                "numOutputRows": "4",
            },
        ),
    ],
)
def test_metrics_have_the_names_of_deltas_writers(operation: str, metrics: dict[str, str]) -> None:
    assert name_metrics(operation, COUNTS) == metrics


def test_what_is_not_counted_is_left_out() -> None:
    assert name_metrics("MERGE", {WRITTEN: 0}) == {"numOutputRows": "0"}


@pytest.mark.parametrize(
    ("operation", "is_overwrite", "parameters"),
    [
        ("WRITE", False, {"mode": "Append", "partitionBy": '["day"]'}),
        ("WRITE", True, {"mode": "Overwrite", "partitionBy": '["day"]'}),
        ("REPLACE TABLE AS SELECT", True, {"partitionBy": '["day"]'}),
        ("SET TBLPROPERTIES", False, {}),
        ("MERGE", True, {}),
    ],
)
def test_parameters(operation: str, is_overwrite: bool, parameters: dict[str, str]) -> None:
    assert name_parameters(operation, ["day"], is_overwrite=is_overwrite) == parameters
