"""Metrics in the text format of Prometheus."""

from __future__ import annotations

from penstock.scheduler.values import FiringState, OutcomeKind
from penstock.server.http_values import Health
from penstock.server.metrics import Metrics


def lines(metrics: Metrics, health: Health | None) -> list[str]:
    return metrics.render(health)[0].decode().splitlines()


def test_what_was_counted_is_rendered() -> None:
    metrics = Metrics()
    metrics.count_firing("orders", FiringState.DONE)
    metrics.count_firing("orders", FiringState.DONE)
    metrics.count_outcome(OutcomeKind.JOINED)
    metrics.observe_run("orders", 2.5)
    text = lines(metrics, Health(True, "a", queue_length=4, oldest_waiting=9.5))
    for line in (
        'penstock_firings_total{model="orders",state="done"} 2.0',
        'penstock_events_total{outcome="joined"} 1.0',
        'penstock_run_seconds_bucket{le="5.0",model="orders"} 1.0',
        'penstock_run_seconds_bucket{le="1.0",model="orders"} 0.0',
        'penstock_run_seconds_sum{model="orders"} 2.5',
        "penstock_queue_length 4.0",
        "penstock_oldest_waiting_seconds 9.5",
        "penstock_leader 1.0",
        "penstock_healthy 1.0",
    ):
        assert line in text


def test_a_health_that_cannot_be_read_is_not_healthy() -> None:
    assert "penstock_healthy 0.0" in lines(Metrics(), None)


def test_two_processes_share_no_counter() -> None:
    one, other = Metrics(), Metrics()
    one.count_message("accepted")
    assert 'penstock_messages_total{answer="accepted"} 1.0' in lines(one, None)
    assert not [line for line in lines(other, None) if "accepted" in line]


def test_a_label_is_escaped() -> None:
    metrics = Metrics()
    metrics.observe_run('a"\n} 1', 1)
    assert 'penstock_run_seconds_count{model="a\\"\\n} 1"} 1.0' in lines(metrics, None)
