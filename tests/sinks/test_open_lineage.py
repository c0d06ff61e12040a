"""Events of OpenLineage, as its own client writes them to a file and to a server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from penstock.distribution import NAME
from penstock.events import Event, Notice, RunFinished, RunStarted, StepFinished, StepStarted
from penstock.project.project import Project
from penstock.sinks.open_lineage import Emitter, client_of
from tests.engine.toy import CONFIG, write_project

SCRIPTS = {
    "models/orders": """
        -- pipeline
        -- materialize ducklake://main/orders
        SELECT id, amount FROM read_csv('data/orders.csv', columns = {'id': 'INT', 'amount': 'INT'})
        """,
    "models/sums": """
        -- pipeline
        -- materialize ducklake://main/sums
        SELECT id, sum(amount) AS total FROM orders WHERE amount > 0 GROUP BY id
        """,
}
RUN = "01a20f9c-6494-7623-8b2d-fb12e67c7194"
EVENTS: tuple[Event, ...] = (
    RunStarted(RUN, ("orders", "sums")),
    StepStarted("orders", None),
    StepFinished("orders", "done", 1.0, 3, 7),
    StepStarted("sums", None),
    StepFinished("sums", "failed", 1.0, reason="1 of 1 data tests failed"),
    StepFinished("others", "skipped", 0.0, reason="upstream sums failed"),
    RunFinished(RUN, "failed", 2.0),
)


def emitter(project: Project, reported: list[Event]) -> Emitter:
    to = project.settings.open_lineage
    assert to is not None
    models = {model.name: model for model in project.models}
    return Emitter(
        project.settings,
        to.namespace,
        models,
        project.column_lineage,
        client_of(to),
        reported.append,
    )


def project_of(root: Path, section: str) -> Project:
    return Project.load(write_project(root / "toy", SCRIPTS, f"{CONFIG}\n[openlineage]\n{section}"))


@pytest.fixture
def written(tmp_path: Path) -> list[dict[str, Any]]:
    reported: list[Event] = []
    with project_of(tmp_path, 'file = "out/lineage.jsonl"\nnamespace = "shop"') as project:
        tell = emitter(project, reported)
        for event in EVENTS:
            tell(event)
    assert reported == []
    return [
        json.loads(line) for line in (tmp_path / "toy/out/lineage.jsonl").read_text().splitlines()
    ]


def test_a_run_and_each_of_its_steps_begin_and_end(written: list[dict[str, Any]]) -> None:
    told = [(each["job"]["name"], each["eventType"]) for each in written]
    assert told == [
        ("toy", "START"),
        ("orders", "START"),
        ("orders", "COMPLETE"),
        ("sums", "START"),
        ("sums", "FAIL"),
        ("toy", "FAIL"),
    ]
    assert {each["job"]["namespace"] for each in written} == {"shop"}
    assert {each["producer"] for each in written} == {f"https://pypi.org/project/{NAME}"}
    runs = [each["run"]["runId"] for each in written]
    assert runs[0] == runs[5] == RUN
    assert runs[1] == runs[2] != runs[3] == runs[4]
    parent = written[1]["run"]["facets"]["parent"]
    assert (parent["run"]["runId"], parent["job"]["name"]) == (RUN, "toy")


def test_a_step_has_its_query_its_inputs_and_what_it_made(written: list[dict[str, Any]]) -> None:
    made, failed = written[2], written[4]
    assert [(each["namespace"], each["name"]) for each in made["inputs"]] == [
        ("file", "data/orders.csv")
    ]
    (output,) = made["outputs"]
    assert output["name"] == "main.orders"
    assert output["namespace"].startswith("ducklake:sqlite:/")
    assert output["facets"]["version"]["datasetVersion"] == "7"
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 3
    assert "read_csv" in made["job"]["facets"]["sql"]["query"]
    assert [each["name"] for each in failed["inputs"]] == ["main.orders"]
    assert failed["run"]["facets"]["errorMessage"]["message"] == "1 of 1 data tests failed"


def test_columns_say_what_they_derive_from(tmp_path: Path) -> None:
    with project_of(tmp_path, 'file = "lineage.jsonl"') as project:
        tell = emitter(project, [])
        for event in (*EVENTS[:4], StepFinished("sums", "done", 1.0, 2, 8)):
            tell(event)
    last = json.loads((tmp_path / "toy/lineage.jsonl").read_text().splitlines()[-1])
    assert last["job"]["namespace"] == "toy"
    facets = last["outputs"][0]["facets"]
    assert [each["name"] for each in facets["schema"]["fields"]] == ["id", "total"]
    (total,) = facets["columnLineage"]["fields"]["total"]["inputFields"]
    assert (total["name"], total["field"]) == ("main.orders", "amount")
    assert total["transformations"][0]["type"] == "DIRECT"


@pytest.fixture
def server() -> Iterator[tuple[str, list[tuple[str, Any]], list[int]]]:
    got: list[tuple[str, Any]] = []
    answers: list[int] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            got.append((self.headers.get("Authorization", ""), body))
            self.send_response(answers.pop(0) if answers else 201)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as web:
        Thread(target=web.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{web.server_address[1]}", got, answers
        web.shutdown()


def test_a_server_gets_them_with_the_key(
    server: tuple[str, list[tuple[str, Any]], list[int]], tmp_path: Path
) -> None:
    url, got, _ = server
    with project_of(tmp_path, f'url = "{url}"\napi_key = "hush"') as project:
        tell = emitter(project, [])
        for event in EVENTS:
            tell(event)
        assert "hush" not in repr(project.settings)
    assert [body["eventType"] for _, body in got] == [
        "START",
        "START",
        "COMPLETE",
        "START",
        "FAIL",
        "FAIL",
    ]
    assert got[0][0] == "Bearer hush"


def test_a_server_that_refuses_is_one_notice_and_the_run_goes_on(
    server: tuple[str, list[tuple[str, Any]], list[int]], tmp_path: Path
) -> None:
    url, got, answers = server
    answers += [403] * 9
    reported: list[Event] = []
    with project_of(tmp_path, f'url = "{url}"') as project:
        tell = emitter(project, reported)
        for event in EVENTS:
            tell(event)
    (notice,) = reported
    assert isinstance(notice, Notice)
    assert "no more events of OpenLineage are sent" in notice.message
    assert len(got) == 1
