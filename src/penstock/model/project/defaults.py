"""Defaults of a project in the declarations of its models, which win where they say something.

Lists (tags, data tests) are added to the model's own. No default changes what a definition means,
so no slice gets stale by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from penstock.errors import Diagnostic, Location
from penstock.model.headers.annotation import parse
from penstock.model.headers.draft import Annotations
from penstock.model.script.declaration import Declaration
from penstock.model.time.cron import Cron
from penstock.model.time.moments import read_moment
from penstock.model.time.partition import TIME_KINDS
from penstock.model.values.data_test import DataTest, ExpressionTest
from penstock.model.values.schedule import OPTIONS, Retry, Schedule
from penstock.settings.project_settings import ModelDefaults


@dataclass(frozen=True, slots=True)
class FolderDefaults:
    """Defaults for the models below a folder; ``data_tests`` with their places."""

    folder: str
    values: Mapping[str, str]
    tags: tuple[str, ...] = ()
    data_tests: tuple[tuple[DataTest, Location], ...] = ()
    retry: Retry | None = None

    def holds(self, name: str) -> bool:
        return not self.folder or name.startswith(f"{self.folder}/")


@dataclass(frozen=True, slots=True)
class Defaults:
    """Those of a project, outer folders first."""

    folders: tuple[FolderDefaults, ...] = ()
    places: tuple[Location, ...] = field(default=(), compare=False, repr=False)

    def applied(self, declaration: Declaration, name: str) -> Declaration:
        """``declaration`` of the model of this name, with what it does not say itself."""
        mine = [each for each in self.folders if each.holds(name)]
        if not mine:
            return declaration
        values = {key: value for each in mine for key, value in each.values.items()}
        retry = next((each.retry for each in reversed(mine) if each.retry), None)
        about = declaration.about
        if about.owner is None:
            about = replace(about, owner=values.get("owner"))
        tags = (*declaration.tags, *(tag for each in mine for tag in each.tags))
        declaration = replace(
            declaration,
            about=about,
            tags=tuple(dict.fromkeys(tags)),
            retry=declaration.retry or retry,
            schedule=_with_cron(declaration.schedule, values),
        )
        return _with_tests(_with_times(declaration, values), mine)

    def idle(self, names: Sequence[str]) -> Iterator[Diagnostic]:
        """Folders that no model of these names is in."""
        for each, place in zip(self.folders, self.places, strict=True):
            if not any(map(each.holds, names)):
                message = f"no model is below the folder {each.folder!r} of these defaults"
                hint = "name it as below the models directory: marts, or marts/sales"
                yield Diagnostic("warning", message, place, hint, "defaults-folder")


def _with_times(declaration: Declaration, values: Mapping[str, str]) -> Declaration:
    """``start`` and ``cron``, where the model does not say when it begins, and when it is due."""
    spec, start = declaration.partition, values.get("start")
    if spec is not None:
        if start is None or spec.start is not None or spec.kind not in TIME_KINDS:
            return declaration
        return replace(declaration, partition=replace(spec, start=start[:10]))
    cadence = declaration.cadence
    said = {"cron", "interval_unit"} & declaration.places.keys()
    cadence = replace(
        cadence,
        start=cadence.start or start,
        cron=cadence.cron if said else values.get("cron"),
        cron_tz=cadence.cron_tz or values.get("cron_tz"),
    )
    by_time = declaration.time_range
    return replace(
        declaration,
        cadence=cadence,
        time_range=None if by_time is None else replace(by_time, cadence=cadence),
    )


def _with_cron(schedule: Schedule, values: Mapping[str, str]) -> Schedule:
    """``cron`` and its zone for a line ``on schedule`` that lacks them."""
    triggers = (
        replace(
            trigger,
            cron=trigger.cron or values.get("cron"),
            tz=trigger.tz or values.get("cron_tz"),
        )
        if "cron" in OPTIONS.get(trigger.kind, ())
        else trigger
        for trigger in schedule.triggers
    )
    return replace(schedule, triggers=tuple(triggers))


def _with_tests(declaration: Declaration, mine: Sequence[FolderDefaults]) -> Declaration:
    if not declaration.strategy.takes_tests:
        return declaration
    own = declaration.data_tests
    more = [(test, at) for each in mine for test, at in each.data_tests if test not in own]
    places = {f"data_test:{n}": at for n, (_, at) in enumerate(more, start=len(own))}
    return replace(
        declaration,
        data_tests=(*own, *(test for test, _ in more)),
        places={**declaration.places, **places},
    )


def read(settings: Iterable[ModelDefaults]) -> tuple[Defaults, tuple[Diagnostic, ...]]:
    """Defaults by their meaning, and what is wrong with them."""
    found: list[FolderDefaults] = []
    places: list[Location] = []
    findings: list[Diagnostic] = []
    for each in settings:
        findings += _of_values(each)
        tests = _lines(each, "data_tests", "data_test", findings)
        retries = _lines(each, "retry", "retry", findings)
        texts = {key: value for key, value in each.values.items() if isinstance(value, str)}
        tags = each.values.get("tags", ())
        found.append(
            FolderDefaults(
                each.folder,
                texts,
                tags if isinstance(tags, tuple) else (),
                tuple(
                    (replace(test, location=place), place)
                    if isinstance(test, ExpressionTest)
                    else (test, place)
                    for annotations, place in tests
                    for test in annotations.data_tests
                ),
                next((said.retry for said, _ in retries), None),
            )
        )
        places.append(next(iter(each.places.values())))
    return Defaults(tuple(found), tuple(places)), tuple(findings)


def _of_values(defaults: ModelDefaults) -> Iterator[Diagnostic]:
    readers: Mapping[str, Callable[[str], object]] = {
        "start": _start,
        "cron": lambda text: Cron(text).check(),
        "cron_tz": ZoneInfo,
    }
    hints = {
        "start": "write a date, such as 2024-01-31",
        "cron": "write @daily, or five fields such as 0 6 * * *",
        "cron_tz": "write a zone such as Europe/Berlin",
    }
    for key, reader in readers.items():
        value = defaults.values.get(key)
        if value is None:
            continue
        try:
            reader(str(value))
        except (ValueError, OverflowError, OSError, KeyError):
            message = f"{key} = {value!r} cannot be read"
            yield Diagnostic("error", message, defaults.places[key], hints[key], "defaults")


def _start(text: str) -> datetime:
    """A fixed moment: slices do not begin at another each day."""
    datetime.fromisoformat(text)
    return read_moment(text, datetime.now(UTC))


def _lines(
    defaults: ModelDefaults, key: str, keyword: str, findings: list[Diagnostic]
) -> list[tuple[Annotations, Location]]:
    """Values as lines of a header, each read on its own."""
    given, said = defaults.values.get(key, ()), []
    for text in (given,) if isinstance(given, str) else given:
        place = defaults.places[key]
        read_, wrong = parse(f"-- {keyword} {text}", Path(place.path))
        hint = next((finding.hint for finding in wrong), None)
        if wrong:
            message = f"{key}: {text!r} cannot be read as `-- {keyword} {text}`"
            findings.append(Diagnostic("error", message, place, hint, "defaults"))
        else:
            said.append((read_, place))
    return said
