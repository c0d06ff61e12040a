"""Read recorded lakes with Penstock and hold the rows against DuckDB's: many in one Spark job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.lakes.lake import Lake
from tests.lakes.differential import canonical, truth
from tests.lakes.differential.record import Frozen, Reading, Recording

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BATCH = 25  # each join with deletes holds megabytes of the driver until the job ends
_SHOWN = 6  # rows of a difference
_CHANGE_COLUMNS = 3  # snapshot_id, rowid, change_type


@dataclass(frozen=True)
class Finding:
    """One question to which both did not give the same answer."""

    recording: Recording
    frozen: Frozen
    reading: Reading
    problem: str

    def __str__(self) -> str:
        script, statements = self.recording.script, self.recording.script.statements
        at = self.frozen.before
        before = (
            f"before statement {at + 1}, {statements[at].text!r}" if at < len(statements) else ""
        )
        when = before or "at the end"
        return "\n".join(
            [
                f"{script.name} on {self.frozen.home.kind}, written by {self.recording.writer}: "
                f"{self.reading}, {when}",
                self.problem,
                "replay: python -m tests.lakes.differential.replay FILE.sql "
                f"--catalog {self.frozen.home.kind} --writer {self.recording.writer}",
            ]
        )


@dataclass
class _Asked:
    recording: Recording
    frozen: Frozen
    reading: Reading
    df: DataFrame
    kinds: list[Any]

    def finding(self, problem: str) -> Finding:
        return Finding(self.recording, self.frozen, self.reading, problem)


def compare(spark: SparkSession, recordings: Iterable[Recording]) -> list[Finding]:
    """Where Penstock does not read what DuckDB read. Questions DuckDB failed at are left out."""
    findings: list[Finding] = []
    lakes: list[Lake] = []
    try:
        asked = list(_ask_all(spark, recordings, lakes, findings))
        for start in range(0, len(asked), _BATCH):
            findings += _answer(asked[start : start + _BATCH])
    finally:
        for lake in lakes:
            lake.close()
    return findings


def _ask_all(
    spark: SparkSession,
    recordings: Iterable[Recording],
    lakes: list[Lake],
    findings: list[Finding],
) -> Iterator[_Asked]:
    for recording in recordings:
        for frozen in recording.frozen:
            known = [reading for reading in frozen.readings if reading.table is not None]
            if not known:
                continue
            try:
                lake = _open(spark, frozen)
            except Exception as error:
                findings.append(Finding(recording, frozen, known[0], _said(error)))
                continue
            lakes.append(lake)
            for reading in known:
                try:
                    df = _QUESTIONS[reading.what](lake, reading)
                except Exception as error:
                    findings.append(Finding(recording, frozen, reading, _said(error)))
                    continue
                kinds = [field.dataType for field in df.schema.fields]
                yield _Asked(recording, frozen, reading, df, kinds)


def _open(spark: SparkSession, frozen: Frozen) -> Lake:
    return Lake.attach(
        frozen.home.uri,
        data_path=frozen.home.data_path,
        override_data_path=True,
        read_only=True,
        spark=spark,
    )


def _rows(lake: Lake, reading: Reading) -> DataFrame:
    df = lake.table(reading.name).to_df(version=reading.version, row_ids=True)
    return df.select("rowid", *(f"`{n.replace('`', '``')}`" for n in df.columns if n != "rowid"))


def _changes(lake: Lake, reading: Reading) -> DataFrame:
    assert reading.first is not None
    return lake.table(reading.name).changes(reading.first, reading.version)


_QUESTIONS: Mapping[str, Callable[[Lake, Reading], DataFrame]] = {
    "rows": _rows,
    "changes": _changes,
    "view": lambda lake, reading: lake.sql(f"SELECT * FROM {reading.name}"),
    "query": lambda lake, reading: lake.sql(reading.name),
}


def _said(error: BaseException) -> str:
    return f"Penstock said {type(error).__name__}: {str(error)[:600]}"


def _answer(asked: Sequence[_Asked]) -> list[Finding]:
    """The findings of one job; when it fails, those of each half of it."""
    if not asked:
        return []
    try:
        rows = _union([_tagged(question, at) for at, question in enumerate(asked)]).collect()
    except Exception as error:
        if len(asked) == 1:
            return [asked[0].finding(_said(error))]
        half = len(asked) // 2
        return _answer(asked[:half]) + _answer(asked[half:])
    texts: list[list[str]] = [[] for _ in asked]
    for tag, text in rows:
        texts[tag].append(canonical.of_spark(text, asked[tag].kinds))
    pairs = zip(asked, texts, strict=True)
    return [
        question.finding(problem)
        for question, mine in pairs
        if (problem := _problem(question, mine))
    ]


def _tagged(question: _Asked, tag: int) -> DataFrame:
    from pyspark.sql import functions as fn

    return question.df.select(
        fn.lit(tag).alias("tag"), canonical.in_spark(question.df).alias("text")
    )


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    """As a tree: each step plans all that is below it."""
    if len(frames) == 1:
        return frames[0]
    half = len(frames) // 2
    return _union(frames[:half]).union(_union(frames[half:]))


def _problem(question: _Asked, mine: list[str]) -> str | None:
    """What differs from DuckDB's answer, or ``None``."""
    table, moments = question.reading.table, question.recording.moments
    assert table is not None
    moment = moments.get((question.reading.name, question.reading.version))
    if question.reading.what == "rows" and moment is not None and _equals(question, moment, mine):
        return None  # maybe DuckDB knew better when this was the latest snapshot
    shape = _shape(question, table)
    if shape is not None:
        return None if _is_stale(question, table, moment) else shape
    problem = _difference(table, mine)
    if problem is None or question.reading.what != "changes":
        return problem
    known = canonical.of_arrow(table)
    return None if truth.knew_better(question.reading, mine, known, moments) else problem


def _equals(question: _Asked, table: pa.Table, mine: list[str]) -> bool:
    return _shape(question, table) is None and _difference(table, mine) is None


def _shape(question: _Asked, table: pa.Table) -> str | None:
    """How the columns of ``table`` and their types are not those that Penstock has."""
    if list(question.df.columns) != table.column_names:
        return f"columns: DuckDB {table.column_names}, Penstock {question.df.columns}"
    kinds = [
        f"{field.name}: DuckDB {field.type}, Penstock {ours.simpleString()}"
        for field, ours in zip(table.schema, question.kinds, strict=True)
        if not canonical.fits(field.type, ours)
    ]
    return "types: " + "; ".join(kinds) if kinds else None


def _is_stale(question: _Asked, table: pa.Table, moment: pa.Table | None) -> bool:
    """Whether changes have columns that the table no longer had: 1.4.4 keeps them too long.

    It does so with a schema that a failed statement leaves behind.
    """
    if question.reading.what != "changes" or moment is None:
        return False
    system = table.column_names[:_CHANGE_COLUMNS]
    seen = [*((name, None) for name in system), *((f.name, f.type) for f in moment.schema)]
    ours = list(zip(question.df.columns, question.kinds, strict=True))
    fitting = [(name, kind) for name, kind in seen if name != "rowid" or kind is None]
    return [name for name, _ in fitting] == [name for name, _ in ours] and all(
        kind is None or canonical.fits(kind, spark)
        for (_, kind), (_, spark) in zip(fitting, ours, strict=True)
    )


def _difference(table: pa.Table, mine: list[str]) -> str | None:
    known, read = Counter(canonical.of_arrow(table)), Counter(mine)
    if known == read:
        return None
    return "\n".join(
        [
            f"columns {table.column_names}",
            *_excerpt("only DuckDB has", known - read),
            *_excerpt("only Penstock has", read - known),
        ]
    )


def _excerpt(title: str, rows: Counter[str]) -> list[str]:
    if not rows:
        return []
    texts = sorted(rows.elements())
    return [f"{title} {len(texts)} rows:", *(f"  {text[:400]}" for text in texts[:_SHOWN])]
