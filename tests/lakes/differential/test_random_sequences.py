"""Any sequence of operations leaves what a plain model says, and DuckDB sees it at every snapshot.

``PENSTOCK_TEST_EXAMPLES=200`` tries that many random sequences instead of a fixed few.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from penstock.lakes.lake import Lake
from penstock.lakes.snapshot import Snapshot
from tests import duck
from tests.lakes.catalog.conftest import Place
from tests.lakes.differential import model
from tests.lakes.differential.content import (
    assert_feed,
    expected,
    of_spark,
    row_ids,
    theirs,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

_EXAMPLES = os.environ.get("PENSTOCK_TEST_EXAMPLES")
_SETTINGS = settings(
    max_examples=int(_EXAMPLES or 6),
    derandomize=_EXAMPLES is None,
    database=None,
    deadline=None,
    phases=(Phase.generate, Phase.shrink),  # explaining would take minutes
    suppress_health_check=list(HealthCheck),
)

slices = st.sampled_from(["a", "b c/%", "", None])
keys = st.integers(1, 6)
others = st.tuples(
    st.sampled_from([1.5, float("nan"), float("-inf"), None, 2.0]),
    st.sampled_from(["s", "", "é'\"", None]),
)


def rows(
    key: st.SearchStrategy[int | None], value: st.SearchStrategy[str | None], *, unique: bool
) -> st.SearchStrategy[model.State]:
    row = st.builds(lambda k, p, rest: (k, p, *rest), key, value, others)
    unique_by = (lambda state: state[0]) if unique else repr
    return st.lists(row, max_size=5, unique_by=unique_by).map(tuple)


any_rows = rows(st.none() | keys, slices, unique=False)


def in_slice(value: str | None, *, unique: bool = False) -> st.SearchStrategy[model.State]:
    return rows(keys, st.just(value), unique=unique)


operations = st.one_of(
    st.builds(model.Append, any_rows),
    st.builds(model.Merge, rows(keys, slices, unique=True)),
    st.builds(model.Merge, rows(keys, slices, unique=True)),
    slices.flatmap(lambda v: st.builds(model.ReplaceSlice, st.just(v), in_slice(v))),
    slices.flatmap(
        lambda v: st.builds(model.Merge, in_slice(v, unique=True), st.just(True), st.just(v))
    ),
    st.builds(model.Replace, any_rows),
    st.builds(model.DuckDelete, keys),
    st.builds(model.DuckUpdate, keys, st.sampled_from(["u", "w"])),
)


class Tried:
    """One lake with its one table, and what it must hold at each snapshot."""

    def __init__(self, spark: SparkSession, lake: Lake, place: Place) -> None:
        self.spark, self.lake, self.place = spark, lake, place
        self.states: dict[int, model.State] = {}
        self.state: model.State = ()

    def frame(self, state: model.State) -> DataFrame:
        return self.spark.createDataFrame(list(state), model.DDL).coalesce(1)

    def create(self, state: model.State, partition_by: tuple[str, ...]) -> None:
        self.lake.table("t").append(self.frame(state), partition_by=partition_by)
        self.state = self.states[1] = state

    def ours(self, operation: model.Operation) -> Snapshot | None:
        transaction = self.lake.transaction()
        table = transaction.table("t")
        match operation:
            case model.Append(state):
                table.append(self.frame(state))
            case model.Replace(state):
                table.replace(self.frame(state), partition_by=self.partition_by())
            case model.ReplaceSlice(value, state):
                table.replace_slice(self.frame(state), "p", value)
            case model.Merge(state, sliced, value):
                table.merge(self.frame(state), ["k"], slice=("p", value) if sliced else None)
        return transaction.commit()

    def partition_by(self) -> tuple[str, ...]:
        return tuple(field.column for field in self.lake.table("t").info().partition_by)

    def duckdb(self, operation: model.DuckDelete | model.DuckUpdate) -> None:
        with duck.attach(self.place.uri) as connection:
            if isinstance(operation, model.DuckDelete):
                connection.execute("DELETE FROM t WHERE k = ?", [operation.key])
            else:
                values = [operation.text, operation.key]
                connection.execute("UPDATE t SET s = ? WHERE k = ?", values)

    def apply(self, operation: model.Operation) -> None:
        before, last = self.state, self.lake.catalog.latest().id
        self.state = model.after(before, operation)
        if isinstance(operation, model.DuckDelete | model.DuckUpdate):
            self.duckdb(operation)
        else:
            made = self.ours(operation)
            assert (made is None) == (model.bag(before) == model.bag(self.state))
        now = self.lake.catalog.latest().id
        assert now in (last, last + 1)
        self.states[now] = self.state
        if isinstance(operation, model.Merge) and not operation.sliced:
            self.check_row_ids(before, last, now)

    def check_row_ids(self, before: model.State, last: int, now: int) -> None:
        single = model.single_keys(before) & model.single_keys(self.state)
        wanted, ids = (
            row_ids(self.place, "t", "k", version, only=single) for version in (last, now)
        )
        assert ids == wanted

    def check(self) -> None:
        wanted = {v: {"main.t": expected(model.COLUMNS, rows)} for v, rows in self.states.items()}
        assert theirs(self.place) == {0: {}, **wanted}


@_SETTINGS
@given(any_rows, st.sampled_from([(), ("p",)]), st.lists(operations, min_size=2, max_size=4))
def test_any_sequence(
    spark: SparkSession,
    first: model.State,
    partition_by: tuple[str, ...],
    sequence: list[model.Operation],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Place(f"ducklake:sqlite:{Path(folder) / 'meta.sqlite'}", f"{folder}/data/")
        with Lake.attach(place.uri, data_path=place.data_path, spark=spark) as lake:
            tried = Tried(spark, lake, place)
            tried.create(first, partition_by)
            for operation in sequence:
                tried.apply(operation)
                tried.check()
            last = max(tried.states)
            assert of_spark(lake.table("t").to_df()) == expected(model.COLUMNS, tried.state)
            assert_feed(place, "t", 1, last)
