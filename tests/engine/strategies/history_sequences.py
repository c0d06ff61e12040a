"""Sequences of loads by chance, and what the strategy makes of many of them in one table each run.

The number of a sequence is a part of the key, so that sequences do not meet and Spark computes a
load of all of them in one go.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.engine.strategies import history as strategy
from penstock.engine.strategies.target import WriteTarget
from penstock.lakes.lake import Lake
from penstock.model.values.history import History
from tests.engine.strategies import history_reference as reference

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Load = list[dict[str, Any]]
BEGIN = datetime(2024, 1, 1)  # noqa: DTZ001 - a source's timestamps have no zone
LOADS = 4
_VALUES = (None, "a", "b")

#: the forms, by what they are called
FORMS: dict[str, History] = {
    "by time": History(by_time=True, updated_at="at", start="epoch"),
    "by time, closing": History(
        by_time=True, updated_at="at", start="updated_at", closes=True, max_closed=100
    ),
    "by column": History(track=("a",), closes=True, max_closed=100, is_current="is_current"),
    "by column, timed": History(
        updated_at="at", track=("a", "b"), start="epoch", closes=True, max_closed=100
    ),
}


def now_of(number: int) -> datetime:
    """When the load of this number is run: days after the first that a row may be of."""
    return BEGIN + timedelta(days=6 + 2 * number)


def sequence(seed: int, form: History) -> list[Load]:
    """Some loads of up to three keys; with times a load may have several rows of a key."""
    choose = random.Random(seed)
    return [list(_load(choose, form)) for _ in range(LOADS)]


def _load(choose: random.Random, form: History) -> Iterator[dict[str, Any]]:
    for key in range(3):
        if form.updated_at is None:
            moments: list[datetime | None] = [None] * choose.choice((0, 1, 1))
        else:
            days = choose.sample(range(16), choose.choice((0, 1, 1, 1, 2, 3)))
            moments = [BEGIN + timedelta(days=each) for each in days]
        for moment in moments:
            row = {"id": key, "a": choose.choice(_VALUES), "b": choose.choice(_VALUES)}
            yield row if moment is None else {**row, "at": moment}


def rules_of(form: History) -> reference.Rules:
    timed = form.updated_at is not None
    track = form.track or ("a", "b")
    return reference.Rules(form.by_time, timed, track, form.closes, form.start)


def expected(loads: Sequence[Load], form: History) -> list[tuple[Any, ...]]:
    made = reference.History(rules_of(form))
    for number, load in enumerate(loads):
        made.load(load, now_of(number))
    return reference.rows_of(made)


class Table:
    """One table of a lake that all sequences of one form are loaded into."""

    def __init__(self, spark: SparkSession, folder: Path, form: History) -> None:
        self.form = form
        self._spark = spark
        catalog = f"ducklake:sqlite:{folder}/meta.sqlite"
        self.fingerprint: str | None = None
        self.lake = Lake.attach(catalog, data_path=f"{folder}/data", spark=spark)

    def load(self, number: int, rows: Sequence[tuple[int, dict[str, Any]]]) -> int | None:
        """Load these rows, each of a sequence; the snapshot, None where nothing was to change.

        The load before is known by its fingerprint, unless that is set to None.
        """
        timed = ", at TIMESTAMP_NTZ" if self.form.updated_at else ""
        data = [(seq, *row.values()) for seq, row in rows]
        df = self._spark.createDataFrame(data, f"seq INT, id INT, a STRING, b STRING{timed}")
        keys, now = (("seq", "`seq`"), ("id", "`id`")), now_of(number).replace(tzinfo=UTC)
        options = strategy.Options(self.form, keys, now)
        into = WriteTarget(options, known_fingerprint=self.fingerprint)
        with self.lake.transaction() as tx:
            self.fingerprint = strategy.stage(tx.table("t"), df, into).fingerprint
            snapshot = tx.commit()
        return None if snapshot is None else snapshot.id

    def rows(self) -> dict[int, list[tuple[Any, ...]]]:
        """The versions of each sequence, as the reference has them."""
        made: dict[int, list[tuple[Any, ...]]] = {}
        at = ", at" if self.form.updated_at else ""
        found = self.lake.sql(f"SELECT seq, id, a, b{at}, valid_from, valid_to FROM t")
        for row in found.collect():
            made.setdefault(row["seq"], []).append(tuple(row)[1:])
        return {seq: sorted(rows, key=repr) for seq, rows in made.items()}


def run(spark: SparkSession, folder: Path, form: History, seeds: Sequence[int]) -> Table:
    """Load the sequences of these seeds, and the last load twice, which makes no snapshot."""
    table = Table(spark, folder, form)
    sequences = {seed: sequence(seed, form) for seed in seeds}
    for number in range(LOADS):
        rows = [(seed, row) for seed in seeds for row in sequences[seed][number]]
        table.load(number, rows)
    assert table.load(LOADS, rows[::-1]) is None, "the same load later makes no snapshot"
    table.fingerprint = None
    assert table.load(LOADS + 1, rows) is None, "nor when it is compared with what is there"
    return table


def faults(table: Table, seeds: Sequence[int]) -> dict[int, tuple[Any, Any]]:
    """The sequences that came out other than by the reference: what was made, what was to be."""
    made = table.rows()
    wanted = {seed: expected(sequence(seed, table.form), table.form) for seed in seeds}
    return {
        seed: (made.get(seed, []), wanted[seed])
        for seed in seeds
        if made.get(seed, []) != wanted[seed]
    }
