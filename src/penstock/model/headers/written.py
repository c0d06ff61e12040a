"""Annotations as the lines of a header, in their canonical order and spelling."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock.model.time.partition import PartitionSpec
from penstock.model.values.asset import Asset, ColumnLineage, Materialize
from penstock.model.values.data_test import (
    ERROR,
    AcceptedRangeTest,
    AcceptedValuesTest,
    CustomTest,
    DataTest,
    ExpressionTest,
    NotNullTest,
    RelationshipsTest,
    RowCountTest,
    UniqueTest,
)
from penstock.model.values.schedule import Trigger
from penstock.sql.literals import plain_text_literal

if TYPE_CHECKING:
    from penstock.model.headers.annotation import Annotations

_PLAIN = re.compile(r"[^\s,'\"]+")
_PREFIXES = {
    "ducklake": "ducklake://",
    "delta": "delta://",
    "s3object": "s3://",
    "resource": "res://",
    "datatable": "datatable://",
    "volume": "volume://",
}


def lines_of(annotations: Annotations) -> list[str]:
    """The lines, without what begins a comment. What is the default has no line."""
    made, spec, retry = annotations.materialize, annotations.partition, annotations.retry
    dialect = annotations.dialect if annotations.dialect != "spark" else None
    return [
        *(["pipeline"] if annotations.in_pipeline else []),
        *(["macros"] if annotations.macros else []),
        *(f"use {library}" for library in annotations.use_libs),
        *([_materialize(made)] if made else []),
        *([_partitioned(spec)] if spec else []),
        *_said("incremental", annotations.incremental),
        *_said("late", "run" if annotations.late_run else None),
        *(f"needs {each.asset} {each.text}" for each in annotations.needs),
        *(_on(trigger) for trigger in annotations.triggers),
        *_said("trigger", annotations.join_mode),
        *_said("freshness", annotations.freshness),
        *_said("debounce", annotations.debounce_default),
        *_said("retry", f"{retry.count} {retry.delay or ''}".rstrip() if retry else None),
        *_said("timeout", annotations.timeout),
        *_said("tag", annotations.tag),
        *_said("dialect", dialect),
        *(f"data_test {data_test(test)}" for test in annotations.data_tests),
        *map(_column, annotations.column_lineage),
        *(f"column {quoted(each.name)} {each.type}" for each in annotations.column_types),
    ]


def _said(keyword: str, value: str | None) -> list[str]:
    return [] if value is None else [f"{keyword} {value}"]


def quoted(value: str) -> str:
    """A value of a list, in quotes where it needs them."""
    if _PLAIN.fullmatch(value):
        return value
    return '"' + value.replace('"', '""') + '"'


def column_name(name: str) -> str:
    """A column of a test, in quotes where it needs them."""
    return name if re.fullmatch(r"[^\s,=`'\"]+", name) and "->" not in name else _option(name)


def _columns(names: Sequence[str]) -> str:
    return ", ".join(map(column_name, names))


def _listed(values: Sequence[str]) -> str:
    return ",".join(map(quoted, values))


def _asset(asset: Asset) -> str:
    return f"{_PREFIXES[asset.kind]}{asset.path}"


def _materialize(made: Materialize) -> str:
    words = ["materialize"]
    words += ["manual"] if made.manual else []
    words.append(_asset(made.target))
    words += ["append"] if made.append else []
    words += ["history"] if made.history else []
    words += [f"key={made.unique_key}"] if made.unique_key else []
    words += [f"time={made.time}"] if made.time else []
    words += [f"lookback={made.lookback}"] if made.lookback else []
    words += [f"batch_size={made.batch_size}"] if made.batch_size else []
    words += [f"track={_listed(made.track)}"] if made.track else []
    words += [f"sequence={quoted(made.sequence)}"] if made.sequence else []
    words += [f"deletes={quoted(made.deletes)}"] if made.deletes else []
    words += [f"max_closed={made.max_closed}"] if made.max_closed else []
    words += [f"on_schema_change={made.on_schema_change}"] if made.on_schema_change else []
    return " ".join(words)


def _whole(test: UniqueTest) -> str:
    return " whole table" if test.whole_table else ""


def _partitioned(spec: PartitionSpec) -> str:
    options = (("tz", spec.tz), ("format", spec.format), ("start", spec.start), ("key", spec.key))
    said = (f"{name}={_option(value)}" for name, value in options if value)
    return " ".join(("partitioned", spec.kind, *said))


def _option(value: str) -> str:
    return '"' + value.replace('"', '""') + '"'


def _on(trigger: Trigger) -> str:
    if trigger.asset is None:
        return f"on {trigger.kind}"
    debounce = f" debounce={trigger.debounce}" if trigger.debounce else ""
    return f"on {_asset(trigger.asset)}{debounce}"


def _column(lineage: ColumnLineage) -> str:
    inputs = (f"{_asset(each.asset)}.{each.column}" for each in lineage.inputs)
    return f"column {lineage.column} <- {', '.join(inputs)}"


def can_say(test: DataTest) -> bool:
    """Return whether a ``data_test`` line can say it: some tests are those of audits alone."""
    match test:
        case UniqueTest(nulls_equal=True):
            return False
        case ExpressionTest(label=label) if label:
            return False
        case CustomTest(path=path) if "/" not in path:  # an AUDIT block
            return False
    return type(test) in _TESTS


def data_test(test: DataTest) -> str:
    severity = "" if test.severity == ERROR else f" severity={test.severity}"
    return _TESTS[type(test)](test) + severity


def _options(**options: object) -> str:
    return "".join(f" {name}={value}" for name, value in options.items() if value is not None)


def _accepted_range(test: AcceptedRangeTest) -> str:
    low, high = (None if end is None else quoted(end) for end in (test.minimum, test.maximum))
    options = _options(min=low, max=high, inclusive=None if test.inclusive else "false")
    return f"accepted_range {column_name(test.column)}{options}"


# Any: each writer takes its own kind of test, which the key promises.
_TESTS: Mapping[type[DataTest], Callable[[Any], str]] = {
    UniqueTest: lambda test: f"unique {_columns(test.columns)}{_whole(test)}",
    NotNullTest: lambda test: f"not_null {_columns(test.columns)}",
    AcceptedValuesTest: lambda test: (
        f"accepted_values {column_name(test.column)} = {', '.join(map(_text, test.values))}"
    ),
    AcceptedRangeTest: _accepted_range,
    RowCountTest: lambda test: f"row_count{_options(min=test.minimum, max=test.maximum)}",
    ExpressionTest: lambda test: f"expression {test.sql}",
    RelationshipsTest: lambda test: (
        f"relationships {column_name(test.column)} -> "
        f"{_asset(test.to)}.{column_name(test.to_column)}"
    ),
    CustomTest: lambda test: (
        test.path + "".join(f" {name}={quoted(value)}" for name, value in test.options)
    ),
}


def _text(value: str) -> str:
    plain = value and value == value.strip() and not set(value) & set(",'\"")
    return value if plain else plain_text_literal(value)
