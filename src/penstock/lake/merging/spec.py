"""A MERGE as a value, and the builder of one, shaped as Delta's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from penstock.errors import UnsupportedFeature
from penstock.sql.quoting import hinted, if_text, texts_in

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

Result = TypeVar("Result")
Kind = Literal["matched", "not matched", "not matched by source"]
Action = Literal["update", "delete", "insert"]


@dataclass(frozen=True, slots=True)
class Clause:
    """One WHEN. Of the clauses of a kind the first whose condition is true applies to a row.

    ``values`` are by column of the target: SQL text, a Column or a value that is no text; ``None``
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
class MergeSpec:
    """A MERGE of ``source``: its rows and the target's match where ``on`` is true.

    With ``evolve`` the columns that the source has beside the target's are added to it, where a
    clause takes all columns.
    """

    source: DataFrame
    on: str | SparkColumn
    clauses: tuple[Clause, ...] = ()
    target_alias: str = "t"
    source_alias: str = "s"
    evolve: bool = False

    def of(self, kind: Kind) -> tuple[Clause, ...]:
        return tuple(clause for clause in self.clauses if clause.kind == kind)

    @property
    def takes_all(self) -> bool:
        """Whether a clause takes all columns of the source."""
        return any(one.values is None and one.action != "delete" for one in self.clauses)

    @property
    def only_deletes(self) -> bool:
        """Whether what matches is deleted, whatever matches it: then it may match often."""
        matched = self.of("matched")
        return bool(matched) and matched[0].action == "delete" and matched[0].condition is None

    def texts(self) -> Iterator[object]:
        """Its conditions and values."""
        yield self.on
        for clause in self.clauses:
            yield from (clause.condition, *(clause.values or {}).values())

    def for_spark(self) -> MergeSpec:
        """With names in double quotes in backticks."""
        clauses = tuple(clause.for_spark() for clause in self.clauses)
        return replace(self, on=if_text(self.on), clauses=clauses)

    def check(self) -> None:
        """Raise UnsupportedFeature for a MERGE without a clause, or with one that never applies."""
        if not self.clauses:
            raise UnsupportedFeature(
                "a MERGE without a WHEN clause", hint="say what happens to rows that match or not"
            )
        for at, clause in enumerate(self.clauses):
            later = [one for one in self.clauses[at + 1 :] if one.kind == clause.kind]
            if clause.condition is None and later:
                raise UnsupportedFeature(
                    f"a WHEN {clause.kind.upper()} clause after one without a condition, which "
                    "takes all rows",
                    hint="give the earlier one a condition, or put it last",
                )


@dataclass(frozen=True, slots=True)
class MergeBuilder(Generic[Result]):
    """Collects the clauses of a MERGE; nothing happens before `execute`."""

    spec: MergeSpec
    finish: Callable[[MergeSpec], Result]

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
        return replace(self, spec=replace(self.spec, evolve=True))

    def execute(self) -> Result:
        """Merge. Raises MergeKeyError when several source rows match a target row."""
        with hinted(*self.spec.texts()):
            return self.finish(self.spec.for_spark())

    def _with(self, clause: Clause) -> MergeBuilder[Result]:
        return replace(self, spec=replace(self.spec, clauses=(*self.spec.clauses, clause)))
