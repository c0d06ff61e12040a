"""The agenda of a project is in the catalog of its first lake."""

from __future__ import annotations

from pathlib import Path

from penstock.project.project import Project
from penstock.scheduler.values import Agenda
from penstock.server.opening import find_home, open_agenda
from tests.engine.toy import CONFIG, write_project

ORDERS = {"models/orders": "-- pipeline\n-- materialize ducklake://main/orders\nSELECT 1 AS id"}
DELTA = '[delta.raw]\nroot = "delta"\n'


def test_a_new_project_gets_its_catalog(tmp_path: Path) -> None:
    project = Project.load(write_project(tmp_path / "p", ORDERS))
    assert find_home(project.context) == "main"
    assert open_agenda(project.context).load() == Agenda()
    assert (project.settings.root / "lake" / "meta.sqlite").is_file()


def test_the_agenda_stays_open_when_the_project_closes_its_lakes(tmp_path: Path) -> None:
    project = Project.load(write_project(tmp_path / "p", ORDERS))
    store = open_agenda(project.context)
    project.context.connections.release_session()
    project.close()
    assert store.pauses() == []


def test_a_root_of_delta_tables_is_no_home(tmp_path: Path) -> None:
    config = DELTA + CONFIG
    project = Project.load(write_project(tmp_path / "p", ORDERS, config))
    assert find_home(project.context) == "main"
