from __future__ import annotations

import pytest

from penstock.model.values.asset import Asset, Names, TableName, UnknownName, parse_asset, table_of

ALIASED = Names(("main", "analytics"), aliases={"dl": "analytics"})


@pytest.mark.parametrize(
    ("names", "written", "table"),
    [
        (Names(("main",)), "t", "main.t"),
        (Names(("shop",)), "t", "shop.main.t"),
        (Names(("main", "analytics")), "t", "main.t"),
        (Names(("a", "b"), default_lake="b"), "t", "b.main.t"),
        (Names(("main",)), "clean.t", "main.clean.t"),
        (Names(("main",)), "main.t", "main.t"),
        (Names(("shop",)), "shop.t", "shop.main.t"),
        (Names(("a", "b")), "a.t", "a.main.t"),
        (Names(("main",)), "main.clean.t", "main.clean.t"),
        (ALIASED, "dl.t", "analytics.main.t"),
        (ALIASED, "DL.t", "analytics.main.t"),
        (ALIASED, "dl.clean.t", "analytics.clean.t"),
        (ALIASED, "analytics.clean.t", "analytics.clean.t"),
        (Names(("main", "a"), use=("a", "main")), "t", "a.main.t"),
        (Names(("main", "a"), use=("a", "s")), "t", "a.s.t"),
        (Names(("main", "a"), use=("a", "s")), "x.t", "a.x.t"),
        (Names(("main", "a"), use=("a", "s")), "main.t", "a.main.t"),
        (Names(("main",), aliases={"clean": "main"}), "clean.t", "main.t"),
    ],
)
def test_resolving(names: Names, written: str, table: str) -> None:
    assert str(names.resolve(tuple(written.split(".")))) == table


@pytest.mark.parametrize(
    ("names", "written", "message", "hint"),
    [
        (ALIASED, "analytcs.s.t", "lake `analytcs` does not exist", "did you mean analytics?"),
        (ALIASED, "zzz.s.t", "lake `zzz` does not exist", "known: analytics, dl, main"),
        (Names(()), "a.b.c", "lake `a` does not exist", "known: none"),
        (Names(("a", "b")), "t", "there are several (a, b)", None),
        (Names(("a", "b")), "s.t", "there are several", None),
        (Names(("main", "a")), "a.t", "may mean", "write a.main.t or main.a.t"),
        (ALIASED, "a.b.c.d", "4 parts", "write lake.schema.table"),
    ],
)
def test_names_that_mean_no_table(
    names: Names, written: str, message: str, hint: str | None
) -> None:
    with pytest.raises(UnknownName) as error:
        names.resolve(tuple(written.split(".")))
    assert message in str(error.value)
    assert hint is None or error.value.hint == hint


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ducklake://main/t", Asset("ducklake", "main/t")),
        ("ducklake", Asset("ducklake", "main")),
        ("ducklake://", None),
        ("s3:///a", Asset("s3object", "/a")),
        ("file://in/{partition}.csv", Asset("file", "in/{partition}.csv")),
        ("file://", None),
        ("$res:f/x", Asset("resource", "f/x")),
        ("http://x", None),
        ("t", None),
    ],
)
def test_assets(text: str, expected: Asset | None) -> None:
    assert parse_asset(text) == expected


@pytest.mark.parametrize(
    ("path", "table"),
    [
        ("main/t", TableName("main", "main", "t")),
        ("main/s.t", TableName("main", "s", "t")),
        ("main", None),
        ("main/", None),
        ("/t", None),
        ("main/a.b.c", None),
        ("main/s.", None),
        ("main/a/b", None),
    ],
)
def test_tables_of_assets(path: str, table: TableName | None) -> None:
    assert table_of(Asset("ducklake", path)) == table
    assert table_of(Asset("s3object", path)) is None
