"""Views of a step go when it ends, or after it. No Spark: a catalog that notes what is dropped."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event
from types import SimpleNamespace
from typing import Any, cast

from penstock.engine.inputs.resolve import Views


def session(dropped: list[str]) -> Any:
    return cast(Any, SimpleNamespace(catalog=SimpleNamespace(dropTempView=dropped.append)))


def test_views_are_dropped_at_the_end() -> None:
    dropped: list[str] = []
    with Views(session(dropped)) as views:
        names = [views.name(), views.name()]
        assert dropped == []
    assert dropped == names


def test_a_step_does_not_wait_for_its_views_to_go() -> None:
    dropped: list[str] = []
    ended = Event()
    with ThreadPoolExecutor(1) as later:
        later.submit(ended.wait, 60)
        with Views(session(dropped), later) as views:
            names = [views.name()]
        assert dropped == []
        ended.set()
    assert dropped == names
