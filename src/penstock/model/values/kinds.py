"""Every kind of model by its name: its options, and the strategy that it is or why it is refused.

The options, their types and defaults are those of kinds.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

DEFAULT_KIND = "VIEW"
EMBEDDED, VIEW, TIME_RANGE = "embedded", "view", "time_range"
#: of steps in Python that write files and no table
FILES = "files"
#: strategies whose query is evaluated by those who read it
BY_READERS = (EMBEDDED, VIEW)
#: strategies of whose slices nobody counts the rows
WITHOUT_ROWS = (VIEW, FILES)
#: strategies whose query may be about an interval of time
BY_INTERVALS = (TIME_RANGE, "merge", "append", "partitions", "custom", "history")
#: strategies whose rerun makes a slice what the SELECT returns, whatever other writers did to it
_REPLACING = ("replace", "merge", "partitions", TIME_RANGE, VIEW)
#: strategies that remove rows of other writers which the query does not return
REMOVING = ("replace", TIME_RANGE)
#: strategies by which a slice that is made twice may have its rows twice
ADDING = ("append", "custom", "manual")
CHANGES = ("allow", "warn", "error", "ignore")


def rerun_replaces(strategy: str, *, by_time: bool) -> bool:
    """Whether slices that another writer changed are to be rebuilt by the next run. An append would
    add its rows again, statements are the script's own, and rows that were merged or added by
    intervals of time do not say which interval they are of.
    """
    return strategy == TIME_RANGE if by_time else strategy in _REPLACING


@dataclass(frozen=True, slots=True)
class Option:
    """``type`` names how its value is read (`ddl.values.READERS`).

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
    """``strategy`` is one of the engine's; where there is none, ``refusal`` says why. A kind that
    is ``queryless`` gives the query itself.
    """

    name: str
    options: tuple[Option, ...] = ()
    strategy: str | None = None
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
            *_BATCHES,
            Option("batch_concurrency", "count", 1, refusal="its batches run one by one"),
            *_restated(),
        ),
        strategy="merge",
    ),
    Kind(
        "INCREMENTAL_BY_PARTITION",
        (
            Option("forward_only", "boolean", True, refusal="it is always forward-only"),
            Option("disable_restatement", "boolean", False),
            *_CHANGES,
            _AUTO,
        ),
        strategy="partitions",
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
        strategy="append",
    ),
    Kind("FULL", strategy="replace"),
    Kind("VIEW", (Option("materialized", "boolean", False),), strategy="view"),
    Kind("EMBEDDED", strategy="embedded"),
    Kind(
        "SEED",
        (
            Option("path", "text", required=True),
            Option("batch_size", "count", idle="a seed is loaded whole"),
            Option("csv_settings", "csv_settings"),
        ),
        strategy="replace",
        queryless=True,
    ),
    Kind("SCD_TYPE_2", (*_history(closes=True), *_BY_TIME), strategy="history"),
    Kind("SCD_TYPE_2_BY_TIME", (*_history(), *_BY_TIME), strategy="history"),
    Kind(
        "SCD_TYPE_2_BY_COLUMN",
        (
            *_history(),
            Option("columns", "expressions", required=True),
            Option("execution_time_as_valid_from", "boolean", False),
            Option("updated_at_name", "name"),
        ),
        strategy="history",
    ),
    Kind(
        "EXTERNAL",
        refusal="a table that others write is described in external_models.yaml",
        hint="describe it there: penstock create-external writes what queries read",
    ),
    Kind(
        "MANAGED",
        (Option("disable_restatement", "boolean", True, refusal="it is always true"),),
        refusal="only an engine that refreshes tables by itself has it",
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
        strategy="custom",
    ),
)
KINDS: Mapping[str, Kind] = {kind.name: kind for kind in _KINDS}
