"""The states that plan, restate and status name of each slice of a model: they are the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, time
from itertools import combinations

from penstock.engine.answers.range_status import in_range
from penstock.engine.planning.make_plan import make_plan
from penstock.engine.planning.plan import Known, Plan
from penstock.engine.planning.ranges import SliceRange
from penstock.engine.planning.restate import Root, goal_of
from penstock.engine.planning.slice_states import KnownSlices
from penstock.engine.planning.slices import RunRequest
from penstock.engine.results import ModelStatus
from penstock.model.time.interval import Interval
from penstock.project.project import Project
from penstock.states import SliceState
from tests.engine.strategies.range_reference import DAY, Form, Slice, units_of

Days = tuple[date, date]


def differing(project: Project, form: Form, now: datetime, days: Days) -> str | None:
    """What is named differently, and None."""
    known, shown = dict(_known(project, form)), dict(_shown(project.status("t")[0], form, days))
    ranged = shown
    if form.slices != "whole":
        ranged = dict(_shown(_in_range(project, now, days), form, days))
    for unit in ranged:
        named = known.get(unit, SliceState.MISSING)
        others = {shown.get(unit, SliceState.MISSING), ranged[unit]} - {named}
        if others:
            return f"{unit}: a plan names it {named}, status {others}"
    if form.slices == "whole":
        return None
    counts = Counter(known.get(unit, SliceState.MISSING) for unit in ranged)
    for command, plan in _plans(project, form, now, days).items():
        (step,) = plan.steps
        assert step.tally is not None
        told = Counter(step.tally.states)
        told[SliceState.BEHIND] += told.pop(SliceState.LATE, 0)  # which this run leaves
        if told != counts:
            return f"{command} counts {dict(step.tally.states)}, there are {dict(counts)}"
    return None


def _plans(project: Project, form: Form, now: datetime, days: Days) -> Mapping[str, Plan]:
    plans = {"plan": project.plan(from_=days[0], to=days[1], fire_time=now)}
    if form.strategy != "append" and form.name != "intervals, merge":
        asked = RunRequest(select=("t",), fire_time=now, range=SliceRange(*days, all=True))
        known = _catalogs(project)
        by_name = {"t": project.model("t")}
        restates = goal_of(Root.at(project.model("t")))
        plans["restate"] = make_plan(
            by_name,
            project.graph,
            asked,
            Known(known.states, known.intervals, known.pasts),
            restates,
        )
    return plans


def _catalogs(project: Project) -> KnownSlices:
    """As a run with --behind knows them, which is as status does."""
    return project.context.slices()


def _known(project: Project, form: Form) -> Iterator[tuple[Slice, str]]:
    """As plans, runs and restatements know them."""
    known, models = _catalogs(project), [project.model("t")]
    if form.slices == "interval":
        for event in known.intervals(models)["t"].events:
            for unit in units_of(form, (event.interval.start, event.interval.end)):
                yield unit, event.state
    else:
        for text, state in known.states(models)["t"].items():
            yield text or None, state


def _in_range(project: Project, now: datetime, days: Days) -> ModelStatus:
    """What status shows of a range, as at the moment of a run."""
    intervals, models = _catalogs(project).intervals, [project.model("t")]
    (found,) = in_range(project.status("t"), models, SliceRange(*days), intervals, now)
    return found


def _shown(status: ModelStatus, form: Form, days: Days) -> Iterator[tuple[Slice, str]]:
    names = dict(_named(form, days)) if form.slices == "interval" else {}
    for each in status.slices:
        for unit in units_of(form, names.get(each.slice or "", each.slice)):
            yield unit, each.state


def _named(form: Form, days: Days) -> Iterator[tuple[str, Slice]]:
    """The intervals of a range and a little around it, by the names that status gives them."""
    first, last = (datetime.combine(day, time(), UTC) for day in days)
    moments = [first - 2 * DAY]
    while moments[-1] < last + 3 * DAY:
        moments.append(moments[-1] + form.unit)
    for start, end in combinations(moments, 2):
        yield str(Interval(start, end)), (start, end)
