"""Every strategy that writes a table, by its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.engine.strategies import (
    append,
    change_feed,
    custom,
    history,
    merge,
    partitions,
    replace,
    time_range,
    upsert,
)
from penstock.engine.strategies.target import Strategy, given
from penstock.model.definition.model import Model

# Any: each is given the options that it makes itself.
STRATEGIES: Mapping[str, Strategy[Any]] = {
    "replace": Strategy(replace.stage, lambda *_: None),
    "append": Strategy(append.stage, lambda *_: None),
    "merge": Strategy(merge.stage, lambda model, _: model.keys),
    "upsert": Strategy(upsert.stage, upsert.Options),
    "change_feed": Strategy(change_feed.stage, upsert.Options),
    "partitions": Strategy(partitions.stage, lambda model, _: model.layout.partitioned_by),
    "time_range": Strategy(time_range.stage, time_range.Options.of),
    "custom": Strategy(custom.stage, lambda model, _: given(model.custom)),
    "history": Strategy(history.stage, history.Options.of),
}


def strategy_of(model: Model) -> Strategy[Any]:
    """The strategy of a model that makes a table; merges by rules and of change feeds have
    one of their own.
    """
    if model.strategy.merges and model.upsert.sequence is not None:
        return STRATEGIES["change_feed"]
    by_rules = model.strategy.merges and (model.upsert or model.key_expressions)
    return STRATEGIES["upsert" if by_rules else model.strategy.name]
