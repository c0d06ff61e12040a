"""The files of unit tests of a project: their models, and the values of a run in them.

Values of a run in a unit test: its partition, its interval, its moment and its arguments.

SQLMesh's tests say an interval by ``vars: {start, end}``, the moment of the run by
``execution_time``, and single values by the names of macros: ``start_ds``. An argument that the
script declares by one of these names is that argument.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path

from penstock.engine.planning.selection import Selection
from penstock.errors import ArgumentError, Diagnostic, Location, ModelError
from penstock.model.definition.model import Model
from penstock.model.definition.tests import UnitTest, read_unit_tests
from penstock.model.script import arguments
from penstock.model.script.arguments import Argument
from penstock.model.script.constants import Bindings
from penstock.model.time.interval import Interval
from penstock.model.time.moments import read_end, read_moment, read_range
from penstock.model.time.partition import validate
from penstock.model.time.time_macros import TIMES, TYPES, argument_of, is_of_interval
from penstock.sql.identifiers import nearest
from penstock.sql.tokens import ARGUMENT

DIRECTORY = "tests"
_SUFFIXES = (".yaml", ".yml")


def find_unit_tests(root: Path) -> tuple[UnitTest, ...]:
    """The tests of the YAML files below ``tests/``, by file and place.

    Raises ModelError with all that is wrong with the files.
    """
    found: list[UnitTest] = []
    findings: list[Diagnostic] = []
    for path in sorted((root / DIRECTORY).rglob("*")):
        if path.suffix.lower() in _SUFFIXES:
            tests, wrong = read_unit_tests(text_of(path, Location(path)), path)
            found += tests
            findings += wrong
    if findings:
        raise ModelError(findings)
    return tuple(found)


def check_unit_tests(root: Path, models: Sequence[Model]) -> Iterator[Diagnostic]:
    """Yield what is wrong with the files of tests, and tests of no model. Starts no Spark."""
    try:
        tests = find_unit_tests(root)
    except ModelError as error:
        yield from error.diagnostics
    except ArgumentError as error:  # of a file that does not hold text
        yield _finding(error, root / DIRECTORY)
    else:
        for test in tests:
            try:
                model_of(test, models)
            except ArgumentError as error:
                yield _finding(error, root / DIRECTORY)


def _finding(error: ArgumentError, path: Path) -> Diagnostic:
    place = error.location or Location(path)
    return Diagnostic("error", error.message, place, error.hint, "unit-test")


def model_of(test: UnitTest, models: Sequence[Model]) -> Model:
    """The model by its name, the last part of it, or its table. Raises ArgumentError."""
    for model in models:
        names = (model.name, model.name.rsplit("/", 1)[-1], str(model.target))
        if test.model in (*names, model.target.qualified, model.target.table):
            return model
    near = nearest(test.model, [model.name for model in models])
    raise ArgumentError(
        f"model {test.model} does not exist",
        hint=f"did you mean {near}?" if near else "give a model's name or table",
        location=test.location,
    )


@dataclass(frozen=True, slots=True)
class WantedTests:
    """The unit tests that a caller asks for: by ``patterns`` of their own names, models and files,
    and by models; ``selected`` gives the names of those that a selection selects.
    """

    patterns: Sequence[str] = ()
    selection: Selection = field(default_factory=Selection)
    selected: Callable[[Selection], Collection[str]] = lambda _: ()

    def of(
        self, tests: Sequence[UnitTest], root: Path, models: Sequence[Model]
    ) -> tuple[UnitTest, ...]:
        """Return the tests that a pattern or a selected model has, all without either.

        Raises ArgumentError for a pattern of no test and no model, with the nearest name.
        """
        if not self.patterns and not self.selection:
            return tuple(tests)
        called = {id(test): _called(test, root) for test in tests}
        direct: set[int] = set()
        select = list(self.selection.select)
        for pattern in self.patterns:
            matching = {key for key, names in called.items() if _has(names, pattern)}
            direct |= matching
            if not matching:
                self._require_models(pattern, sorted({n for of in called.values() for n in of}))
                select.append(pattern)
        if not self.patterns and not select:
            direct = set(called)
        chosen = self.selected(Selection(tuple(select))) if select else ()
        within = Selection(exclude=self.selection.exclude, to=self.selection.to)
        allowed = self.selected(within) if within else None
        of = {id(test): _model_name(test, models) for test in tests}
        wanted = (test for test in tests if id(test) in direct or of[id(test)] in chosen)
        return tuple(test for test in wanted if allowed is None or of[id(test)] in allowed)

    def _require_models(self, pattern: str, known: Sequence[str]) -> None:
        try:
            self.selected(Selection((pattern,)))
        except ArgumentError as error:
            near = nearest(pattern, known)
            hint = f"did you mean {near}?" if near else error.hint
            message = f"no unit test, model or file of tests is {pattern!r}"
            raise ArgumentError(message, hint=hint) from None


def _model_name(test: UnitTest, models: Sequence[Model]) -> str:
    with suppress(ArgumentError):  # `check` says so, and the result of the test
        return model_of(test, models).name
    return test.model


def _has(names: Iterable[str], pattern: str) -> bool:
    return any(fnmatchcase(name, pattern) for name in names)


def _called(test: UnitTest, root: Path) -> tuple[str, ...]:
    path = Path(test.location.path).relative_to(root).as_posix()
    return test.name, test.model, path, f"{path}::{test.name}"


def text_of(path: Path, location: Location) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        message = f"the file {path.name} cannot be read: {error}"
        raise ArgumentError(message, hint="save it as UTF-8", location=location) from None


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
START, END, NOW = "start", "end", "execution_time"
_BOUNDS = (arguments.PARTITION_START, arguments.PARTITION_END)


def bindings_of(model: Model, test: UnitTest) -> Bindings:
    """Raises ArgumentError for what the model does not have, and what it needs and is not said."""
    by_time, spec = model.by_time, model.partition
    if test.partition is not None and spec is None and by_time is None:
        raise ArgumentError(f"{model.name} is not partitioned", hint="remove partition:")
    if spec is not None and test.partition is None and model.query.uses_partition:
        raise ArgumentError(
            f"{test.name} says no partition, and {model.name} is partitioned {spec.kind}",
            hint="add partition: VALUE to the test",
        )
    if spec is not None and test.partition is not None:
        validate(spec, test.partition)
    # The run says the others, and no test by their names.
    declared = {
        a.name: a
        for a in model.query.arguments
        if a.name not in TYPES and a.name not in arguments.OF_SLICE
    }
    times = {name: value for name, value in test.values.items() if name not in declared}
    own = {name: value for name, value in test.values.items() if name in declared}
    arguments.unknown([name for name in times if not _is_time(name)], list(declared))
    now = _now(times)
    interval = _interval(model, test, times, now)
    texts = {name: arguments.text_of(declared[name], _json(value)) for name, value in own.items()}
    partition = test.partition if spec is not None else None
    known = _macros(model, times)
    needed = [each for each in model.query.arguments if each.name not in known]
    if interval is None and spec is None and _needs_interval(model, needed):
        raise _no_interval(model, test)
    bound = arguments.bind(
        needed, texts, partition=partition, spec=spec, interval=interval, now=now
    )
    return Bindings(partition, {**bound, **known})


def _needs_interval(model: Model, needed: Sequence[Argument]) -> bool:
    tokens = (token for part in model.query.parts for token in part.statement.tokens)
    return any(is_of_interval(argument.name) for argument in needed) or any(
        token.kind == ARGUMENT and token.value in _BOUNDS for token in tokens
    )


def _is_time(name: str) -> bool:
    return name in (START, END, NOW) or name in TIMES


def _now(times: Mapping[str, object]) -> datetime:
    if times.get(NOW) is None:
        return datetime.now(UTC)
    return _moment(NOW, _text(times[NOW]))


def _moment(
    name: str, text: str, read: Callable[[str, datetime], datetime] = read_moment
) -> datetime:
    try:
        return read(text, datetime.now(UTC))
    except (ValueError, OverflowError):
        raise ArgumentError(
            f"{name} is {text!r}, which is not a moment",
            hint="write a date, 2024-01-31, or a moment, 2024-01-31 06:00:00",
        ) from None


def _interval(
    model: Model, test: UnitTest, times: Mapping[str, object], now: datetime
) -> Interval | None:
    """The interval that the query is about; None where nothing says it, and it matters."""
    start = test.start if test.start is not None else times.get(START)
    end = test.end if test.end is not None else times.get(END)
    by_time = model.by_time
    if start is None and end is None and test.partition is not None and by_time is not None:
        (interval,) = by_time.whole((read_range(test.partition, test.partition, now),))
        return interval
    if start is not None and end is not None:
        return read_range(_text(start), _text(end), now)
    if end is not None:
        last = _moment(END, _text(end), read_end)
        before = last - timedelta(microseconds=1)
        return Interval(_EPOCH, last) if by_time is None else by_time.unit.at(before)
    if start is not None:
        first = _moment(START, _text(start))
        return Interval(first, now) if by_time is None else by_time.unit.at(first)
    # A whole table is made of all that was, as in a run.
    return Interval(_EPOCH, now) if by_time is None else None


def _macros(model: Model, times: Mapping[str, object]) -> dict[str, object]:
    """The values of macros that are said one by one, by the arguments that stand for them."""
    known: dict[str, object] = {}
    for argument in model.query.arguments:
        name = next((name for name in times if argument_of(name) == argument.name), None)
        if name is not None:
            value = Argument(name, argument.type)
            known[argument.name] = arguments.convert(value, _text(times[name]))
    return known


def _no_interval(model: Model, test: UnitTest) -> ArgumentError:
    by_time = model.by_time
    unit = "" if by_time is None else f" (by {by_time.unit})"
    return ArgumentError(
        f"{test.name} says no interval of time, and the query of {model.name} is about one{unit}",
        hint="add start: 2024-01-31 and end: 2024-01-31 to the test, or to its vars, as SQLMesh "
        "has them",
    )


def _text(value: object) -> str:
    return value.isoformat() if isinstance(value, date) else str(value)


def _json(value: object) -> object:
    """A value of YAML as one of JSON: dates are texts there."""
    return value.isoformat() if isinstance(value, date) else value
