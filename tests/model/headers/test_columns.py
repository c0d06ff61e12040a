from __future__ import annotations

import pytest

from penstock.model.headers.annotation import parse
from penstock.model.values.asset import Asset, ColumnInput, ColumnLineage

ORDERS = Asset("ducklake", "warehouse/orders")


@pytest.mark.parametrize(
    "line",
    [
        "total <- ducklake://warehouse/orders.amount, ducklake://warehouse/orders.tax",
        "total<-ducklake://warehouse/orders.amount,ducklake://warehouse/orders.tax",
    ],
)
def test_lineage(line: str) -> None:
    expected = ColumnLineage("total", (ColumnInput(ORDERS, "amount"), ColumnInput(ORDERS, "tax")))
    annotations, findings = parse(f"-- column {line}")
    assert annotations.column_lineage == (expected,)
    assert findings == ()


@pytest.mark.parametrize("line", ["a", "a <-", "a <- b", "a -> ducklake://m/t.c", "", "<- x.y"])
def test_what_says_no_lineage_is_dropped(line: str) -> None:
    annotations, (finding,) = parse(f"-- column {line}")
    assert annotations.column_lineage == ()
    assert finding.severity == "warning"


def test_one_bad_input_does_not_lose_the_others() -> None:
    annotations, (finding,) = parse("-- column a <- x, ducklake://m/t.c")
    assert annotations.column_lineage[0].inputs == (ColumnInput(Asset("ducklake", "m/t"), "c"),)
    assert "`x` is dropped" in finding.message


def test_a_type_is_declared() -> None:
    text = "-- column n BIGINT\n-- column 'a b' STRUCT(x INT, y VARCHAR[])\n-- column N DATE"
    annotations, (finding,) = parse(text)
    assert [(c.name, c.type, c.location.line) for c in annotations.column_types] == [
        ("n", "BIGINT", 1),
        ("a b", "STRUCT(x INT, y VARCHAR[])", 2),
    ]
    assert (finding.severity, finding.rule, finding.location.line) == ("error", "column-twice", 3)


@pytest.mark.parametrize("line", ["n TIME", "order is kept", "n NOTYPE", "n"])
def test_what_is_no_type_is_dropped(line: str) -> None:
    annotations, (finding,) = parse(f"-- column {line}")
    assert annotations.column_types == ()
    assert (finding.severity, finding.rule) == ("warning", "dropped-column")
