"""Whom runs of a served project tell: of a failure, and of the recovery. Their rows need no Spark.

Tests ``server/serving.py``, ``server/firing_runner.py`` and ``sinks/notify.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.engine.running import step
from penstock.engine.session.connections import Connections
from penstock.errors import QueryFailed
from penstock.project.context import ProjectContext
from penstock.project.project import Project
from penstock.server.serving import ServeOptions, Server
from tests.engine.toy import CONFIG, write_project
from tests.server import sparkless
from tests.server.killed_project import SCRIPTS
from tests.sinks.test_notify import Web, web

__all__ = ["web"]

DAY = "2026-01-01"


@pytest.fixture
def project(tmp_path: Path, web: Web, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    monkeypatch.setitem(vars(step), "execute", vars(step)["execute"])
    for owner, name in (
        (Connections, "require_spark"),
        (Connections, "session"),
        (ProjectContext, "session"),
    ):
        monkeypatch.setattr(owner, name, getattr(owner, name))
    sparkless.install()  # until the end of the test
    config = f'{CONFIG}\n[notify.oncall]\nwebhook = "{web.url}"\n'
    root = write_project(tmp_path / "p", {"models/days": SCRIPTS["models/days"]}, config)
    with Project.load(root) as project:
        for name in ("events", "days"):
            project.lake("main").sql(f"CREATE TABLE {name} (id INT, v INT, _wm_partition VARCHAR)")
        yield project


def serve(project: Project) -> None:
    """Serve until nothing is left to do."""
    Server(project.context, ServeOptions(has_http=False, is_once=True)).run()


def test_a_run_that_serve_fires_tells_of_its_failure_and_recovery(
    project: Project, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> list[sparkless.Row]:
        raise QueryFailed("no such column")

    makers: dict[str, Callable[..., list[sparkless.Row]]] = {**sparkless.MAKERS, "days": fail}
    serve(project)  # it begins to look from here
    project.lake("main").sql(f"INSERT INTO events VALUES (1, 1, '{DAY}')")
    with monkeypatch.context() as patch:
        patch.setattr(sparkless, "MAKERS", makers)
        serve(project)
    assert [each["event"] for each in web.got] == ["failure"]
    (told,) = web.got[0]["steps"]
    assert (told["step"], told["slice"], told["reason"]) == ("days", DAY, "no such column")
    project.lake("main").sql(f"INSERT INTO events VALUES (2, 2, '{DAY}')")
    serve(project)
    assert [each["event"] for each in web.got] == ["failure", "recovery"]
    assert web.got[1]["text"] == "toy: days made again after a failure"
