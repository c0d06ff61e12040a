"""Every kind of model by its name: its options, and the strategy that it is or why it is refused.

The options, their types and defaults are those of kinds.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.model.values.history import MAX_CLOSED
from penstock.model.values.strategy import (
    APPEND,
    CUSTOM,
    EMBEDDED,
    HISTORY,
    MERGE,
    PARTITIONS,
    REPLACE,
    TIME_RANGE,
    VIEW,
    Strategy,
)

DEFAULT_KIND = "VIEW"
CHANGES = ("allow", "warn", "error", "ignore")


@dataclass(frozen=True, slots=True)
class Option:
    """``type`` names how its value is read (`headers.values.READERS`).

    ``refusal`` says why it cannot be given, or with ``only_default`` not with another value;
    ``idle`` why it has no effect, which is said.
    """

    name: str
    type: str
    default: object = None
    required: bool = False
    refusal: str | None = None
    only_default: bool = False
    idle: str | None = None


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind without a ``strategy`` has a ``refusal``; one that is ``queryless`` gives the query
    itself.
    """

    name: str
    options: tuple[Option, ...] = ()
    strategy: Strategy | None = None
    refusal: str | None = None
    queryless: bool = False
    hint: str = (
        "use FULL, VIEW, EMBEDDED, SEED, INCREMENTAL_BY_TIME_RANGE, INCREMENTAL_BY_UNIQUE_KEY, "
        "INCREMENTAL_BY_PARTITION, INCREMENTAL_UNMANAGED, SCD_TYPE_2_BY_TIME or "
        "SCD_TYPE_2_BY_COLUMN"
    )

    def option(self, name: str) -> Option | None:
        return next((option for option in self.options if option.name == name), None)

    @property
    def defaults(self) -> dict[str, object]:
        return {option.name: option.default for option in self.options}


_CHANGES = (
    Option("on_destructive_change", "change", "error"),
    Option("on_additive_change", "change", "allow"),
)
_AUTO = Option("auto_restatement_cron", "cron")
_INTERVALS = Option("auto_restatement_intervals", "count")


def _restated(*, forward_only: bool = False, disabled: bool = False) -> tuple[Option, ...]:
    return (
        Option("forward_only", "boolean", forward_only),
        Option("disable_restatement", "boolean", disabled),
        *_CHANGES,
        _AUTO,
    )


_BATCHES = (Option("batch_size", "count"), Option("lookback", "whole", 0))
#: options that act where a query reads by intervals: those of a kind by time always do
OF_INTERVALS = ("batch_size", "lookback", "batch_concurrency")


def _history(*, closes: bool = False) -> tuple[Option, ...]:
    """``closes``: the kind's own document closes what was deleted without being asked to."""
    return (
        Option("unique_key", "expressions", required=True),
        Option("valid_from_name", "name", "valid_from"),
        Option("valid_to_name", "name", "valid_to"),
        Option("invalidate_hard_deletes", "boolean", closes),
        Option("max_closed", "count", MAX_CLOSED),
        Option("time_data_type", "type", "TIMESTAMP"),
        Option("batch_size", "count"),
        *_restated(forward_only=True, disabled=True),
    )


_BY_TIME = (
    Option("updated_at_name", "name", "updated_at"),
    Option("updated_at_as_valid_from", "boolean", False),
)
_KINDS = (
    Kind(
        "INCREMENTAL_BY_TIME_RANGE",
        (
            Option("time_column", "time_column", required=True),
            Option("partition_by_time_column", "boolean", True),
            Option(
                "batch_concurrency", "count", idle="batches are commits to one table, one by one"
            ),
            *_BATCHES,
            *_restated(),
            _INTERVALS,
        ),
        strategy=TIME_RANGE,
    ),
    Kind(
        "INCREMENTAL_BY_UNIQUE_KEY",
        (
            Option("unique_key", "expressions", required=True),
            Option("when_matched", "predicate"),
            Option("merge_filter", "predicate"),
            Option("sequence", "name"),
            Option("deletes", "predicate"),
            *_BATCHES,
            Option("batch_concurrency", "count", 1, refusal="its batches run one by one"),
            *_restated(),
        ),
        strategy=MERGE,
    ),
    Kind(
        "INCREMENTAL_BY_PARTITION",
        (
            Option("forward_only", "boolean", True, refusal="it is always forward-only"),
            Option("disable_restatement", "boolean", False),
            *_CHANGES,
            _AUTO,
        ),
        strategy=PARTITIONS,
    ),
    Kind(
        "INCREMENTAL_UNMANAGED",
        (
            Option(
                "insert_overwrite",
                "boolean",
                False,
                refusal="INCREMENTAL_BY_PARTITION does that",
                only_default=True,
            ),
            Option("batch_size", "count", refusal="the kind does not have it"),
            Option("batch_concurrency", "count", refusal="the kind does not have it"),
            *_restated(forward_only=True, disabled=True),
        ),
        strategy=APPEND,
    ),
    Kind("FULL", strategy=REPLACE),
    Kind("VIEW", (Option("materialized", "boolean", False),), strategy=VIEW),
    Kind("EMBEDDED", strategy=EMBEDDED),
    Kind(
        "SEED",
        (
            Option("path", "text", required=True),
            Option("batch_size", "count", idle="a seed is loaded whole"),
            Option("csv_settings", "csv_settings"),
        ),
        strategy=REPLACE,
        queryless=True,
    ),
    Kind("SCD_TYPE_2", (*_history(closes=True), *_BY_TIME), strategy=HISTORY),
    Kind("SCD_TYPE_2_BY_TIME", (*_history(), *_BY_TIME), strategy=HISTORY),
    Kind(
        "SCD_TYPE_2_BY_COLUMN",
        (
            *_history(),
            Option("columns", "expressions", required=True),
            Option("execution_time_as_valid_from", "boolean", False),
            Option("updated_at_name", "name"),
        ),
        strategy=HISTORY,
    ),
    Kind(
        "EXTERNAL",
        refusal="a table that others write is described in external_models.yaml",
        hint="describe it there: penstock create-external writes what queries read",
    ),
    Kind(
        "MANAGED",
        (Option("disable_restatement", "boolean", True, refusal="it is always true"),),
        refusal="only an engine that refreshes tables on its own has it",
    ),
    Kind(
        "CUSTOM",
        (
            Option("materialization", "text", required=True),
            Option("materialization_properties", "text_pairs"),
            Option("batch_concurrency", "count"),
            *_BATCHES,
            Option("forward_only", "boolean", False),
            Option("disable_restatement", "boolean", False),
            _AUTO,
            _INTERVALS,
        ),
        strategy=CUSTOM,
    ),
)
KINDS: Mapping[str, Kind] = {kind.name: kind for kind in _KINDS}
