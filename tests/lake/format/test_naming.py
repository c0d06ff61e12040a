"""References, directories, UUIDs."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from penstock.errors import ArgumentError
from penstock.lake.format.naming import TableRef, directory_name, names_of, new_uuid7


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("orders", ("main", "orders")),
        ("s.orders", ("s", "orders")),
        ('"my s"."a.b""c"', ("my s", 'a.b"c')),
        ("s . `o``d`", ("s", "o`d")),
        ("größe", ("main", "größe")),
    ],
)
def test_table_refs(text: str, expected: tuple[str, str]) -> None:
    ref = TableRef.parse(text)
    assert (ref.schema, ref.name) == expected


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", "a.b.c", 'a"b', '""', "a b", '"a" b'])
def test_what_is_no_table(text: str) -> None:
    with pytest.raises(ArgumentError):
        TableRef.parse(text)


@pytest.mark.parametrize(
    ("name", "plain"), [("orders", True), ("a-B_1", True), ("my t", False), ("é", False)]
)
def test_directories(name: str, plain: bool) -> None:
    assert directory_name(name, "some-uuid") == (f"{name}/" if plain else "some-uuid/")


def test_uuid7() -> None:
    made = [uuid.UUID(new_uuid7()) for _ in range(100)]
    assert {(u.version, u.variant) for u in made} == {(7, uuid.RFC_4122)}
    assert len(set(made)) == 100
    stamps = [u.int >> 80 for u in made]
    assert stamps == sorted(stamps)


def test_a_text_is_one_name() -> None:
    assert names_of("order_id", "keys") == ("order_id",)
    assert names_of(["a", "b"], "keys") == ("a", "b")
    assert names_of((), "keys") == ()


@pytest.mark.parametrize("value", [None, 3, [1], [""], ""])
def test_what_are_no_names(value: Any) -> None:
    with pytest.raises(ArgumentError, match="keys takes names"):
        names_of(value, "keys")
