"""A change of rows as a value (DELETE, UPDATE, MERGE, merge by key and replacing where), with the
builder of a MERGE, shaped as Delta's; and the rows that it matched, as the finders hand them to the
stager: by their addresses, and where the driver has them with the values that they get.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from penstock.errors import UnsupportedFeature
from penstock.lakes.format.files import DataFile
from penstock.lakes.reading.deleted.positions import RowAddresses, combined
from penstock.lakes.reading.scan import FILE, POSITION, ROW_ID, Scan
from penstock.lazy import pa, pc
from penstock.spark.functions import arrow_frame
from penstock.sql.dialect import for_spark, hinted, if_text, texts_in
from penstock.sql.text import SqlExpression, as_expression

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

    from penstock.sql.text import Predicate

Result = TypeVar("Result")
Kind = Literal["matched", "not matched", "not matched by source"]
Action = Literal["update", "delete", "insert"]


@dataclass(frozen=True, slots=True)
class Clause:
    """One WHEN. Of the clauses of a kind the first whose condition is true applies to a row.

    ``values`` are by column of the target: SQL text, a Column or another value; ``None``
    for all columns that the source has by name (``UPDATE *``, ``INSERT *``). ``rounds``: those with
    a fraction are rounded for a column of whole numbers, as in DuckDB; else cut, as Spark's cast.
    """

    kind: Kind
    action: Action
    condition: str | SparkColumn | None = None
    values: Mapping[str, object] | None = None
    rounds: bool = True

    def for_spark(self) -> Clause:
        """With names in double quotes in backticks."""
        values = None if self.values is None else texts_in(self.values)
        return replace(self, condition=if_text(self.condition), values=values)


@dataclass(frozen=True, slots=True)
class Condition:
    """The target's rows for which ``where`` is true, all without a condition.

    ``where`` is an expression or a Column, over nothing but the target's columns and ``args``.
    ``selected`` has Spark select the rows of a scan with their places, for an UPDATE with their new
    values too. It alone says which rows they are where a statement names more than that, other
    tables say; then ``files`` says which files may hold some. It does so too where that is known
    better than by the condition's text, as ``others`` is what rows satisfy for which it is not
    true. Without ``once`` it may give a row twice.
    """

    where: SqlExpression | SparkColumn | None = None
    selected: Callable[[Scan], DataFrame] | None = None
    files: Predicate | None = None
    others: Predicate | None = None
    once: bool = True
    args: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, where: str | SparkColumn | None) -> Condition:
        """A condition as methods take it: SQL text, a Column or none."""
        return cls(as_expression(if_text(where)) if isinstance(where, str) else where)

    @property
    def for_spark(self) -> str | SparkColumn | None:
        """``where`` as DataFrames take it."""
        return self.where.text if isinstance(self.where, SqlExpression) else self.where

    @property
    def is_all(self) -> bool:
        return self.where is None and self.selected is None


@dataclass(frozen=True, slots=True)
class Keys:
    """Rows of both sides match that have the same values in these columns, which are unique in the
    source. Several rows of the target with one key become one row if ``one_row``.
    """

    names: tuple[str, ...]
    one_row: bool = True


@dataclass(frozen=True, slots=True)
class On:
    """Rows of both sides match for which ``condition`` is true; it names them by their aliases."""

    condition: SqlExpression | SparkColumn
    target: str = "t"
    source: str = "s"

    @classmethod
    def of(cls, condition: str | SparkColumn, target: str = "t", source: str = "s") -> On:
        """A condition as methods take it: SQL text or a Column."""
        on = as_expression(condition) if isinstance(condition, str) else condition
        return cls(on, target, source)

    def for_spark(self) -> On:
        """With names in double quotes in backticks."""
        if not isinstance(self.condition, SqlExpression):
            return self
        return replace(self, condition=as_expression(for_spark(self.condition.text)))


@dataclass(frozen=True, slots=True)
class RowChange:
    """A change of the rows of a table, the target, whoever asks for it and in which words.

    ``match`` says which rows of the target it is about, or which of them belong to which of the
    ``source``; ``clauses`` what becomes of those. An UPDATE's new values are None where only
    ``match.selected`` knows them. ``slice`` bounds a merge by key to the rows with this value in
    this column. With ``evolve`` the columns that the source has beside the target's are added to
    it, where a clause takes all columns.
    """

    match: Condition | Keys | On
    clauses: tuple[Clause, ...] = ()
    source: DataFrame | None = None
    slice: tuple[str, object] | None = None
    evolve: bool = False

    @classmethod
    def delete(cls, match: Condition) -> RowChange:
        return cls(match, (Clause("matched", "delete"),))

    @classmethod
    def update(cls, match: Condition, values: Mapping[str, object] | None) -> RowChange:
        return cls(match, (Clause("matched", "update", values=values),))

    @classmethod
    def overwrite(cls, source: DataFrame, match: Condition) -> RowChange:
        """The matching rows go, and all of the source's, which match too, come."""
        clauses = (Clause("matched", "delete"), Clause("not matched", "insert"))
        return cls(match, clauses, source)

    @classmethod
    def upsert(
        cls, source: DataFrame, keys: Keys, slice_of: tuple[str, object] | None = None
    ) -> RowChange:
        """Rows are updated where they match, else inserted."""
        clauses = (Clause("matched", "update"), Clause("not matched", "insert"))
        return cls(keys, clauses, source, slice_of)

    @property
    def on(self) -> On:
        """The match of a MERGE by a condition over both sides."""
        assert isinstance(self.match, On), "asked of others"
        return self.match

    @property
    def rows(self) -> DataFrame:
        """The source, where there is one."""
        assert self.source is not None, "asked of others"
        return self.source

    @property
    def deletes(self) -> bool:
        """Return whether the matching rows go."""
        return any(
            clause.kind == "matched" and clause.action == "delete" for clause in self.clauses
        )

    def of(self, kind: Kind) -> tuple[Clause, ...]:
        return tuple(clause for clause in self.clauses if clause.kind == kind)

    @property
    def takes_all(self) -> bool:
        """Return whether a clause takes all columns of the source."""
        return any(clause.values is None and clause.action != "delete" for clause in self.clauses)

    @property
    def only_deletes(self) -> bool:
        """Return whether what matches is deleted, whatever matches it: then it may match often."""
        matched = self.of("matched")
        return bool(matched) and matched[0].action == "delete" and matched[0].condition is None

    def texts(self) -> Iterator[object]:
        """Its conditions and values."""
        if isinstance(self.match, On) and isinstance(self.match.condition, SqlExpression):
            yield self.match.condition.text
        for clause in self.clauses:
            yield from (clause.condition, *(clause.values or {}).values())

    def for_spark(self) -> RowChange:
        """With names in double quotes in backticks."""
        clauses = tuple(clause.for_spark() for clause in self.clauses)
        match = self.match.for_spark() if isinstance(self.match, On) else self.match
        return replace(self, match=match, clauses=clauses)

    def check(self) -> None:
        """Raise UnsupportedFeature for a MERGE without a clause, or with one that never applies."""
        if not self.clauses:
            raise UnsupportedFeature(
                "a MERGE without a WHEN clause", hint="say what happens to rows that match or not"
            )
        for at, clause in enumerate(self.clauses):
            later = [other for other in self.clauses[at + 1 :] if other.kind == clause.kind]
            if clause.condition is None and later:
                raise UnsupportedFeature(
                    f"a WHEN {clause.kind.upper()} clause after one without a condition, which "
                    "takes all rows",
                    hint="give the earlier one a condition, or put it last",
                )


@dataclass(frozen=True, slots=True)
class MergeBuilder(Generic[Result]):
    """Collects the clauses of a MERGE; nothing happens before `execute`."""

    change: RowChange
    finish: Callable[[RowChange], Result]

    def when_matched_update(
        self,
        condition: str | SparkColumn | None = None,
        set: Mapping[str, object] | None = None,  # noqa: A002 - Delta's name
    ) -> MergeBuilder[Result]:
        """New values, by column, for target rows that match; ``set`` sees both sides."""
        return self._with(Clause("matched", "update", condition, dict(set or {})))

    def when_matched_update_all(
        self, condition: str | SparkColumn | None = None
    ) -> MergeBuilder[Result]:
        """All columns that the source has get its values."""
        return self._with(Clause("matched", "update", condition))

    def when_matched_delete(
        self, condition: str | SparkColumn | None = None
    ) -> MergeBuilder[Result]:
        return self._with(Clause("matched", "delete", condition))

    def when_not_matched_insert(
        self,
        condition: str | SparkColumn | None = None,
        values: Mapping[str, object] | None = None,
    ) -> MergeBuilder[Result]:
        """A new row; columns that ``values`` lacks get their default, or NULL."""
        return self._with(Clause("not matched", "insert", condition, dict(values or {})))

    def when_not_matched_insert_all(
        self, condition: str | SparkColumn | None = None
    ) -> MergeBuilder[Result]:
        return self._with(Clause("not matched", "insert", condition))

    def when_not_matched_by_source_update(
        self,
        condition: str | SparkColumn | None = None,
        set: Mapping[str, object] | None = None,  # noqa: A002 - Delta's name
    ) -> MergeBuilder[Result]:
        """New values for target rows that no source row matches."""
        return self._with(Clause("not matched by source", "update", condition, dict(set or {})))

    def when_not_matched_by_source_delete(
        self, condition: str | SparkColumn | None = None
    ) -> MergeBuilder[Result]:
        return self._with(Clause("not matched by source", "delete", condition))

    def with_schema_evolution(self) -> MergeBuilder[Result]:
        """Columns that only the source has are added to the target."""
        return replace(self, change=replace(self.change, evolve=True))

    def execute(self) -> Result:
        """Merge. Raises MergeKeyError when several source rows match a target row."""
        with hinted(*self.change.texts()):
            return self.finish(self.change.for_spark())

    def _with(self, clause: Clause) -> MergeBuilder[Result]:
        return replace(self, change=replace(self.change, clauses=(*self.change.clauses, clause)))


Positions = Mapping[str, "pa.Int64Array"]  # by FILE: each once, in order


@dataclass(frozen=True, slots=True)
class MatchedRows:
    """Rows of a table, each once: of files by place, inlined ones by id.

    ``places`` has FILE and POSITION: a mapping where the driver has them. ``asked`` counts the rows
    that were asked for, with repetitions. ``values`` has all columns of rows that are updated, in
    any order, and ``ids`` their row ids, NULL or negative of rows that this transaction wrote.
    """

    places: DataFrame | Positions = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    inlined: tuple[int, ...] = ()
    asked: int = 0
    values: pa.Table | None = None
    ids: pa.ChunkedArray | None = None
    persisted: DataFrame | None = None  # what is to be released

    @property
    def total(self) -> int:
        return sum(self.counts.values()) + len(self.inlined)

    def release(self) -> None:
        if self.persisted is not None:
            self.persisted.unpersist()

    @classmethod
    def of(
        cls, positions: Positions, inlined: tuple[int, ...] = (), asked: int | None = None
    ) -> MatchedRows:
        counts = {key: len(own) for key, own in positions.items()}
        known = sum(counts.values()) + len(inlined)
        return cls(positions, counts, inlined, known if asked is None else asked)

    @classmethod
    def numbered(cls, numbers: RowAddresses, rows: pa.Table, column: str) -> MatchedRows:
        """The rows that were collected by their numbers, those of no file by ROW_ID."""
        of_files = rows[column].drop_null()
        return cls.of(numbers.by_file(of_files), _inlined(rows, column), rows.num_rows)

    @classmethod
    def named(cls, rows: pa.Table) -> MatchedRows:
        """The rows of FILE, POSITION and ROW_ID that were collected."""
        inlined, places = _inlined(rows, FILE), rows.select([FILE, POSITION])
        of_files = places.filter(pc.is_valid(places[FILE])) if inlined else places
        return cls.of(by_file(of_files), inlined, rows.num_rows)

    @classmethod
    def of_files(cls, source: Scan, parts: Sequence[FileRows]) -> MatchedRows:
        """Rows of ``source`` that were found file by file."""
        keys = source.keys()
        places: dict[str, list[pa.Int64Array]] = {}
        for part in parts:
            if len(part.positions):
                places.setdefault(keys.key(part.file.path), []).append(part.positions)
        return cls.of({key: pa.concat_arrays(own) for key, own in places.items()})

    def with_inlined(self, ids: Sequence[int]) -> MatchedRows:
        """With these rows of the catalog too, each of them once."""
        inlined = tuple(sorted((*self.inlined, *ids)))
        return replace(self, inlined=inlined, asked=self.asked + len(ids))

    def with_values(self, values: pa.Table, ids: pa.ChunkedArray) -> MatchedRows:
        return replace(self, values=values, ids=ids)


@dataclass(frozen=True, slots=True)
class FileRows:
    """Rows of one file, in its order, not deleted before. ``embedded`` are the ids that the file
    has for them; ``values`` their new values; ``matched`` the places of the source's rows that
    match them.
    """

    file: DataFile
    positions: pa.Int64Array
    embedded: pa.Array | None = None
    values: pa.Table | None = None
    matched: pa.Int64Array | None = None

    @property
    def ids(self) -> pa.Int64Array:
        """The row ids; NULL in a file of this transaction that embeds none."""
        counted = pc.add(self.positions, pa.scalar(self.file.row_id_start, pa.int64()))
        return counted if self.embedded is None else pc.coalesce(self.embedded, counted)

    def some(self, which: slice | pa.BooleanArray) -> FileRows:
        """Some of them, by their places here or by a mask. They have no values yet."""

        def pick(column: pa.Array | None) -> pa.Array | None:
            if column is None:
                return None
            return column[which] if isinstance(which, slice) else column.filter(which)

        assert self.values is None, "rows are picked before they get values"
        positions = pick(self.positions)
        return replace(
            self, positions=positions, embedded=pick(self.embedded), matched=pick(self.matched)
        )


def _inlined(rows: pa.Table, place: str) -> tuple[int, ...]:
    """The ids of the rows that are in no file."""
    if not rows[place].null_count:
        return ()
    return tuple(sorted(set(rows.filter(pc.is_null(rows[place]))[ROW_ID].to_pylist())))


def by_file(places: pa.Table) -> dict[str, pa.Int64Array]:
    """The positions by FILE, each once and in order."""
    codes = pc.dictionary_encode(places[FILE]).combine_chunks()
    rows = pa.table({"file": codes.indices, "pos": combined(places[POSITION])})
    rows = rows.sort_by([("file", "ascending"), ("pos", "ascending")]).combine_chunks()
    positions, start = {}, 0
    for run in pc.value_counts(rows["file"]).to_pylist():  # in the order of the rows
        own = combined(rows["pos"].slice(start, run["counts"]))
        start += run["counts"]
        positions[codes.dictionary[run["values"]].as_py()] = _once(own)
    return positions


def _once(ordered: pa.Int64Array) -> pa.Int64Array:
    if len(ordered) < 2:
        return ordered
    news = pc.not_equal(ordered.slice(1), ordered.slice(0, len(ordered) - 1))
    return ordered if pc.all(news).as_py() else pc.unique(ordered)


def collected(places: DataFrame) -> dict[str, pa.Int64Array]:
    """FILE and POSITION, which are not NULL and may repeat, collected."""
    return by_file(places.select(FILE, POSITION).toArrow())


def frame_of(spark: SparkSession, positions: Positions) -> DataFrame:
    """FILE and POSITION as a DataFrame."""
    files = [pa.repeat(pa.scalar(key), len(own)) for key, own in positions.items()]
    table = {
        FILE: pa.chunked_array(files, pa.string()),
        POSITION: pa.chunked_array(list(positions.values()), pa.int64()),
    }
    return arrow_frame(spark, pa.table(table))


def row_ids(
    source: Scan,
    keys: Sequence[str],
    files: pa.ChunkedArray,
    positions: pa.ChunkedArray,
    embedded: pa.ChunkedArray,
) -> pa.ChunkedArray:
    """The id that a row has embedded, else its file's first plus its position; NULL for none.

    ``files`` are places in ``keys``, NULL of inlined rows, whose ids are embedded.
    """
    own = source.keys()
    first = {own.key(file.path): file.row_id_start for file in source.files.files}
    starts = pa.array([first.get(key) for key in keys], pa.int64())
    counted = pc.add(pc.take(starts, files), positions.cast(pa.int64()))
    return pc.coalesce(embedded.cast(pa.int64()), counted)
