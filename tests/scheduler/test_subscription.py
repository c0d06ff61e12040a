"""What triggers a model."""

from __future__ import annotations

from penstock.scheduler.subscription import Source, Subscription


def test_a_subscription_says_nothing_of_catching_up() -> None:
    source = Source("main.main.orders", is_partitioned=True)
    assert Subscription("daily", sources=(source,)).catchup.mode is None
