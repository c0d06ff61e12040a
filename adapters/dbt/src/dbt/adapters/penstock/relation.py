"""Relations: ``"lake"."schema"."table"``, or a temporary relation by its name alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Self

from dbt.adapters.base.relation import BaseRelation, EventTimeFilter, SerializableIterable
from dbt.adapters.contracts.relation import ComponentName, RelationType
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.penstock import external
from penstock.errors import ArgumentError
from penstock.lakes.snapshot import moment as moment_of

_NOTHING = (None, "")  # config.get() is an empty text while dbt reads a model


@dataclass(frozen=True, eq=False, repr=False)
class PenstockRelation(BaseRelation):
    """The lake is the database. A subquery needs no alias: where a model gives one, it stands."""

    require_alias: bool = False
    travel: str | None = None  # what follows the name: AT (VERSION => 3)
    files: str | None = None  # Spark's text that reads an external model, in place of the name

    renameable_relations: SerializableIterable = field(
        default_factory=lambda: frozenset({RelationType.Table, RelationType.View})
    )
    replaceable_relations: SerializableIterable = field(
        default_factory=lambda: frozenset({RelationType.Table, RelationType.View})
    )

    @classmethod
    def create_from(cls, quoting: Any, relation_config: Any, **others: Any) -> Self:
        """The relation of a node of dbt's; of an external model, its files."""
        relation = super().create_from(quoting, relation_config, **others)
        root = getattr(getattr(quoting, "credentials", None), "external_root", None)
        files = external.of_relation(relation_config, root)
        return relation if files is None else relation.replace(files=files.reading)

    def at_version(self, version: object = None) -> Self:
        """Return the relation as a snapshot has it; without a number as it is now."""
        if version in _NOTHING:
            return self
        if not str(version).isdecimal():
            raise DbtRuntimeError(f"at_version({version!r}): write the number of a snapshot")
        return self._travelled(f"VERSION => {version}")

    def at_timestamp(self, moment: object = None) -> Self:
        """Return the relation as it was at a moment, in UTC where it names no zone."""
        if moment in _NOTHING:
            return self
        try:
            at = moment_of(moment)
        except ArgumentError as error:
            raise DbtRuntimeError(f"at_timestamp: {error}") from error
        return self._travelled(f"TIMESTAMP => '{at.isoformat(sep=' ')}'")

    def _travelled(self, clause: str) -> Self:
        """The rows that a unit test gives in the place of a relation have no snapshots."""
        if self.files:
            raise DbtRuntimeError(f"{self.identifier} is external: files have no snapshots")
        return self if self.is_cte else self.replace(travel=f"AT ({clause})")

    def render(self) -> str:
        """The name, with the snapshot that it is read at; the files of an external model."""
        if self.files and not self.is_temporary:
            return self.files
        shown = self.include(database=False) if self.path.schema is None else self
        name = super(PenstockRelation, shown).render()
        return f"{name} {self.travel}" if self.travel else name

    def _render_event_time_filtered(self, event_time_filter: EventTimeFilter) -> str:
        """Compare with times of a declared type: dbt's texts carry a zone, and a text with one
        cannot be cast to a time without.
        """
        bounds = ((">=", event_time_filter.start), ("<", event_time_filter.end))
        return " and ".join(
            f"{event_time_filter.field_name} {sign} {time_literal(moment)}"
            for sign, moment in bounds
            if moment is not None
        )

    def _is_exactish_match(self, field: ComponentName, value: str) -> bool:
        """Letter case does not count in a lake, quoted or not."""
        return (self.path.get_part(field) or "").lower() == value.lower()

    @property
    def is_temporary(self) -> bool:
        """Return whether it is one of the connection, not of a lake."""
        return self.path.schema is None or not self.include_policy.schema


def time_literal(moment: datetime) -> str:
    """A moment in UTC as a literal without a zone, as tables have most times."""
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    return f"TIMESTAMP_NTZ '{moment.isoformat(sep=' ')}'"
