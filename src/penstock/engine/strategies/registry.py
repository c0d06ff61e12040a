"""Every strategy by its name. ``manual`` scripts own their writes, and have none."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.engine.strategies import (
    append,
    custom,
    history,
    merge,
    partitions,
    replace,
    time_range,
)
from penstock.engine.strategies.slice import Strategy

STRATEGIES: Mapping[str, Strategy] = {
    "replace": replace.stage,
    "append": append.stage,
    "merge": merge.stage,
    "partitions": partitions.stage,
    "time_range": time_range.stage,
    "custom": custom.stage,
    "history": history.stage,
}
