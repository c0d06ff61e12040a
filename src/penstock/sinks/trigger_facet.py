"""Describe the trigger of a run as an OpenLineage facet. Its schema is in docs/openlineage.

Import this module late: the OpenLineage client is an extra.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attr
from openlineage.client.facet_v2 import RunFacet

if TYPE_CHECKING:
    from penstock.scheduler.values import Firing

PRODUCER = "https://pypi.org/project/penstock-spark"
SCHEMA = f"{PRODUCER}/1-0-0/PenstockTriggerRunFacet.json"
NAME = "penstock_trigger"


@attr.define
class TriggerRunFacet(RunFacet):
    """The trigger of a run. It has no payload, because payloads may contain secrets.

    Attributes:
        kind: The kind of the event that fired the run.
        firing: The id of the firing.
        events: The ids of the events that the firing covers.
        partition: The partition; None for the whole table.
        fireTime: The logical time of the run.
        depth: The number of runs above it in the chain.
        chain: The models above it in the chain, from the top.
        backfill: The id of its backfill.
    """

    kind: str
    firing: str
    events: list[str]
    partition: str | None
    fireTime: str  # noqa: N815 - the spelling of OpenLineage
    depth: int
    chain: list[str]
    backfill: str | None

    @staticmethod
    def _get_schema() -> str:
        return f"{SCHEMA}#/$defs/PenstockTriggerRunFacet"


def trigger_facet(firing: Firing) -> TriggerRunFacet:
    """Return the facet of a firing's run.

    Args:
        firing: The firing.

    Returns:
        The facet.
    """
    return TriggerRunFacet(
        kind=firing.kind.value,
        firing=firing.id,
        events=list(firing.events),
        partition=firing.partition,
        fireTime=firing.fire_time.isoformat(),
        depth=firing.depth,
        chain=list(firing.models),
        backfill=firing.backfill,
        producer=PRODUCER,
    )
