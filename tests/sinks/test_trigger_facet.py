"""What fired a run is a facet of its events, as its published schema says."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attr

from penstock.scheduler.values import EventKind, Firing
from penstock.sinks.trigger_facet import NAME, PRODUCER, SCHEMA, trigger_facet
from tests.sinks.test_open_lineage import EVENTS, emitter, project_of

PAGE = Path(__file__).parents[2] / "docs" / "openlineage" / "PenstockTriggerRunFacet.json"
FIRING = Firing(
    "01a20f9c-6494-7623-8b2d-fb12e67c7194",
    "sums",
    "2026-11-01",
    EventKind.ASSET,
    datetime(2026, 11, 2, 2, 30, tzinfo=UTC),
    payload={"card": "4111"},
    events=("asset:main.main.orders@12", "asset:main.main.orders@13"),
    depth=1,
    models=("orders",),
)


def emit(root: Path, firing: Firing | None) -> list[dict[str, Any]]:
    with project_of(root, 'file = "lineage.jsonl"') as project:
        tell = emitter(project, [])
        tell.firing = firing
        for event in EVENTS:
            tell(event)
    lines = (root / "toy" / "lineage.jsonl").read_text().splitlines()
    return [json.loads(line)["run"]["facets"] for line in lines]


def test_each_event_of_a_served_run_says_what_fired_it(tmp_path: Path) -> None:
    facets = emit(tmp_path, FIRING)
    assert len(facets) == 6
    for facet in (each[NAME] for each in facets):
        assert facet == {
            "_producer": PRODUCER,
            "_schemaURL": f"{SCHEMA}#/$defs/PenstockTriggerRunFacet",
            "kind": "asset",
            "firing": FIRING.id,
            "events": list(FIRING.events),
            "partition": "2026-11-01",
            "fireTime": "2026-11-02T02:30:00+00:00",
            "depth": 1,
            "chain": ["orders"],
        }


def test_a_run_that_a_person_asks_for_has_no_trigger(tmp_path: Path) -> None:
    assert all(NAME not in each for each in emit(tmp_path, None))


def test_the_schema_has_the_fields_of_the_facet() -> None:
    document = json.loads(PAGE.read_text())
    assert document["$id"] == SCHEMA
    schema = document["$defs"]["PenstockTriggerRunFacet"]["allOf"][1]
    facet = trigger_facet(replace(FIRING, backfill="b1"))
    fields = {field.name for field in attr.fields(type(facet)) if field.name[0] != "_"}
    assert fields == set(schema["properties"])
    assert set(schema["required"]) <= fields
    assert schema["properties"]["kind"]["enum"] == [kind.value for kind in EventKind]
