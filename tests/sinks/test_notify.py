"""What is told of runs, and how it gets there: a real web server, real commands."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from penstock.engine.results import CheckResult, RunResult, StepResult
from penstock.errors import ArgumentError, CatalogUnreachable, PenstockError
from penstock.events import Event, EventSink, Notice, RunFinished, ignore
from penstock.project.project import Project
from penstock.settings.sink_settings import NotifySettings
from penstock.sinks import notify
from penstock.sinks.notify import (
    LATE,
    LateSlice,
    Notifier,
    Sender,
    build_late_message,
    build_messages,
    notify_after_run,
)
from tests.engine.toy import CONFIG, write_project

SENDER = Sender("shop", "box", datetime(2026, 11, 28, tzinfo=UTC))


def made(name: str, state: str = "done", **more: Any) -> StepResult:
    return StepResult(name, f"main.{name}", "replace", None, state, **more)


def ended(*steps: StepResult) -> RunResult:
    state = "failed" if any(step.state == "failed" for step in steps) else "done"
    return RunResult("r1", state, None, steps, 1.5)


@dataclass
class Web:
    """A server that answers with ``answers`` in turn, then with 200."""

    url: str
    answers: list[int] = field(default_factory=list)
    got: list[Any] = field(default_factory=list)


@pytest.fixture
def web() -> Iterator[Web]:
    found = Web("")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            size = int(self.headers["Content-Length"])
            found.got.append(json.loads(self.rfile.read(size)))
            self.send_response(found.answers.pop(0) if found.answers else 200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found.url = f"http://127.0.0.1:{server.server_address[1]}/secret"
        Thread(target=server.serve_forever, daemon=True).start()
        yield found
        server.shutdown()


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notify, "_RETRY_DELAY", 0.0)


def notifier(*to: NotifySettings, root: Path | None = None) -> Notifier:
    def selected(words: Sequence[str]) -> Sequence[str]:
        return words

    return Notifier(to, SENDER, root or Path(), selected)


def run_with(
    to: Notifier,
    result: RunResult,
    failing: Callable[[], Collection[str]] = set[str],
    report: EventSink = ignore,
) -> None:
    """A run that has nothing to say but that it has ended."""
    with notify_after_run(to, failing, report) as sink:
        sink(RunFinished(result.run_id, result.state, result.seconds, result=result))


def test_a_failure_names_the_models_the_cause_and_the_tests() -> None:
    failures = (CheckResult("not_null id", False, 3), CheckResult("unique id", True, 0))
    steps = (
        made("a"),
        made("b", "failed", error=PenstockError("1 of 2 data tests failed"), checks=failures),
        made("c", "skipped", reason="upstream b failed"),
    )
    (message,) = build_messages(ended(*steps), SENDER)
    assert message.event == "failure"
    assert message.document["text"] == "shop: b failed: 1 of 2 data tests failed"
    assert message.document["skipped"] == ("c",)
    assert message.document["run_id"] == "r1"
    (told,) = message.document["steps"]
    assert told["step"] == "b"
    assert told["failed_tests"] == ["not_null id"]


def test_the_numbers_of_failing_rows_are_told_and_values_only_if_asked_for(web: Web) -> None:
    rows = ({"id": None, "at": SENDER.at}, {"id": None, "at": SENDER.at})
    checks = (
        CheckResult("not_null id", False, 3, rows),
        CheckResult("unique id", False, 9, rows, severity="warn"),
    )
    run = ended(made("b", "failed", checks=checks))
    run_with(notifier(NotifySettings("a", web.url), NotifySettings("b", web.url, values=True)), run)
    plain, full = (each["steps"][0]["tests"] for each in web.got)
    assert plain == [{"name": "not_null id", "rows": 3}]
    row = {"id": None, "at": "2026-11-28T00:00:00+00:00"}
    assert full == [{"name": "not_null id", "rows": 3, "values": [row, row]}]


def test_late_slices_are_told_by_their_models() -> None:
    since = datetime(2026, 11, 27, tzinfo=UTC)
    slices = [
        LateSlice("orders", "", "1h", since, since),
        LateSlice("days", "2026-11-01", "2d"),
    ]
    message = build_late_message(LATE, slices, SENDER)
    assert message.document["text"] == "shop: past the freshness: orders (1h), days 2026-11-01 (2d)"
    orders, days = message.document["models"]
    moment = since.isoformat()
    assert orders == {
        "model": "orders",
        "freshness": "1h",
        "slices": [{"slice": None, "built_at": moment, "since": moment}],
    }
    assert days["slices"] == [{"slice": "2026-11-01", "built_at": None, "since": None}]


def test_a_run_that_went_well_tells_nothing() -> None:
    assert list(build_messages(ended(made("a"), made("b", "unchanged")), SENDER)) == []


def test_many_failures_are_named_once_each() -> None:
    steps = [made(f"m{n}", "failed", reason="no") for n in range(7) for _ in range(2)]
    (message,) = build_messages(ended(*steps), SENDER)
    assert message.document["text"] == "shop: m0, m1, m2, m3, m4 and 2 more failed: no"
    assert len(message.document["steps"]) == 14


def test_only_the_selected_models_are_told_of() -> None:
    result = ended(made("a", "failed", reason="no"), made("b", "failed", reason="no"))
    (message,) = build_messages(result, SENDER, models={"b"})
    assert message.document["text"] == "shop: b failed: no"
    assert list(build_messages(result, SENDER, models={"c"})) == []


def test_a_webhook_gets_the_failure_and_the_recovery(web: Web) -> None:
    to = NotifySettings("oncall", web.url)
    run = ended(made("a", "failed", reason="no"))
    states = [{"a"}, set[str]()]
    run_with(notifier(to), run)
    run_with(notifier(to), ended(made("a"), made("b")), lambda: states.pop(0))
    assert [each["event"] for each in web.got] == ["failure", "recovery"]
    assert web.got[1]["text"] == "shop: a made again after a failure"
    assert [step["step"] for step in web.got[1]["steps"]] == ["a"]


def test_a_model_that_still_has_failed_slices_has_not_recovered(web: Web) -> None:
    to = NotifySettings("oncall", web.url)
    run_with(notifier(to), ended(made("a")), lambda: {"a"})
    assert web.got == []


@pytest.mark.parametrize(
    ("to", "events"),
    [
        (NotifySettings("oncall", failure=False), ["recovery"]),
        (NotifySettings("oncall", recovery=False), ["failure"]),
    ],
)
def test_one_is_told_what_one_asks_for(to: NotifySettings, events: list[str], web: Web) -> None:
    states = [{"b"}, {"a"}]
    run = ended(made("a", "failed", reason="no"), made("b"))
    told = notifier(replace(to, webhook=web.url))
    run_with(told, run, lambda: states.pop(0))
    assert [each["event"] for each in web.got] == events


def test_a_busy_webhook_is_called_again_once(web: Web) -> None:
    web.answers = [503]
    to = NotifySettings("oncall", web.url)
    assert list(notifier(to).notify_error(CatalogUnreachable("gone"))) == []
    assert len(web.got) == 2
    assert web.got[0]["error"] == {"type": "CatalogUnreachable", "message": "gone", "hint": None}


@pytest.mark.parametrize(("answers", "calls"), [([503, 500], 2), ([404], 1)])
def test_what_cannot_be_told_is_a_notice_without_the_address(
    answers: list[int], calls: int, web: Web
) -> None:
    web.answers = list(answers)
    heard: list[Event] = []
    run = ended(made("a", "failed", reason="no"))
    run_with(notifier(NotifySettings("oncall", web.url)), run, report=heard.append)
    assert len(web.got) == calls
    (notice,) = heard
    assert isinstance(notice, Notice)
    assert notice.message.startswith(
        f"notify.oncall: the failure message was not sent: the webhook answered {answers[-1]}"
    )


def test_nobody_listens_and_others_are_told_all_the_same(web: Web) -> None:
    nobody = NotifySettings("a", "http://127.0.0.1:9/secret")
    problems = list(
        notifier(nobody, NotifySettings("b", web.url)).notify_error(PenstockError("no"))
    )
    assert len(problems) == 1
    assert "the webhook cannot be reached" in problems[0]
    assert "secret" not in problems[0]
    assert len(web.got) == 1


def test_an_error_is_told_and_raised_again_but_wrong_input_is_not(web: Web) -> None:
    def run(error: PenstockError) -> None:
        to = notifier(NotifySettings("oncall", web.url))
        with pytest.raises(type(error)), notify_after_run(to, set[str], ignore):
            raise error

    run(ArgumentError("no such model"))
    assert web.got == []
    run(CatalogUnreachable("the catalog cannot be opened"))
    assert web.got[0]["text"] == "shop: a run ended with an error: the catalog cannot be opened"


def test_a_command_gets_the_document_in_the_directory_of_the_project(tmp_path: Path) -> None:
    script = "import sys, pathlib; pathlib.Path('told').write_text(sys.stdin.read())"
    to = NotifySettings("pager", command=(sys.executable, "-c", script))
    assert list(notifier(to, root=tmp_path).notify_error(PenstockError("no é"))) == []
    assert json.loads((tmp_path / "told").read_text())["error"]["message"] == "no é"


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (("no-such-command",), "no-such-command cannot be run: No such file or directory"),
        (
            (sys.executable, "-c", "import sys; sys.exit('the pager is out')"),
            "ended with 1: the pager is out",
        ),
    ],
)
def test_a_command_that_fails_says_how(
    command: tuple[str, ...], problem: str, tmp_path: Path
) -> None:
    to = NotifySettings("pager", command=command)
    (said,) = notifier(to, root=tmp_path).notify_error(PenstockError("no"))
    assert problem in said


@pytest.mark.spark
def test_a_run_tells_of_its_failure_and_then_of_its_recovery(
    web: Web, spark: Any, tmp_path: Path
) -> None:
    script = """
        -- pipeline
        -- materialize ducklake://main/orders
        -- data_test not_null id
        SELECT {} AS id
        """
    config = f'{CONFIG}\n[notify.oncall]\nwebhook = "{web.url}"\nselect = "orders"\n'
    for value in ("CAST(NULL AS INT)", "CAST(NULL AS INT)", "1", "2"):
        root = write_project(tmp_path / "toy", {"models/orders": script.format(value)}, config)
        with Project.load(root, spark=spark) as project:
            notices = project.run().notices
        assert not [notice for notice in notices if "notify" in notice.message]
    assert [each["event"] for each in web.got] == ["failure", "failure", "recovery"]
    assert web.got[0]["steps"][0]["failed_tests"] == ["not_null id"]
