"""Materializations of dbt's as kinds of MODEL, with their options; what is lost is noted.

Options of a merge of dbt's as ``when_matched`` and ``merge_filter`` of a model.

A merge updates all columns, those of `merge_update_columns`, or all but those of
`merge_exclude_columns`; `incremental_predicates` say which rows of the table it may change.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from penstock.dbt_import.manifest import Fields, as_list, config_of
from penstock.dbt_import.text import literal, name, names
from penstock.lazy import exp
from penstock.sql.identifiers import fold
from penstock.sql.text import Unreadable, parse_expression, parse_query

SOURCE, TARGET = "source", "target"  # what a model calls the rows of its query and of its table
_SIDES = {"DBT_INTERNAL_SOURCE": SOURCE, "DBT_INTERNAL_DEST": TARGET}
_ALIASES = re.compile("|".join(_SIDES), re.I)
_CONDITIONS = ("matched_condition", "merge_update_condition")
_WITHOUT_COUNTERPART = (
    *("merge_clauses", "not_matched_condition", "merge_insert_condition", "skip_matched_step"),
    *("skip_not_matched_step", "not_matched_by_source_action", "merge_update_set_expressions"),
)


class NoCounterpart(Exception):
    """The reason why a merge cannot be written as a model."""


def read_merge_options(node: Fields, keys: Sequence[str], dialect: str) -> dict[str, str]:
    """Return the options of INCREMENTAL_BY_UNIQUE_KEY. Raises NoCounterpart."""
    config = config_of(node)
    for option in _WITHOUT_COUNTERPART:
        if config.get(option):
            raise NoCounterpart(f"its {option} has no counterpart: write a script that merges")
    merge_options: dict[str, str] = {}
    columns = _updated(node, keys, dialect)
    condition = next((str(config[key]) for key in _CONDITIONS if config.get(key)), None)
    if condition is not None and columns is None:
        columns = _others(node, keys, dialect, "its condition of updates")
    if columns is not None:
        matched = f" AND {_sided(condition, config, dialect)}" if condition else ""
        sets = ", ".join(f"{TARGET}.{column} = {SOURCE}.{column}" for column in columns)
        merge_options["when_matched"] = f"(WHEN MATCHED{matched} THEN UPDATE SET {sets})"
    predicates = as_list(config.get("incremental_predicates") or config.get("predicates"))
    if predicates:
        sided = [_sided(predicate, config, dialect) for predicate in predicates]
        merge_options["merge_filter"] = " AND ".join(f"({predicate})" for predicate in sided)
    return merge_options


def _updated(node: Fields, keys: Sequence[str], dialect: str) -> list[str] | None:
    """The columns that a match updates, as they are written; None for all."""
    config = config_of(node)
    if listed := as_list(config.get("merge_update_columns")):
        return [name(column, dialect) for column in listed]
    excluded = as_list(config.get("merge_exclude_columns"))
    if not excluded:
        return None
    return _others(node, [*keys, *excluded], dialect, "its merge_exclude_columns")


def _others(node: Fields, excluded: Sequence[str], dialect: str, what: str) -> list[str]:
    left_out = {fold(column) for column in excluded}
    columns = output_columns(str(node["compiled_code"]), dialect)
    if columns is None:
        raise NoCounterpart(
            f"{what} need the names of its columns, and its query has a *: list "
            "the columns, or use merge_update_columns"
        )
    return [name(column, dialect) for column in columns if fold(column) not in left_out]


def output_columns(query: str, dialect: str) -> list[str] | None:
    """Return the names of a query's columns; None where a ``*`` or an expression hides one."""
    from sqlglot.errors import SqlglotError
    from sqlglot.optimizer.qualify_columns import qualify_columns
    from sqlglot.optimizer.qualify_tables import qualify_tables

    try:
        tree = parse_query(query, dialect)
        tree = qualify_columns(qualify_tables(tree), {})
    except (Unreadable, SqlglotError):
        return None
    columns = tree.selects if isinstance(tree, exp.Query) else []
    names = [column.alias_or_name for column in columns]
    hidden = any(column.is_star for column in columns) or not all(names)
    return None if hidden or not names else names


def _sided(condition: str, config: Fields, dialect: str) -> str:
    """A condition with the names that a model has for the two sides. Raises NoCounterpart."""
    aliases = {str(config.get("source_alias")): SOURCE, str(config.get("target_alias")): TARGET}
    text = _ALIASES.sub(lambda match: _SIDES[match[0].upper()], condition)
    for alias, side in aliases.items():
        text = re.sub(rf"\b{re.escape(alias)}\.", f"{side}.", text)
    try:
        columns = list(parse_expression(text, dialect).find_all(exp.Column))
    except Unreadable as error:
        raise NoCounterpart(f"its condition {condition!r} cannot be read: {error}") from None
    other = next((column for column in columns if fold(column.table) not in {SOURCE, TARGET}), None)
    if other is not None:
        raise NoCounterpart(
            f"{other.sql(dialect)} in its condition {condition!r} may be of either side: write "
            "DBT_INTERNAL_SOURCE or DBT_INTERNAL_DEST before it"
        )
    return text


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
            rules = read_merge_options(node, keys, dialect)
        except NoCounterpart as reason:
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
