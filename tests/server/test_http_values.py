"""The health of a process, and what the protocols of HTTP tell apart."""

from __future__ import annotations

import pytest

from penstock.server.http_values import GroupInbox, Health
from tests.server.http_parts import GroupMemoryInbox, MemoryInbox


@pytest.mark.parametrize(
    ("health", "is_healthy"),
    [
        (Health(is_leader=True, holder="a"), True),
        (Health(is_leader=False, holder="b", last_error="orders failed"), True),
        (Health(is_leader=False), False),
        (Health(is_leader=True, holder="a", problem="no catalog"), False),
    ],
)
def test_a_process_is_healthy_if_some_process_decides(health: Health, is_healthy: bool) -> None:
    assert health.is_healthy is is_healthy


def test_an_inbox_of_groups_is_known_by_its_method() -> None:
    assert isinstance(GroupMemoryInbox(), GroupInbox)
    assert not isinstance(MemoryInbox(), GroupInbox)
