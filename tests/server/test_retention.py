"""What ended long ago is removed: by the service once an hour, and when a person asks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from penstock.project.project import Project
from penstock.scheduler.values import FiringState
from penstock.server.agenda_store import AgendaStore
from penstock.server.opening import find_agenda, open_agenda
from penstock.server.pruning import Pruned, PruneLimits
from penstock.server.retention import PRUNE_INTERVAL, AgendaPruner, find_limits, prune_agenda
from penstock.settings.retention import Keep
from tests.engine.toy import CONFIG, write_project
from tests.server.agenda import NOON, decide, event, firing

DAY = 86_400.0
SCRIPT = {"models/a": "-- pipeline\n-- materialize ducklake://main/a\nSELECT 1 AS a"}


def end_firing(store: AgendaStore, number: int = 1) -> None:
    happened = event(f"e{number}")
    store.record([happened], decide(happened, firing(f"f{number}")), fence=None)
    assert store.finish_firing(f"f{number}", FiringState.DONE)


@pytest.mark.parametrize(
    ("keep", "limit"),
    [
        (Keep(DAY, 5), NOON - timedelta(days=1)),
        (Keep(None, 5), None),
        (Keep(1e15, None), None),
    ],
)
def test_the_limit_is_the_age_that_stays(
    store: AgendaStore, keep: Keep, limit: datetime | None
) -> None:
    expected = None if limit is None else PruneLimits(limit, limit)
    assert find_limits(store, keep, NOON) == expected


def test_so_many_firings_stay(store: AgendaStore) -> None:
    for number in range(1, 6):
        end_firing(store, number)
    open_ = event("e6")
    store.record([open_], decide(open_, firing("f6", key="other")), fence=None)
    moment = datetime.now(UTC)
    for keep in (Keep(None, 3), Keep(DAY, 3)):
        limits = find_limits(store, keep, moment)
        assert limits is not None
        assert limits.events == moment - timedelta(days=1)  # a message may be sent again
        store.prune(limits)
        assert [one.firing.id for one in store.list_firings(9)] == ["f6", "f5", "f4", "f3"]
    limits = find_limits(store, Keep(None, 3), moment + timedelta(days=3))
    assert limits is not None
    store.prune(limits)
    kept = [number for number in range(1, 7) if store.read_event(f"e{number}") is not None]
    assert kept == [3, 4, 5, 6]


def test_it_prunes_once_an_hour(store: AgendaStore) -> None:
    keeps = [Keep(0.0, None)]
    pruner = AgendaPruner(store, lambda: keeps[0])
    moment = datetime.now(UTC) + timedelta(minutes=1)
    end_firing(store)
    pruner(moment)
    assert store.read_event("e1") is None
    end_firing(store, 2)
    pruner(moment + PRUNE_INTERVAL - timedelta(seconds=1))
    assert store.read_firing("f2") is not None
    keeps[0] = Keep(DAY, None)  # as after a reload
    pruner(moment + PRUNE_INTERVAL)
    assert store.read_firing("f2") is not None
    keeps[0] = Keep(0.0, None)
    pruner(moment + 2 * PRUNE_INTERVAL)
    assert store.read_firing("f2") is None


def test_a_person_prunes_what_the_settings_do_not_keep(tmp_path: Path) -> None:
    root = write_project(tmp_path / "p", SCRIPT, f'{CONFIG}keep = "1d"\n')
    later = datetime.now(UTC) + timedelta(days=2)
    with Project.load(root) as project:
        assert find_agenda(project.context) is None
        assert prune_agenda(project.context, later) == Pruned()
        assert find_agenda(project.context) is None  # it has created nothing
        store = open_agenda(project.context)
        end_firing(store)
        assert prune_agenda(project.context, datetime.now(UTC)) == Pruned()
        expected = Pruned(firings=1, events=1)
        assert prune_agenda(project.context, later, dry_run=True) == expected
        assert store.read_firing("f1") is not None
        assert prune_agenda(project.context, later) == expected
        assert store.read_firing("f1") is None
