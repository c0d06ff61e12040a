"""Relations: ``"lake"."schema"."table"``, or a temporary relation by its name alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

from dbt.adapters.base.relation import BaseRelation, EventTimeFilter, SerializableIterable
from dbt.adapters.contracts.relation import ComponentName, RelationType


@dataclass(frozen=True, eq=False, repr=False)
class PenstockRelation(BaseRelation):
    """The lake is the database. A subquery needs no alias: where a model gives one, it stands."""

    require_alias: bool = False

    renameable_relations: SerializableIterable = field(
        default_factory=lambda: frozenset({RelationType.Table, RelationType.View})
    )
    replaceable_relations: SerializableIterable = field(
        default_factory=lambda: frozenset({RelationType.Table, RelationType.View})
    )

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
