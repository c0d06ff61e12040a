"""Which names a file's columns go by, where the catalog gives it no mapping of its own."""

from __future__ import annotations

import pytest

from penstock.errors import UnsupportedFeature
from penstock.lakes.format.files import NameMapping
from penstock.lakes.format.schema import Column, TableSchema
from penstock.lakes.reading.parquet.columns import in_force

NOW = TableSchema((Column("id", "int32", 1), Column("w", "varchar", 2)))
THEN = NameMapping(-5, {("k",): 1, ("v",): 2}, unless_ids=True)


def mapping(
    registered: NameMapping | None, *names: str, has_ids: bool = False
) -> NameMapping | None:
    return in_force(registered, NOW, "/f.parquet", has_ids=has_ids, names=names)


def test_names_of_the_time_count_only_without_ids() -> None:
    assert mapping(THEN, "K", "v") == THEN
    assert mapping(THEN, "k", "v", has_ids=True) is None


def test_a_mapping_of_the_catalog_stays() -> None:
    own = NameMapping(7, {("k",): 1})
    assert mapping(own, "k", "more", has_ids=True) == own
    assert mapping(None, "k") is None


def test_columns_beside_the_table_s_are_passed_over() -> None:
    assert mapping(THEN, "k", "v", "more") == THEN


def test_names_that_are_no_longer_on_record_are_refused() -> None:
    expired = NameMapping(-5, {("k",): 1}, unless_ids=True)
    with pytest.raises(UnsupportedFeature, match=r"/f\.parquet has no field ids.*'v'"):
        mapping(expired, "k", "v")
