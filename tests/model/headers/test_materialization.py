"""Tests ``model/values/history.py`` (options of a history) and ``model/values/kinds.py`` (every
kind).

Tests ``model/values/asset.py`` (names of assets in a header).
"""

from __future__ import annotations

import pytest

from penstock.model.headers.annotation import parse
from penstock.model.headers.values import READERS
from penstock.model.script.declaration import SchemaChange
from penstock.model.time.cron import AutoRestatement
from penstock.model.time.time_range import TimeColumn, TimeRange
from penstock.model.values.asset import Asset, Materialize
from penstock.model.values.history import History
from penstock.model.values.kinds import CHANGES, KINDS
from penstock.model.values.schedule import Cadence
from tests.model.headers.reading import declared, found

#: kinds.md, "Kinds and their options"
DOCUMENTED = {
    "INCREMENTAL_BY_TIME_RANGE", "INCREMENTAL_BY_UNIQUE_KEY", "FULL", "VIEW", "EMBEDDED", "SEED",
    "SCD_TYPE_2", "SCD_TYPE_2_BY_TIME", "SCD_TYPE_2_BY_COLUMN", "EXTERNAL",
    "INCREMENTAL_BY_PARTITION", "INCREMENTAL_UNMANAGED", "MANAGED", "CUSTOM",
}  # fmt: skip


def test_every_kind_is_one_strategy_or_is_refused() -> None:
    assert set(KINDS) == DOCUMENTED
    for name, kind in KINDS.items():
        assert name == kind.name
        assert (kind.strategy is None) is (kind.refusal is not None), name


def test_every_option_has_a_reader_and_a_default_of_its_type() -> None:
    for kind in KINDS.values():
        assert len({option.name for option in kind.options}) == len(kind.options)
        for option in kind.options:
            assert option.type in READERS, (kind.name, option.name)
            assert not (option.required and option.default is not None)
            if option.type == "change":
                assert option.default in CHANGES
            if option.type == "boolean":
                assert isinstance(option.default, bool)


@pytest.mark.parametrize("name", [kind.name for kind in KINDS.values() if kind.refusal])
def test_a_refused_kind_says_why(name: str) -> None:
    (said, *_) = found("owner x", f"{name} (unique_key id)")
    refused = f"m.sql:3:8: error: the kind {name} is refused: {KINDS[name].refusal}"
    assert said == f"{refused}\n  → {KINDS[name].hint}"


@pytest.mark.parametrize(
    ("kind", "strategy"),
    [
        ("FULL", "replace"),
        ("'full'", "replace"),
        ("INCREMENTAL_BY_UNIQUE_KEY (unique_key id)", "merge"),
        ("INCREMENTAL_BY_PARTITION", "partitions"),
        ("INCREMENTAL_BY_TIME_RANGE (time_column ds)", "time_range"),
        ("INCREMENTAL_UNMANAGED", "append"),
    ],
)
def test_kinds_and_their_strategies(kind: str, strategy: str) -> None:
    declaration = declared("partitioned_by a", kind)
    assert declaration.strategy.name == strategy
    assert declaration.schema_change == SchemaChange("allow", "error")


def test_what_the_kinds_of_history_say() -> None:
    assert declared("owner x", "SCD_TYPE_2 (unique_key id,)").history == History(
        by_time=True, updated_at="updated_at", closes=True, start="epoch"
    )
    by_time = """SCD_TYPE_2_BY_TIME (unique_key (a, b), updated_at_name at,
      time_data_type TIMESTAMPTZ, updated_at_as_valid_from true,
      valid_from_name since, valid_to_name "until")"""
    assert declared("owner x", by_time).history == History(
        by_time=True, updated_at="at", start="updated_at", valid_from="since", valid_to="until",
        time_type="TIMESTAMP",
    )  # fmt: skip
    by_column = "SCD_TYPE_2_BY_COLUMN (unique_key id, columns [a, b])"
    made = declared("owner x", by_column)
    assert made.history == History(track=("a", "b"), start="epoch")
    assert (made.keys, made.forward_only, made.disable_restatement) == (("id",), True, True)
    whole = """SCD_TYPE_2_BY_COLUMN (unique_key id, columns *, execution_time_as_valid_from true,
      invalidate_hard_deletes true)"""
    assert declared("owner x", whole).history == History(closes=True, start="execution")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("updated_at_name valid_from", "the updated_at_name valid_from has the name of a validity"),
        ("valid_to_name valid_from", "`valid_from` is the name of two validity columns"),
        ("time_data_type INT", "`INT` is not a type of moments"),
        ("columns a", "`columns` is not an option of the kind SCD_TYPE_2_BY_TIME"),
        ("updated_at_name nope", "the column nope of the kind is not among `columns`"),
    ],
)
def test_what_a_history_cannot_be(options: str, said: str) -> None:
    columns = "columns (id INT, a INT, updated_at DATE)"
    error = found(columns, f"SCD_TYPE_2_BY_TIME (unique_key id, {options})")[0]
    assert f"error: {said}" in error


def test_partitions_are_not_buckets() -> None:
    kind = "INCREMENTAL_BY_PARTITION"
    assert found("partitioned_by (a, bucket(8, id))", kind) == [
        "m.sql:4:3: error: the kind INCREMENTAL_BY_PARTITION cannot replace by `bucket(8, id)`: a "
        "bucket has unrelated rows\n  → write a column, or year(column) and the like"
    ]
    (said,) = found("partitioned_by to_char(d)", kind)
    assert said.startswith("m.sql:4:18: error: a lake cannot be partitioned by `to_char(d)`")


def test_defaults_differ_by_kind() -> None:
    merge = declared("owner x", "INCREMENTAL_BY_UNIQUE_KEY (unique_key id)")
    assert (merge.forward_only, merge.disable_restatement) == (False, False)
    append = declared("owner x", "INCREMENTAL_UNMANAGED")
    assert (append.forward_only, append.disable_restatement) == (True, True)
    partitions = declared("partitioned_by a", "INCREMENTAL_BY_PARTITION")
    assert (partitions.forward_only, partitions.disable_restatement) == (True, False)


@pytest.mark.parametrize(
    ("written", "column"),
    [
        ("ds", TimeColumn("ds")),
        ("(\"my ds\", 'yyyy-MM-dd')", TimeColumn("my ds", "yyyy-MM-dd")),
        ("(ts, epoch)", TimeColumn("ts", "epoch")),
        ("CAST(at AS DATE)", TimeColumn("CAST(at AS DATE)", None, True)),
        ("(substr(a, 1, 8), '%Y%m%d')", TimeColumn("substr(a, 1, 8)", "%Y%m%d", True)),
    ],
)
def test_time_columns_and_their_formats(written: str, column: TimeColumn) -> None:
    declaration = declared("start 2026-01-01", f"INCREMENTAL_BY_TIME_RANGE (time_column {written})")
    assert declaration.time_range == TimeRange(column, cadence=Cadence(start="2026-01-01"))


def test_the_options_of_a_time_range() -> None:
    kind = (
        "INCREMENTAL_BY_TIME_RANGE (time_column ds, batch_size 7, lookback 2, "
        "partition_by_time_column false, auto_restatement_cron '@weekly', "
        "auto_restatement_intervals 5)"
    )
    cadence = Cadence("@hourly", "Europe/Paris", "hour", "2026-01-01", "2026-02-01", True)
    declaration = declared(
        "cron '@hourly', cron_tz 'Europe/Paris', interval_unit hour, start '2026-01-01', "
        "end '2026-02-01', allow_partials true",
        kind,
    )
    assert declaration.time_range == TimeRange(TimeColumn("ds"), False, 7, None, 2, cadence)
    assert declaration.auto_restatement == AutoRestatement("@weekly", "Europe/Paris", 5)


def test_options_are_what_the_model_says() -> None:
    declaration = declared(
        "owner x",
        "INCREMENTAL_UNMANAGED (forward_only false, disable_restatement FALSE, "
        "on_destructive_change ignore, on_additive_change 'WARN')",
    )
    assert (declaration.forward_only, declaration.disable_restatement) == (False, False)
    assert declaration.schema_change == SchemaChange("warn", "ignore")


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("FUL", "8: error: kind FUL does not exist\n  → did you mean FULL?"),
        ("FULL (a b)", "14: error: `a` is not an option of the kind FULL\n  → it has none"),
        (
            "FULL owner y",
            "13: error: `owner` follows the kind FULL\n  → is a comma missing before `owner`?",
        ),
        (
            "INCREMENTAL_BY_UNIQUE_KEY",
            "8: error: the kind INCREMENTAL_BY_UNIQUE_KEY needs `unique_key`\n"
            "  → write kind INCREMENTAL_BY_UNIQUE_KEY (unique_key ...)",
        ),
        (
            "INCREMENTAL_BY_UNIQUE_KEY (unique_key a, forward_onli true)",
            "49: error: `forward_onli` is not an option of the kind INCREMENTAL_BY_UNIQUE_KEY\n"
            "  → did you mean forward_only?",
        ),
        (
            "INCREMENTAL_BY_UNIQUE_KEY (unique_key a, unique_key b)",
            "49: error: the option `unique_key` is given twice\n  → keep one",
        ),
        (
            "INCREMENTAL_BY_UNIQUE_KEY (unique_key a, on_additive_change sync)",
            "68: error: `sync` is not one of its values\n"
            "  → the values are allow, warn, error, ignore",
        ),
        (
            "FULL (lookback 2)",
            "14: error: `lookback` is not an option of the kind FULL\n  → it has none",
        ),
        (
            "INCREMENTAL_BY_TIME_RANGE",
            "8: error: the kind INCREMENTAL_BY_TIME_RANGE needs `time_column`\n"
            "  → write kind INCREMENTAL_BY_TIME_RANGE (time_column ...)",
        ),
        (
            "INCREMENTAL_BY_TIME_RANGE (time_column ds, batch_size 0)",
            "62: error: `0` is less than 1\n  → write 1, or more",
        ),
        (
            "INCREMENTAL_BY_TIME_RANGE (time_column (ds, '%d.%b'))",
            "52: error: the format `%d.%b` has `%b`, which is not one of %Y, %m, %d, %j, %H, %M, "
            "%S, %f, %F, %T\n  → write one such as '%Y-%m-%d', 'yyyy-MM-dd' or 'epoch'",
        ),
        (
            "INCREMENTAL_BY_TIME_RANGE (time_column (a, b, c))",
            "47: error: `(a, b, c)` is not a column and its format\n"
            "  → write time_column ds, or time_column (ds, '%Y-%m-%d')",
        ),
        (
            "INCREMENTAL_BY_PARTITION",
            "8: error: the kind INCREMENTAL_BY_PARTITION needs the property `partitioned_by`\n"
            "  → write partitioned_by column",
        ),
        (
            "INCREMENTAL_UNMANAGED (insert_overwrite true)",
            "31: error: `insert_overwrite` of INCREMENTAL_UNMANAGED cannot be given: "
            "INCREMENTAL_BY_PARTITION does that\n  → take it away",
        ),
    ],
)
def test_what_is_wrong(kind: str, said: str) -> None:
    assert found("owner x", kind) == [f"m.sql:3:{said}"]


TABLE = Asset("ducklake", "m/t")


def made(options: str) -> Materialize | None:
    return parse(f"-- materialize ducklake://m/t {options}")[0].materialize


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", Materialize(TABLE)),
        ("append", Materialize(TABLE, append=True)),
        ("key=id", Materialize(TABLE, unique_key="id")),
        ("key=a,b", Materialize(TABLE, unique_key="a,b")),
        ("history key=id", Materialize(TABLE, history=True, unique_key="id")),
        ("key=id history track=a,b", Materialize(TABLE, False, False, True, "id", ("a", "b"))),
        ("deletes=close", Materialize(TABLE, deletes="close")),
        ("on_schema_change=fail", Materialize(TABLE, on_schema_change="fail")),
        ("on_schema_change='fail'", Materialize(TABLE, on_schema_change="fail")),
        ('history deletes="close" key=a', Materialize(TABLE, False, False, True, "a", (), "close")),
        (
            "key=id history track='a b',c",
            Materialize(TABLE, False, False, True, "id", ("a b", "c")),
        ),
    ],
)
def test_options(options: str, expected: Materialize) -> None:
    assert made(options) == expected
    assert parse(f"-- materialize ducklake://m/t {options}")[1] == ()


@pytest.mark.parametrize(
    ("options", "strategy", "keys"),
    [
        ("", "replace", ()),
        ("append", "append", ()),
        ("key=a", "merge", ("a",)),
        ("key=a,b", "merge", ("a", "b")),
        ("append key=a", "append", ("a",)),
        ("key=a history", "history", ("a",)),
        ('key="order id",day', "merge", ("order id", "day")),
        ("key=day,'order id'", "merge", ("day", "order id")),
        ('key="a,b" on_schema_change=fail', "merge", ("a,b",)),
        ("key='it''s'", "merge", ("it's",)),
    ],
)
def test_strategy(options: str, strategy: str, keys: tuple[str, ...]) -> None:
    value = made(options)
    assert value is not None
    assert (value.strategy.name, value.keys) == (strategy, keys)


@pytest.mark.parametrize("mode", ["manual", "scd2"])
def test_leading_modes(mode: str) -> None:
    value = parse(f"-- materialize {mode} ducklake://m/t")[0].materialize
    assert value is not None
    assert (value.manual, value.history) == (mode == "manual", mode == "scd2")
    assert value.strategy.name == {"manual": "manual", "scd2": "history"}[mode]


@pytest.mark.parametrize(
    ("options", "column", "rule", "hint"),
    [
        ("append=true", 32, "materialize-option", "did you mean `append`?"),
        ("APPEND", 32, "materialize-option", "did you mean `append`?"),
        ("appendix", 32, "materialize-option", "did you mean `append`?"),
        ("strategy=append", 32, "materialize-option", "did you mean `append`?"),
        ("strategy=merge", 32, "materialize-option", "did you mean `key=column`?"),
        ("keys=id", 32, "materialize-option", "did you mean `key=id`?"),
        ("key", 32, "materialize-option", "did you mean `key=column`?"),
        ("zzz", 32, "materialize-option", None),
        ("key=", 32, "materialize-empty", "write key=column"),
        ("track=", 32, "materialize-empty", "write track=column"),
        ("deletes=", 32, "materialize-empty", "write deletes=close"),
        ("deletes=closed", 32, "materialize-value", "write deletes=close"),
        ("deletes=soft", 32, "materialize-value", "write deletes=close"),
        ("on_schema_change=Sync", 32, "materialize-value", "write on_schema_change=sync"),
        ("on_schema_change=x", 32, "materialize-value", None),
        ("key=a key=b", 38, "materialize-twice", "keep one"),
        ("append append", 39, "materialize-twice", "keep one"),
        ("track=a, b", 32, "materialize-list", None),
        ("key=a,b,a", 32, "materialize-list", "name each column once"),
        ('key="a', 32, "materialize-quote", "close it"),
        ('key="a"b', 32, "materialize-quote", "close it"),
        ('key="a b","a b"', 32, "materialize-list", "name each column once"),
        ('key=""', 32, "materialize-empty", "write key=column"),
        ("key=a,,b", 32, "materialize-list", None),
    ],
)
def test_what_is_not_as_the_author_meant_is_an_error(
    options: str, column: int, rule: str, hint: str | None
) -> None:
    _, findings = parse(f"--  materialize ducklake://m/t {options}", "m.sql")
    first = findings[0]
    assert (first.severity, first.location.line, first.location.column) == ("error", 1, column)
    assert first.rule == rule
    assert hint is None or first.hint == hint


def test_append_wins_over_key_and_says_so() -> None:
    annotations, findings = parse("-- materialize ducklake://m/t append key=id")
    assert annotations.materialize is not None
    assert annotations.materialize.strategy.name == "append"
    assert [(f.severity, f.rule) for f in findings] == [("warning", "append-and-key")]


@pytest.mark.parametrize(
    ("line", "form"),
    [
        ("materialize orders", "-- materialize ducklake://main/orders"),
        ("materialize main/orders key=id", "-- materialize ducklake://main/orders key=id"),
        ("materialize manual shop.orders", "-- materialize manual ducklake://main/shop.orders"),
        ("materialize", "-- materialize ducklake://main/table"),
        ("materialize manual", "-- materialize ducklake://main/table"),
        ("materialize http://x", "-- materialize ducklake://main/table"),
    ],
)
def test_nearest_form_of_a_target(line: str, form: str) -> None:
    annotations, (finding,) = parse(f"-- {line}")
    assert annotations.materialize is None
    assert (finding.severity, finding.hint) == ("error", f"write `{form}`")


def test_a_second_target_is_an_error() -> None:
    text = "-- materialize ducklake://m/a\n-- materialize ducklake://m/b"
    annotations, (finding,) = parse(text)
    assert annotations.materialize == Materialize(Asset("ducklake", "m/a"))
    assert (finding.severity, finding.location.line) == ("error", 2)
    assert finding.rule == "materialize-second"
