"""``penstock logs``: the log of a run, or of a model's last one, without Spark."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from penstock.cli.options import common_options, complete_model, load_project
from penstock.cli.output import clock, say
from penstock.cli.paths import local
from penstock.errors import ArgumentError
from penstock.events import Event
from penstock.rendering.wire import to_json
from penstock.sinks.progress.lines import text_line

if TYPE_CHECKING:
    from penstock.engine.answers.runs import RunLogLines
    from penstock.project.project import Project

_FRAME = re.compile(
    r'^ +File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<name>.+)\n +(?P<text>.*)$', re.M
)
_OWN = re.escape(str(Path(__file__).parents[1]))
_NOT_OF_USERS = re.compile(rf"^{_OWN}|[/\\](?:(?:site|dist)-packages|lib[/\\]python[\d.]+)[/\\]|^<")
_EVENTS = {event.__name__: event for event in get_args(Event)}
_LOOK = 0.3  # seconds between two looks at a log that is followed
_ASK = 10  # looks between two at whether its run is alive


@click.command(
    "logs",
    short_help="Show the log of a run: events, prints, queries, errors.",
    epilog="""\b
Examples:
  penstock logs last
  penstock logs clean/flights
  penstock logs --failed
  penstock logs 01a20f9c-6494 --json
  penstock logs last --follow""",
)
@click.argument("run", metavar="[RUN|MODEL]", required=False, shell_complete=complete_model)
@click.option(
    "--failed", is_flag=True, help="The log of the last run that failed, of MODEL or of any."
)
@click.option("--follow", "-f", is_flag=True, help="Go on until the run has ended.")
@common_options
def command(
    *, run: str | None, failed: bool, follow: bool, project_dir: Path | None, as_json: bool
) -> None:
    """Show the log of RUN (an id, a part of one, or `last`), or of the last run of MODEL.

    It has the events of the run, the prints of steps in Python, each query as it ran, and whole
    errors. With --json each line is as it is in the file. Logs are files of the machine that ran,
    and are kept as [logs] of penstock.toml says.
    """
    if run is None and not failed:
        raise ArgumentError("logs takes a run or a model", hint="penstock logs last")
    with load_project(project_dir) as project:
        log = project.log(_failed_run(project, run) if failed else run or "last")
        lines, offset = log.since(0)
        _print(lines, as_json=as_json)
        while follow and not _ended(lines, project, log):
            for _ in range(_ASK):
                time.sleep(_LOOK)
                lines, offset = log.since(offset)
                _print(lines, as_json=as_json)
                if _has_end(lines):
                    return


def _failed_run(project: Project, model: str | None) -> str:
    """Return the id of the last run that failed, of a model or of any. Raises ArgumentError."""
    runs = project.runs(model, failed=True, limit=1)
    if not runs:
        raise ArgumentError("no run that failed is recorded", hint="penstock runs lists all")
    return runs[0].run_id


def _has_end(lines: Iterable[Mapping[str, Any]]) -> bool:
    return any(each.get("event") == "RunFinished" for each in lines)


def _ended(lines: Iterable[Mapping[str, Any]], project: Project, log: RunLogLines) -> bool:
    return _has_end(lines) or project.past_run(log.run_id).run.state != "running"


def _print(lines: Iterable[Mapping[str, Any]], *, as_json: bool) -> None:
    for each in lines:
        text = to_json(each) if as_json else line_text(each)
        if text is not None:
            say(text)


def line_text(line: Mapping[str, Any]) -> str | None:
    """A line of a log for people: its local time, and what happened."""
    values = {
        name: value for name, value in line.items() if name not in ("schema_version", "at", "event")
    }
    said = _said(str(line.get("event")), values)
    return None if said is None else f"{clock(datetime.fromisoformat(line['at']))}  {said}"


def _said(name: str, values: Mapping[str, Any]) -> str | None:
    of = f"{values.get('step')} {values.get('slice') or ''}".strip()
    if name == "StepQuery":
        given = ", ".join(f"{key} = {value}" for key, value in values.get("values", {}).items())
        return f"{of}: query{f' with {given}' if given else ''}\n{_indented(values.get('sql'))}"
    if name == "StepError":
        return f"{of}: {values.get('type')}\n{_indented(local(_error_text(values)))}"
    event = _EVENTS.get(name)
    if event is None:  # of a newer Penstock
        return f"{name} {values}"
    known = {each.name: values[each.name] for each in fields(event) if each.name in values}
    try:
        return text_line(event(**known))
    except TypeError:
        return f"{name} {values}"


def _error_text(values: Mapping[str, Any]) -> str:
    """Return the message and the user's own stack frames, and the whole traceback after them."""
    place = f"{values['location']}: " if values.get("location") else ""
    lines = [f"{place}{values.get('message')}"]
    if values.get("hint"):
        lines.append(f"→ {values['hint']}")
    whole = str(values.get("traceback") or "")
    frames = [match for match in _FRAME.finditer(whole) if not _NOT_OF_USERS.search(match["file"])]
    lines += [f"  {f['file']}:{f['line']}, in {f['name']}: {f['text']}" for f in frames]
    return "\n".join([*lines, *(["", whole] if whole else [])])


def _indented(text: object) -> str:
    return "\n".join(f"    {each}".rstrip() for each in str(text or "").strip().splitlines())
