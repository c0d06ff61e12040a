"""The files of unit tests of a project, and the models that they are of. Reads no query."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from penstock.engine.planning.selection import Selection
from penstock.errors import ArgumentError, Diagnostic, Location, ModelError
from penstock.model.definition.model import Model
from penstock.model.definition.unit_test import UnitTest, read_unit_tests
from penstock.sql.identifiers import nearest

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
