"""Save a plan as a file, and tell what has moved since: such a plan is refused. Pure.

A saved plan is not carried out as it stands. It is made again from the same request, for the same
moment; where both are the same and what it was made from has not changed, the new one is run. So a
run of a saved plan does exactly what that shows, or nothing.

The file is JSON of one version. It has the arguments of the run, as records of runs have them, and
of a payload only what models declare; no settings, and nothing of how a lake is reached.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

from penstock.engine.planning.files_read import is_as_it_was
from penstock.engine.planning.plan import Plan, PlannedStep, Seen
from penstock.engine.planning.ranges import SliceRange
from penstock.engine.planning.slices import RunRequest
from penstock.engine.state.records import InputRead
from penstock.errors import ArgumentError, PlanMoved
from penstock.model.definition.model import Model
from penstock.model.time.interval import Interval, interval_of, minus
from penstock.model.time.slice import WHOLE, Part, Slice, shown
from penstock.model.values.asset import TableName

FORMAT = 1
_SHOWN = 3  # slices that a message names


@dataclass(frozen=True, slots=True)
class SavedStep:
    """A step that runs: ``definition`` is the hash of its model, ``slices`` are by their texts.

    ``made_by`` are the runs that had made any of these slices, ``waits`` those that wait, with what
    for, and ``stages`` what becomes of its table. ``again`` says why it is rebuilt,
    ``file_reads`` are the files of this machine that its slices read, None where none were saved.
    """

    step: str
    table: str
    definition: str
    slices: tuple[str, ...]
    anew: bool = False
    again: str | None = None
    waits: Mapping[str, str] = field(default_factory=dict)
    stages: tuple[str, ...] = ()
    made_by: Mapping[str, str] = field(default_factory=dict)
    file_reads: Sequence[InputRead] | None = None

    @classmethod
    def of(cls, step: PlannedStep, seen: Seen) -> SavedStep:
        return cls(
            step.name,
            str(step.model.target),
            step.model.definition_hash,
            tuple(slice_.text for slice_ in step.slices),
            step.anew,
            step.again,
            {slice_.text: why for slice_, why in step.waits.items()},
            tuple(map(str, step.stages)),
            made_by(step.slices, seen.runs.get(step.name, {})),
            seen.files.get(step.name, ()),
        )


@dataclass(frozen=True, slots=True)
class SavedPlan:
    """A plan of ``project`` as a file has it. ``lakes`` are their snapshots, each with its time;
    ``inputs`` the tables that its steps read and none of them makes.
    """

    project: str
    request: RunRequest
    steps: tuple[SavedStep, ...]
    lakes: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    inputs: tuple[TableName, ...] = ()

    @classmethod
    def of(cls, plan: Plan, project: str) -> SavedPlan:
        """The plan of a project, as `Project.plan` returned it."""
        made = [step for step in plan.steps if _runs(step)]
        targets = {step.model.target for step in made}
        read = dict.fromkeys(table for step in made for table in step.model.inputs)
        return cls(
            project,
            replace(plan.request, payload=None, args=dict(_args(plan))),
            tuple(SavedStep.of(step, plan.seen) for step in made),
            plan.seen.snapshots,
            tuple(table for table in read if table not in targets),
        )

    def to_json(self, plan: Plan) -> str:
        """The text of its file, with the ranges and notices of the plan for people."""
        ranges = {step.name: [each.to_dict() for each in step.ranges] for step in plan.steps}
        value = {
            "penstock_plan": FORMAT,
            "project": self.project,
            "request": request_as_dict(self.request),
            "lakes": {
                name: {"snapshot": id_, "time": at} for name, (id_, at) in self.lakes.items()
            },
            "inputs": [[table.lake, table.schema, table.table] for table in self.inputs],
            "steps": [
                {**_as_dict(step), "ranges": ranges.get(step.step, [])} for step in self.steps
            ],
            "notices": plan.notices,
        }
        return json.dumps(value, indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def parse(cls, text: str, name: str) -> SavedPlan:
        """Read the text of the file ``name``. Raises ArgumentError where it is not a plan."""
        value = _read(text, name)
        try:
            return cls(
                value["project"],
                request_of(value["request"]),
                tuple(_step_of(each) for each in value["steps"]),
                {lake: (of["snapshot"], of["time"]) for lake, of in value["lakes"].items()},
                tuple(TableName(*each) for each in value["inputs"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ArgumentError(
                f"{name} is not a whole plan: {type(error).__name__} {error}",
                hint="save it again: penstock plan ... --out FILE",
            ) from None


def _runs(step: PlannedStep) -> bool:
    return bool(step.slices) and not step.skipped


def _args(plan: Plan) -> Iterator[tuple[str, Any]]:
    """Yield the inputs of a run that its models declare, and the values of dynamic partitions."""
    specs = (step.model.partition for step in plan.steps)
    keys = {spec.key.split(".")[1] for spec in specs if spec is not None and spec.key}
    for name, value in plan.request.inputs.items():
        if name in plan.args or name in keys:
            yield name, plan.args.get(name, value)


def _as_dict(step: SavedStep) -> dict[str, Any]:
    found = {each.name: getattr(step, each.name) for each in fields(step)}
    return {**found, "file_reads": [file.to_dict() for file in step.file_reads or ()]}


def _step_of(value: Mapping[str, Any]) -> SavedStep:
    known = {each.name: value[each.name] for each in fields(SavedStep) if each.name in value}
    known |= {"slices": tuple(known["slices"]), "stages": tuple(known["stages"])}
    if "file_reads" in known:  # older plans have none
        known["file_reads"] = tuple(InputRead(**each) for each in known["file_reads"])
    return SavedStep(**known)


def _read(text: str, name: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    version = value.get("penstock_plan") if isinstance(value, dict) else None
    if not isinstance(version, int):
        raise ArgumentError(
            f"{name} is not a Penstock plan", hint="save one: penstock plan ... --out FILE"
        )
    if version != FORMAT:
        raise ArgumentError(
            f"{name} has version {version} of plans, and this Penstock reads {FORMAT}",
            hint="save it again with this version: penstock plan ... --out FILE",
        )
    found: dict[str, Any] = value
    return found


def request_as_dict(request: RunRequest) -> dict[str, Any]:
    """Return a request as JSON has it; `request_of` reads that."""
    return {each.name: _encoded(getattr(request, each.name)) for each in fields(request)}


def _encoded(value: Any) -> Any:
    if isinstance(value, datetime):
        return {"datetime": value.isoformat()}
    if isinstance(value, date):
        return {"date": value.isoformat()}
    if isinstance(value, SliceRange):
        first, last = _encoded(value.first), _encoded(value.last)
        return {"range": {"first": first, "last": last, "all": value.all}}
    return value


def request_of(value: Mapping[str, Any]) -> RunRequest:
    """Return the request that `request_as_dict` wrote."""
    known = {each.name for each in fields(RunRequest)}
    plain = {"args", "payload"}  # whose names are the user's: one may be "date"
    return RunRequest(
        **{
            name: of if name in plain else _decoded(of)
            for name, of in value.items()
            if name in known
        }
    )


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    if not isinstance(value, dict) or len(value) != 1:
        return value
    ((kind, of),) = value.items()
    if kind == "datetime":
        return datetime.fromisoformat(of)
    if kind == "date":
        return date.fromisoformat(of)
    if kind == "range":
        return SliceRange(_decoded(of["first"]), _decoded(of["last"]), of["all"])
    return value


Runs = Mapping[str, str]  # that recorded slices, by the texts of these
Changed = Callable[[TableName, int], bool]  # whether rows of a table changed after a snapshot


@dataclass(frozen=True, slots=True)
class Now:
    """Facts of the project as it is: its models, the runs that recorded slices of one, and whether
    rows of a table have changed.
    """

    models: Mapping[str, Model]
    runs: Callable[[Model], Runs]
    changed: Changed


def made_by(slices: Sequence[Slice], runs: Runs) -> Runs:
    """Return the runs that recorded any of these slices, or a part of one."""
    texts = {each.text for each in slices}
    spans = [each for each in slices if isinstance(each, Interval)]
    return {
        text: run
        for text, run in runs.items()
        if text in texts
        or (spans and (own := interval_of(text)) and any(own.overlap(each) for each in spans))
    }


def moved(saved: SavedPlan, fresh: SavedPlan, now: Now) -> Iterator[str]:
    """Yield what differs between a saved plan and one that was made now of the same request."""
    for name, (id_, at) in saved.lakes.items():
        latest = fresh.lakes.get(name)
        if latest is None or latest[0] < id_ or (latest[0] == id_ and latest[1] != at):
            yield f"lake {name} is not as it was: it was at snapshot {id_}"
            return
    planned = {step.step: step for step in fresh.steps}
    for step in saved.steps:
        yield from _of_step(step, planned.get(step.step), now)
    known = {step.step for step in saved.steps}
    for step in fresh.steps:
        if step.step not in known:
            yield f"{step.step} {_slices(step.slices)} would be made as well"
    for table in saved.inputs:
        since = saved.lakes.get(table.lake)
        if since is not None and now.changed(table, since[0]):
            yield f"rows of {table} have changed since snapshot {since[0]}"


def _of_step(saved: SavedStep, fresh: SavedStep | None, now: Now) -> Iterator[str]:
    name = saved.step
    model = now.models.get(name)
    if model is None:
        yield f"model {name} is gone"
        return
    if model.definition_hash != saved.definition:
        yield f"the definition of {name} has changed"
        return
    runs = made_by(list(map(slice_of, saved.slices)), now.runs(model))
    again = {text: run for text, run in runs.items() if _run_of(text, saved.made_by) != run}
    if again:
        yield f"{name} {_slices(list(again))} made meanwhile by run {next(iter(again.values()))}"
    if lost := [text for text in saved.made_by if not _is_recorded(text, runs)]:
        yield f"{name} {_slices(lost)} dropped meanwhile"
    yield from _of_slices(saved, fresh or replace(saved, slices=(), waits={}), again)


def _run_of(text: str, made: Runs) -> str | None:
    """Return the run that made a slice, or the interval that it is cut from."""
    own = None if text in made else interval_of(text)
    if own is None:
        return made.get(text)
    of = (run for each, run in made.items() if (all_ := interval_of(each)) and all_.contains(own))
    return next(of, None)


def _is_recorded(text: str, runs: Runs) -> bool:
    """Return whether a slice is recorded; of an interval whether all of it is, perhaps in parts."""
    own = None if text in runs else interval_of(text)
    if own is None:
        return text in runs
    return not minus((own,), [each for part in runs if (each := interval_of(part))])


def _of_slices(saved: SavedStep, fresh: SavedStep, again: Runs) -> Iterator[str]:
    name, planned, known = saved.step, set(fresh.slices), set(saved.slices)
    gone = [text for text in saved.slices if text not in planned]
    new = [text for text in fresh.slices if text not in known]
    if gone and not made_by(list(map(slice_of, gone)), again):
        yield f"{name} {_slices(gone)} need not be made any more"
    if new and not made_by(list(map(slice_of, new)), again):
        yield f"{name} {_slices(new)} would be made as well"
    both = planned & known
    waits = [text for text in both if saved.waits.get(text) != fresh.waits.get(text)]
    if waits:
        yield f"what {name} {_slices(sorted(waits))} waits for has changed"
    if (saved.anew, saved.again) != (fresh.anew, fresh.again):
        yield f"whether and why {name} is rebuilt has changed"
    if saved.stages != fresh.stages:
        yield f"what becomes of {saved.table} has changed"
    if planned == known:
        yield from _of_files(saved, fresh)


def _of_files(saved: SavedStep, fresh: SavedStep) -> Iterator[str]:
    """Yield which files are others than they were, of the same slices."""
    if saved.file_reads is None:
        return
    before = {each.name: each for each in saved.file_reads}
    now = {each.name: each for each in fresh.file_reads or ()}
    others = [n for n in before.keys() & now.keys() if not is_as_it_was(now[n], before[n])]
    gone, new = before.keys() - now.keys(), now.keys() - before.keys()
    for names, what in ((others, "changed"), (gone, "gone"), (new, "new")):
        if names:
            yield f"files that {saved.step} reads: {what} {_listed(sorted(names))}"


def slice_of(text: str) -> Slice:
    """Return the slice that is recorded by a text."""
    interval = interval_of(text)
    if interval is not None:
        return interval
    return Part(text) if text else WHOLE


def _slices(texts: Sequence[str]) -> str:
    """``2026-01-02``, or ``2026-01-02, 2026-01-03 and 7 more``."""
    return _listed([shown(text) or "(whole table)" for text in texts])


def _listed(names: Sequence[str]) -> str:
    left = len(names) - _SHOWN
    first = ", ".join(names[:_SHOWN])
    return f"{first} and {left:,} more" if left > 0 else first


def require_unmoved(found: Iterable[str], name: str) -> None:
    """Raise PlanMoved where anything has moved since the plan ``name`` was made."""
    every = tuple(found)
    if every:
        raise PlanMoved(
            f"{name} cannot be run as it is, as this has changed since: " + "; ".join(every),
            hint="nothing was run; make the plan again: penstock plan ... --out FILE",
            data={"moved": every},
        )


def write(path: Path, text: str) -> None:
    """Write a plan to a file. Raises ArgumentError where that cannot be written."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ArgumentError(
            f"{path} cannot be written: {error.strerror}",
            hint="name a file in a directory that is there",
        ) from error


def read(path: Path, project: str) -> SavedPlan:
    """Read the plan of a project from a file. Raises ArgumentError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ArgumentError(
            f"the plan {path} cannot be read: {error}",
            hint="save one: penstock plan ... --out FILE",
        ) from error
    saved = SavedPlan.parse(text, str(path))
    if saved.project != project:
        raise ArgumentError(
            f"{path} is a plan of the project {saved.project!r}, and this is {project!r}",
            hint="run it in that project, or make a plan of this one",
        )
    return saved


def require_alone(request: RunRequest) -> None:
    """Raise ArgumentError where a run of a saved plan is given a request of its own."""
    plain = RunRequest(fire_time=request.fire_time, has_fire_time=request.has_fire_time)
    given = [f.name for f in fields(request) if getattr(request, f.name) != getattr(plain, f.name)]
    given = [name for name in given if request.inputs or name not in {"args", "payload"}]
    if given:
        raise ArgumentError(
            f"a saved plan has its own request: {', '.join(given)} cannot be given with it",
            hint="leave that out, or make a plan with it: penstock plan ... --out FILE",
        )
