"""Options that Penstock does are set; others are refused by name, as writers would break them."""

from __future__ import annotations

import pytest

from penstock.delta.options import checked_options
from penstock.errors import ArgumentError, UnsupportedFeature


def test_options_that_are_done() -> None:
    assert checked_options(
        {"delta.enabledeletionvectors": True, "delta.appendOnly": "TRUE"}, "t"
    ) == {
        "delta.enableDeletionVectors": "true",
        "delta.appendOnly": "true",
    }
    others = {"delta.checkpointInterval": "5", "delta.logRetentionDuration": "interval 30 days"}
    assert checked_options({**others, "owner": "ann"}, "t") == {**others, "owner": "ann"}


@pytest.mark.parametrize(
    "name",
    [
        "delta.enableInCommitTimestamps",
        "delta.enableRowTracking",
        "delta.enableTypeWidening",
        "delta.enableIcebergCompatV2",
        "delta.universalFormat.enabledFormats",
        "delta.checkpointPolicy",
        "delta.feature.typeWidening",
        "delta.minWriterVersion",
        "delta.constraints.positive",
        "delta.foo",
    ],
)
def test_options_that_are_not_done(name: str) -> None:
    with pytest.raises(UnsupportedFeature, match=f"the option {name} of the Delta table shop.t"):
        checked_options({name: "true"}, "shop.t")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("delta.checkpointInterval", "abc"),
        ("delta.checkpointInterval", "0"),
        ("delta.enableDeletionVectors", "yes"),
        ("delta.columnMapping.mode", "name"),
        ("delta.isolationLevel", "Snapshot"),
        ("delta.logRetentionDuration", "a while"),
    ],
)
def test_values_that_are_none(name: str, value: str) -> None:
    with pytest.raises(ArgumentError, match="is not a value of"):
        checked_options({name: value}, "t")
