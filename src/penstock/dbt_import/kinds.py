"""Materializations of dbt's as kinds of MODEL, with their options; what is lost is noted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from penstock.dbt_import import merging
from penstock.dbt_import.manifest import Fields, as_list, config_of
from penstock.dbt_import.text import literal, name, names

# on_schema_change: what happens to columns that only the query has, or only the table.
_ON_CHANGE = {
    "ignore": ("ignore", "ignore"),
    "append_new_columns": ("allow", "ignore"),
    "sync_all_columns": ("allow", "allow"),
    "fail": ("error", "error"),
}
_CRONS = {"hour": "@hourly", "day": "@daily", "month": "@monthly", "year": "@yearly"}
_FILTER = "its filter of new rows is not taken: the query reads all its inputs in each run"


@dataclass(frozen=True, slots=True)
class Kind:
    """``text`` is that of the property ``kind``; ``properties`` are others that it needs."""

    text: str
    properties: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def kind_of(node: Fields, dialect: str = "spark") -> Kind | str:
    """The kind of a model or snapshot whose SQL is of a dialect, or why there is none."""
    if node["resource_type"] == "snapshot":
        return _history(node, dialect)
    config = config_of(node)
    materialized = str(config.get("materialized"))
    if materialized not in _KINDS:
        return f"the materialization {materialized!r} has no kind"
    return _KINDS[materialized](node, dialect)


def _partitioned(config: Fields) -> dict[str, str]:
    option = config.get("partition_by") or config.get("partitioned_by")
    parts = [] if isinstance(option, Mapping) else as_list(option)  # the form of dbt-bigquery
    return {"partitioned_by": f"({', '.join(parts)})"} if parts else {}


def _incremental(node: Fields, dialect: str) -> Kind | str:
    config = config_of(node)
    strategy = config.get("incremental_strategy") or "default"
    notes = (_FILTER,) if "is_incremental" in str(node.get("raw_code")) else ()
    if strategy == "microbatch":
        return _by_time(config, dialect)
    keys = as_list(config.get("unique_key"))
    partitions = _partitioned(config)
    if strategy == "insert_overwrite" and partitions:
        return Kind(f"INCREMENTAL_BY_PARTITION{_options(config)}", partitions, notes)
    if keys:
        try:
            rules = merging.options(node, keys, dialect)
        except merging.NoCounterpart as reason:
            return str(reason)
        options = _options(config, unique_key=names(keys, dialect), **rules)
        return Kind(f"INCREMENTAL_BY_UNIQUE_KEY{options}", partitions, notes)
    whole = "it has no unique_key: all its rows are made in each run, as with --full-refresh"
    return Kind("FULL", partitions, (whole, *notes))


def _by_time(config: Fields, dialect: str) -> Kind | str:
    column, size = config.get("event_time"), str(config.get("batch_size"))
    if not column or size not in _CRONS:
        return "a microbatch model needs event_time and a batch_size"
    properties = {"cron": literal(_CRONS[size])}
    if begin := config.get("begin"):
        properties["start"] = literal(str(begin)[:10])
    options = {"time_column": name(str(column), dialect)}
    if lookback := config.get("lookback"):
        options["lookback"] = str(lookback)
    return Kind(f"INCREMENTAL_BY_TIME_RANGE{_options(config, **options)}", properties)


def _history(node: Fields, dialect: str) -> Kind | str:
    config = config_of(node)
    keys = as_list(config.get("unique_key"))
    columns = config.get("snapshot_table_column_names") or {}
    options = {
        "unique_key": names(keys, dialect),
        "valid_from_name": name(columns.get("dbt_valid_from") or "dbt_valid_from", dialect),
        "valid_to_name": name(columns.get("dbt_valid_to") or "dbt_valid_to", dialect),
    }
    deletes = config.get("hard_deletes") or ""
    if deletes == "new_record":
        return "hard_deletes: new_record has no counterpart: use invalidate"
    invalidates = deletes == "invalidate" or bool(config.get("invalidate_hard_deletes"))
    options["invalidate_hard_deletes"] = literal(invalidates)
    notes = ["dbt_scd_id and dbt_updated_at are not made"]
    if current := config.get("dbt_valid_to_current"):
        until = options["valid_to_name"]
        notes.append(
            f"its dbt_valid_to_current is not converted: {until} of a current version is NULL, not "
            f"{current}"
        )
    if config.get("strategy") == "timestamp":
        options["updated_at_name"] = name(str(config.get("updated_at")), dialect)
        options["updated_at_as_valid_from"] = "true"
        return Kind(f"SCD_TYPE_2_BY_TIME{_listed(options)}", {}, tuple(notes))
    checked = config.get("check_cols")
    options["columns"] = "*" if checked == "all" else names(as_list(checked), dialect)
    return Kind(f"SCD_TYPE_2_BY_COLUMN{_listed(options)}", {}, tuple(notes))


def _options(config: Fields, **given: str) -> str:
    """The options of an incremental kind, with what a change of columns does."""
    additive, destructive = _ON_CHANGE.get(str(config.get("on_schema_change")), ("", ""))
    if additive:
        given |= {"on_additive_change": additive, "on_destructive_change": destructive}
    return _listed(given)


def _listed(options: Mapping[str, str]) -> str:
    if not options:
        return ""
    lines = ",\n".join(f"    {key} {value}" for key, value in options.items())
    return f" (\n{lines}\n  )"


_KINDS: Mapping[str, Callable[[Fields, str], Kind | str]] = {
    "table": lambda node, _: Kind("FULL", _partitioned(config_of(node))),
    "view": lambda *_: Kind("VIEW"),
    "ephemeral": lambda *_: "its query stands in those of its readers, as dbt compiles it",
    "incremental": _incremental,
}
