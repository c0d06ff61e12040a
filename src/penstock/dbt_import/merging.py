"""Options of a merge of dbt's as ``when_matched`` and ``merge_filter`` of a model.

A merge updates all columns, those of `merge_update_columns`, or all but those of
`merge_exclude_columns`; `incremental_predicates` say which rows of the table it may change.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from penstock.dbt_import.manifest import Fields, as_list, config_of
from penstock.dbt_import.text import name
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


def options(node: Fields, keys: Sequence[str], dialect: str) -> dict[str, str]:
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
