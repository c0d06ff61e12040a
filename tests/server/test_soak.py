"""A project is served for some seconds under random events. `soak` does it for an hour."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import duck
from tests.server.soak import soak


@pytest.mark.slow
def test_no_event_is_lost_under_random_events(tmp_path: Path) -> None:
    duck.required()
    problems = soak(tmp_path / "p", "sqlite:lake/meta.sqlite", 1, 4.0)
    assert [each for each in problems if "memory" not in each] == []
