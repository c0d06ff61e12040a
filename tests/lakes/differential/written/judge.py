"""Hold what DuckDB and Penstock read of a lake against the model: rows, row ids, changes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.lakes.lake import Lake
from tests.lakes.differential import canonical, truth
from tests.lakes.differential.written.model import KEY
from tests.lakes.differential.written.play import Played
from tests.lakes.differential.written.theirs import Question, Span

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BATCH = 25
_SHOWN = 6


@dataclass(frozen=True)
class Finding:
    """``who`` is "play", "DuckDB" or "Penstock"; ``what`` the question, if it was one."""

    played: Played
    who: str
    problem: str
    question: Question | None = None

    def __str__(self) -> str:
        what = f" {self.question}" if self.question else ""
        head = f"{self.played.script.name} on {self.played.home.kind}: {self.who}{what}"
        return f"{head}\n{self.problem}"

    @property
    def kind(self) -> tuple[str, str]:
        """What stays the same when the script is reduced."""
        return self.who, self.question.what if self.question else "play"


@dataclass(frozen=True)
class _Answer:
    """An answer as texts of rows, whoever gave it. ``columns`` are names with types."""

    who: str
    question: Question
    columns: tuple[str, ...]
    rows: list[str]


class Judge:
    """Of one lake. Row ids are learned from the first answer and hold for all others."""

    def __init__(self, played: Played) -> None:
        self._played = played
        self._ids: dict[int, dict[str, str]] = {}  # by table id: the key's text -> the row id's
        self._spans: dict[int, set[Span]] = {}
        for answer in played.answers:
            self._spans.setdefault(answer.question.span.table_id, set()).add(answer.question.span)

    def state(self, table_id: int, version: int) -> pa.Table | None:
        """The model's rows of the table that had this id."""
        states = self._played.states.get(version, {})
        spans = (span for span in self._spans.get(table_id, ()) if span.holds(version))
        return next((states[span.full] for span in spans if span.full in states), None)

    def problem(self, answer: _Answer) -> str | None:
        return (self._rows if answer.question.what == "rows" else self._changes)(answer)

    def _rows(self, answer: _Answer) -> str | None:
        question = answer.question
        wanted = self.state(question.span.table_id, question.version)
        if wanted is None:
            return "the model has no such table then"
        columns = ("rowid", *wanted.column_names)
        names = tuple(column.split("\n")[0] for column in answer.columns)
        if names != columns:
            return f"columns {names[1:]}, in the model {columns[1:]}"
        types = ("rowid\nbigint", *(_column(field) for field in wanted.schema))
        if answer.columns != types:
            return f"types {_shown(answer.columns)}, in the model {_shown(types)}"
        split = [json.loads(row) for row in answer.rows]
        rows = Counter(json.dumps(row[1:]) for row in split)
        known = Counter(canonical.of_arrow(wanted))
        if rows != known:
            return _difference(answer.who, rows, known)
        at = columns.index(KEY)
        return self._row_ids(question, {row[at]: row[0] for row in split})

    def _row_ids(self, question: Question, row_ids: dict[str, str]) -> str | None:
        if len(set(row_ids.values())) < len(row_ids):
            return f"row ids come twice: {row_ids}"
        row_ids = {key: now for key, now in row_ids.items() if int(key) not in self._played.again}
        known = self._ids.setdefault(question.span.table_id, {})
        other = {
            key: (known[key], now) for key, now in row_ids.items() if known.get(key, now) != now
        }
        if other:
            return f"row ids changed, by {KEY}: {other}"
        known.update(row_ids)
        taken = Counter(known.values())
        twice = {key: row_id for key, row_id in known.items() if taken[row_id] > 1}
        return f"row ids were given twice, by {KEY}: {twice}" if twice else None

    def _changes(self, answer: _Answer) -> str | None:
        """Each snapshot's changes must lead from the state before it to its own."""
        question = answer.question
        assert question.first is not None
        span = question.span
        last = self.state(span.table_id, question.version)
        if last is not None:
            wanted = tuple(_column(field) for field in last.schema)
            if answer.columns[3:] != wanted:
                return f"columns {_shown(answer.columns[3:])}, in the model {_shown(wanted)}"
        feeds = truth._by_snapshot(answer.rows)
        outside = [at for at in feeds if not question.first <= at <= question.version]
        if outside:
            return f"changes of snapshots {outside}, which were not asked for"
        wrong = []
        for version in question.held:
            if not question.first <= version <= question.version:
                continue
            if version - 1 not in question.held and version > min(question.held):
                continue  # files that only the expired snapshot had are removed
            moments = self._moments(span, version, question.version)
            feed = feeds.get(version)
            if moments is not None and not truth._is_true(
                feed, answer.columns, "t", version, moments
            ):
                wrong.append(f"changes of snapshot {version}: {_texts(feed or Counter())}")
                wrong += [f"  {at[1]}: {canonical.of_arrow(t)}" for at, t in moments.items()]
        return "\n".join(wrong) or None

    def _moments(
        self, span: Span, version: int, last: int
    ) -> dict[tuple[str, int], pa.Table] | None:
        """The states before and after, with row ids; ``None`` where they are not known.

        Their columns are those that are left at ``last``, by the names that they have then.
        """
        states: dict[tuple[str, int], pa.Table] = {}
        ids = self._ids.get(span.table_id, {})
        names = span.names(last)
        for at in (version - 1, version):
            state = self.state(span.table_id, at)
            if state is None:
                continue
            keys = state.column(KEY).to_pylist()
            if any(str(key) not in ids for key in keys):
                return None
            row_ids = pa.array([int(ids[str(key)]) for key in keys], pa.int64())
            left = {old: names[id_] for id_, old in span.names(at).items() if id_ in names}
            state = state.select(list(left)).rename_columns(list(left.values()))
            states["t", at] = state.add_column(0, "rowid", row_ids)
        return states


def findings(spark: SparkSession, played: Sequence[Played], limit: int | None) -> list[Finding]:
    """All that is wrong. Penstock is asked ``limit`` questions of each lake, many in one job."""
    judges = [Judge(each) for each in played]
    all_findings = [Finding(each, "play", text) for each in played for text in each.problems]
    for each, judge in zip(played, judges, strict=True):
        all_findings += list(_of_duckdb(each, judge))
    return all_findings + list(_of_penstock(spark, judges, limit))


def of_duckdb(played: Played) -> list[Finding]:
    """What is wrong with DuckDB's answers alone."""
    return list(_of_duckdb(played, Judge(played)))


def _of_duckdb(played: Played, judge: Judge) -> Iterator[Finding]:
    rows_first = sorted(played.answers, key=lambda answer: answer.question.what != "rows")
    for answer in rows_first:
        problem: str | None = answer.error
        if answer.table is not None:
            columns = tuple(_column(field) for field in answer.table.schema)
            rows = canonical.of_arrow(answer.table)
            problem = judge.problem(_Answer("DuckDB", answer.question, columns, rows))
        if problem is not None:
            yield Finding(played, "DuckDB", problem, answer.question)


@dataclass
class _Asked:
    judge: Judge
    question: Question
    df: DataFrame
    kinds: list[Any]

    def finding(self, problem: str) -> Finding:
        return Finding(self.judge._played, "Penstock", problem, self.question)


def _of_penstock(
    spark: SparkSession, judges: Iterable[Judge], limit: int | None
) -> Iterator[Finding]:
    lakes: list[Lake] = []
    asked: list[_Asked] = []
    try:
        for judge in judges:
            home = judge._played.home
            lake = Lake.attach(home.uri, data_path=home.data_path, read_only=True, spark=spark)
            lakes.append(lake)
            for question in _chosen(judge._played, limit):
                try:
                    df = _frame(lake, question)
                except Exception as error:
                    yield Finding(judge._played, "Penstock", _said(error), question)
                    continue
                asked.append(_Asked(judge, question, df, [f.dataType for f in df.schema.fields]))
        for start in range(0, len(asked), _BATCH):
            yield from _answered(asked[start : start + _BATCH])
    finally:
        for lake in lakes:
            lake.close()


def _chosen(played: Played, limit: int | None) -> list[Question]:
    """Of what DuckDB answered at the end: rows first, they teach the row ids; the latest first."""
    questions = [answer.question for answer in played.last]
    questions.sort(key=lambda each: (each.what != "rows", -each.version, each.first or 0))
    if limit is None or len(questions) <= limit:
        return questions
    feeds = [each for each in questions if each.what == "changes"]
    return [*questions[: limit - 1], *feeds[:1]]


def _frame(lake: Lake, question: Question) -> DataFrame:
    table = lake.table(question.span.full)
    if question.first is not None:
        return table.changes(question.first, question.version)
    df = table.to_df(version=question.version, row_ids=True)
    return df.select("rowid", *(f"`{name}`" for name in df.columns if name != "rowid"))


def _answered(asked: Sequence[_Asked]) -> Iterator[Finding]:
    """The findings of one job; when it fails, those of each half of it."""
    if not asked:
        return
    from pyspark.sql import functions as fn

    try:
        frames = [
            query.df.select(fn.lit(at).alias("tag"), canonical.in_spark(query.df).alias("text"))
            for at, query in enumerate(asked)
        ]
        rows = _union(frames).collect()
    except Exception as error:
        if len(asked) == 1:
            yield asked[0].finding(_said(error))
            return
        half = len(asked) // 2
        yield from _answered(asked[:half])
        yield from _answered(asked[half:])
        return
    texts: list[list[str]] = [[] for _ in asked]
    for tag, text in rows:
        texts[tag].append(canonical.of_spark(text, asked[tag].kinds))
    for query, answered in zip(asked, texts, strict=True):
        problem = query.judge.problem(_of_spark(query, sorted(answered)))
        if problem is not None:
            yield query.finding(problem)


def _of_spark(query: _Asked, rows: list[str]) -> _Answer:
    columns = tuple(
        f"{name}\n{kind.simpleString()}"
        for name, kind in zip(query.df.columns, query.kinds, strict=True)
    )
    return _Answer("Penstock", query.question, columns, rows)


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    if len(frames) == 1:
        return frames[0]
    half = len(frames) // 2
    return _union(frames[:half]).union(_union(frames[half:]))


def _column(field: pa.Field) -> str:
    return f"{field.name}\n{canonical.arrow_type(field.type)}"


def _shown(columns: Iterable[str]) -> str:
    return ", ".join(column.replace("\n", " ") for column in columns)


def _said(error: BaseException) -> str:
    return f"Penstock said {type(error).__name__}: {str(error)[:600]}"


def _texts(rows: Counter[str]) -> list[str]:
    return sorted(rows.elements())[: 3 * _SHOWN]


def _difference(who: str, rows: Counter[str], known: Counter[str]) -> str:
    lines = []
    for title, extra in ((f"only {who} has", rows - known), ("only the model has", known - rows)):
        if extra:
            texts = sorted(extra.elements())
            lines += [
                f"{title} {len(texts)} rows:",
                *(f"  {text[:400]}" for text in texts[:_SHOWN]),
            ]
    return "\n".join(lines)
