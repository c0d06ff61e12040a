"""Tests ``model/values/asset.py`` (names of assets in a header)."""

from __future__ import annotations

import pytest

from penstock.model.headers.annotation import parse
from penstock.model.values.asset import Asset, Materialize

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
