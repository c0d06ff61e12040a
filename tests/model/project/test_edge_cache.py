"""Edges that a cache has are those that are found without it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from penstock.engine.session.connections import Connections
from penstock.model.definition.graph import Graph, fingerprint_models
from penstock.model.definition.model import Model
from penstock.model.project.edge_cache import remember_edges
from penstock.model.slicing.needs import Edge, edges_of
from penstock.model.time.slice import Part
from penstock.settings.config import load_settings
from tests.engine.toy import write_project

DAILY = "-- pipeline\n-- partitioned daily\n-- materialize ducklake://main/{}\nSELECT {}"
FORMS = {
    "same": "d.n FROM days d WHERE d._wm_partition = '{partition}'",
    "before": "d.n FROM days d WHERE d._wm_partition = date_add('{partition}', -1)",
    "month": "d.n FROM days d WHERE left(d._wm_partition, 7) = left('{partition}', 7)",
    "some": "d.n FROM days d WHERE d._wm_partition IN ('{partition}', '2026-01-01')",
    "every": "d.n FROM days d",
    "joined": "d.n FROM days d JOIN raw r USING (n) WHERE d._wm_partition = '{partition}'",
    "by_view": "s.n FROM seen s WHERE s.day = '{partition}'",
    "itself": "d.n FROM days d LEFT JOIN itself i USING (n) WHERE d._wm_partition = '{partition}'",
}
MODELS = {
    "models/days": DAILY.format("days", "n, '{partition}' AS day FROM raw"),
    "models/raw": "-- pipeline\n-- materialize ducklake://main/raw\nSELECT 1 AS n",
    "models/seen": "MODEL (name main.seen, kind VIEW);\nSELECT n, _wm_partition AS day FROM days",
    "models/feed": "MODEL (name main.feed, kind INCREMENTAL_BY_TIME_RANGE (time_column ts), "
    "start '2026-01-01');\nSELECT n, ts FROM stream WHERE ts >= @start_ts AND ts < @end_ts",
    "models/stream": "MODEL (name main.stream, kind INCREMENTAL_BY_TIME_RANGE (time_column ts), "
    "start '2026-01-01');\nSELECT n, ts FROM raw",
    **{f"models/{name}": DAILY.format(name, form) for name, form in FORMS.items()},
}


def load(root: Path, scripts: Mapping[str, str] = MODELS) -> Sequence[Model]:
    settings = load_settings(write_project(root, scripts))
    return Connections(settings, None, None).load_models().models


def ask(
    models: Sequence[Model], cache: dict[str, bytes]
) -> tuple[Mapping[str, tuple[Edge, ...]], list[str]]:
    """The edges of models, and the names of those that the cache lacked."""
    lacked: list[str] = []

    def find(missing: Sequence[Model]) -> Mapping[str, tuple[Edge, ...]]:
        lacked.extend(model.name for model in missing)
        return edges_of(models, only=missing)

    fingerprints = fingerprint_models(models, Graph.of(models), "UTC")
    by_name = {model.name: model for model in models}
    return remember_edges(models, by_name, fingerprints, cache, find), lacked


def test_the_same_edges(tmp_path: Path) -> None:
    models, cache = load(tmp_path), dict[str, bytes]()
    first, lacked = ask(models, cache)
    assert sorted(lacked) == sorted(model.name for model in models)
    again, lacked = ask(models, cache)
    assert lacked == []
    assert first == again == edges_of(models)
    assert list(again) == [model.name for model in models]
    (edge,) = again["month"]
    keeps = edge.keeps(Part("2026-01-15"))
    assert keeps(Part("2026-01-31"))
    assert not keeps(Part("2026-02-01"))


@pytest.mark.parametrize(
    ("name", "text", "changed"),
    [
        ("every", DAILY.format("every", "2 AS n"), ["every"]),
        (
            "seen",
            "MODEL (name main.seen, kind VIEW);\nSELECT 1 AS n, 'x' AS day",
            ["by_view", "seen"],
        ),
        (
            "stream",
            "-- pipeline\n-- materialize ducklake://main/stream\nSELECT 1 AS n",
            ["feed", "stream"],
        ),
    ],
)
def test_a_change_is_one_of_the_models_below(
    tmp_path: Path, name: str, text: str, changed: Sequence[str]
) -> None:
    cache = dict[str, bytes]()
    ask(load(tmp_path), cache)
    models = load(tmp_path, {**MODELS, f"models/{name}": text})
    edges, lacked = ask(models, cache)
    assert sorted(lacked) == changed
    assert edges == edges_of(models)


def test_a_model_that_went_and_a_damaged_entry(tmp_path: Path) -> None:
    cache = dict[str, bytes]()
    models = load(tmp_path)
    ask(models, cache)
    cache |= dict.fromkeys(cache, b"nonsense")
    edges, lacked = ask(models, cache)
    assert len(lacked) == len(models)
    assert edges == edges_of(models)


def test_settings_are_part_of_a_fingerprint(tmp_path: Path) -> None:
    models = load(tmp_path)
    graph = Graph.of(models)
    first, second = (fingerprint_models(models, graph, zone) for zone in ("UTC", "Europe/Oslo"))
    assert first.keys() == second.keys()
    assert set(first.values()).isdisjoint(second.values())
