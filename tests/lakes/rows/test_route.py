"""Which way a change of rows goes, by what is known of it.

Tests ``lakes/rows/change.py``, ``lakes/format/values/bounds.py``.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.lakes.limits import Limits
from penstock.lakes.rows.change import Clause, Condition, Keys, On, RowChange
from penstock.lakes.rows.route import Facts, Way, changed_rows, collected_rows, route

LIMITS = Limits(
    compared_rows=100,
    scanned_rows=1_000,
    joined_rows=500,
    scanned_files=10,
    source_keys=50,
    source_rows=30,
    source_bytes=1_000,
    changed_rows=70,
    partitioned_rows=20,
    collected_values=90,
    collected_bytes=600,
)
SOME = Condition.of("k = 1")
DELETE, UPDATE = RowChange.delete(SOME), RowChange.update(SOME, {"v": "1"})
UPSERT = RowChange(Keys(("k",)), (Clause("matched", "update"), Clause("not matched", "insert")))
METADATA, DRIVER, KEYS, SPARK = Way.METADATA, Way.DRIVER, Way.KEYS, Way.SPARK


@pytest.mark.parametrize(
    ("change", "facts", "way"),
    [
        (RowChange.delete(Condition()), Facts(files=9, rows=9_999), METADATA),
        (RowChange.update(Condition(), {"v": "1"}), Facts(files=1, computable=False), SPARK),
        (DELETE, Facts(files=0), METADATA),  # the catalog knows of each file that all rows go
        (UPDATE, Facts(files=0), METADATA),  # or that none does
        (DELETE, Facts(files=0, inlined=True), DRIVER),
        (UPDATE, Facts(files=0, inlined=True, flat=False), SPARK),
        (DELETE, Facts(files=10, rows=1_000), DRIVER),
        (DELETE, Facts(files=11, rows=1_000), SPARK),
        (DELETE, Facts(files=10, rows=1_001), SPARK),
        (DELETE, Facts(files=1, computable=False), SPARK),
        (DELETE, Facts(files=1, by_field_id=False), SPARK),
        (DELETE, Facts(files=1, inlined=True), DRIVER),
        (DELETE, Facts(files=1, small_deletes=False), SPARK),
        (DELETE, Facts(files=1, flat=False), DRIVER),
        (UPDATE, Facts(files=1, flat=False), SPARK),
        (UPDATE, Facts(files=1, staged=True, fresh=True, partitioned=True), DRIVER),
    ],
)
def test_by_condition(change: RowChange, facts: Facts, way: Way) -> None:
    assert route(change, facts, LIMITS) is way


@pytest.mark.parametrize(
    ("odd", "small", "large"),
    [
        ({}, DRIVER, DRIVER),
        ({"readable": False}, SPARK, DRIVER),
        ({"comparable": False}, SPARK, KEYS),
        ({"mixed": True}, SPARK, SPARK),
        ({"complete": False}, SPARK, SPARK),
        ({"fresh": True}, SPARK, DRIVER),  # rows without ids that are not in files are inlined
        ({"inlined": True}, DRIVER, SPARK),
        ({"staged": True}, DRIVER, SPARK),
        ({"byte_keys": False}, DRIVER, SPARK),
        ({"fixed_keys": False}, DRIVER, DRIVER),
        ({"fixed_keys": False, "source_rows": 31}, DRIVER, SPARK),
        ({"by_field_id": False, "readable": False}, SPARK, SPARK),
        ({"partitioned": True}, DRIVER, KEYS),
        ({"source_rows": 50}, DRIVER, KEYS),
        ({"source_rows": 51}, DRIVER, SPARK),
        ({"source_rows": 31}, DRIVER, KEYS),
        ({"source_rows": 30, "source_bytes": 1_000}, DRIVER, DRIVER),
        ({"source_rows": 30, "source_bytes": 1_001}, DRIVER, KEYS),
        ({"small_deletes": False, "readable": False}, SPARK, SPARK),
        ({"files": 11}, DRIVER, SPARK),
    ],
)
def test_merges_by_key(odd: dict[str, bool | int], small: Way, large: Way) -> None:
    for rows, way in ((100, small), (101, large)):
        facts = Facts(**{"files": 1, "live_rows": rows, **odd})  # type: ignore[arg-type] # by name
        assert route(UPSERT, facts, LIMITS) is way


WHOLE = Facts(files=5, live_rows=60, rows=60, row_bytes=10, readable=False)


@pytest.mark.parametrize(
    "facts",
    [replace(WHOLE, live_rows=61), replace(WHOLE, files=6), replace(WHOLE, rows=61)],
    ids=["rows", "files", "bytes"],
)
def test_a_target_that_arrow_does_not_read_at_once(facts: Facts) -> None:
    """Its keys are looked up, though all that match are compared."""
    limits = replace(LIMITS, table_rows=60, table_files=5, table_bytes=600)
    assert route(UPSERT, WHOLE, limits) is SPARK
    assert route(UPSERT, facts, limits) is DRIVER
    assert route(UPSERT, replace(facts, mixed=True), limits) is SPARK


@pytest.mark.parametrize(
    ("rows", "streams", "way"),
    [(1_000, True, DRIVER), (1_001, True, SPARK), (500, False, DRIVER), (501, False, SPARK)],
)
def test_how_large_a_target_may_be(rows: int, streams: bool, way: Way) -> None:
    assert route(UPSERT, Facts(files=1, live_rows=rows, streams=streams), LIMITS) is way


@pytest.mark.parametrize(
    ("facts", "changed", "collected"),
    [
        (Facts(), 70, 90),
        (Facts(columns=3), 70, 30),
        (Facts(row_bytes=60), 70, 10),
        (Facts(partitioned=True), 20, 20),
        (Facts(flat=False), 70, 0),
    ],
)
def test_how_many_rows_the_driver_writes(facts: Facts, changed: int, collected: int) -> None:
    assert (changed_rows(facts, LIMITS), collected_rows(facts, LIMITS)) == (changed, collected)


def test_any_other_merge_is_left_to_spark() -> None:
    change = RowChange(On.of("t.k > s.k"), UPSERT.clauses)
    assert route(change, Facts(files=1), LIMITS) is SPARK
