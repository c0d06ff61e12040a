"""Models that read each other, with what they are made from; `input_hunt` tries thousands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import duck
from tests.engine.strategies import input_sequences as sequences

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BY_DUCKDB, BY_SPARK, ACTIONS = range(8), range(100, 101), 4


@pytest.mark.parametrize("seed", BY_DUCKDB)
def test_what_is_planned_and_named_is_right(tmp_path: Path, seed: int) -> None:
    """DuckDB makes the rows: see `input_runs`."""
    duck.required()
    assert sequences.wrong(None, tmp_path / "s", seed, ACTIONS) is None


def test_batches_that_are_made_again_with_the_same_rows(tmp_path: Path) -> None:
    """Of two days made at once again, the reader of the first is not behind the second."""
    duck.required()
    assert sequences.wrong(None, tmp_path / "s", 42) is None


def test_slices_after_those_of_ranges(tmp_path: Path) -> None:
    """A plain run made the day after them from rows that went away since."""
    duck.required()
    assert sequences.wrong(None, tmp_path / "s", 115) is None


def test_slices_of_the_future_that_read_the_one_before(tmp_path: Path) -> None:
    """One that is not over yet is not waited for."""
    duck.required()
    assert sequences.wrong(None, tmp_path / "s", 7012) is None


def test_appends_keep_rows_that_their_input_has_not_any_more(tmp_path: Path) -> None:
    """What reads them fails until somebody deletes them there."""
    duck.required()
    assert sequences.wrong(None, tmp_path / "s", 8013) is None


def test_the_first_slice_of_an_input_without_a_start_is_made_for_its_reader(tmp_path: Path) -> None:
    """The reader's first day begins in another zone, within the day before those of the range."""
    duck.required()
    assert sequences.wrong(None, tmp_path / "s", 930297) is None


def test_a_slice_that_is_made_again_after_a_rollback(tmp_path: Path) -> None:
    """It is not changed outside, though others changed the rows of its earlier run."""
    duck.required()
    assert sequences.wrong(None, tmp_path / "s", 930558) is None


@pytest.mark.parametrize("seed", BY_SPARK)
def test_sequences_come_out_as_by_the_reference(
    tmp_path: Path, spark: SparkSession, seed: int
) -> None:
    duck.required()
    assert sequences.wrong(spark, tmp_path / "s", seed, ACTIONS) is None
