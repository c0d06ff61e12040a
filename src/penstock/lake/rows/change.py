"""A change of rows as a value: DELETE, UPDATE, MERGE, merge by key and replacing where; and the
builder of a MERGE, shaped as Delta's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from penstock.errors import UnsupportedFeature
from penstock.sql.dialect import for_spark, hinted, if_text, texts_in
from penstock.sql.text import SqlExpression, as_expression

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from penstock.lake.reading.scan import Scan
    from penstock.sql.conditions import Predicate

Result = TypeVar("Result")
Kind = Literal["matched", "not matched", "not matched by source"]
Action = Literal["update", "delete", "insert"]


@dataclass(frozen=True, slots=True)
class Clause:
    """One WHEN. Of the clauses of a kind the first whose condition is true applies to a row.

    ``values`` are by column of the target: SQL text, a Column or another value; ``None``
    for all columns that the source has by name (``UPDATE *``, ``INSERT *``).
    """

    kind: Kind
    action: Action
    condition: str | SparkColumn | None = None
    values: Mapping[str, object] | None = None

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
