"""The files of unit tests of a project, and the models that they are of. Reads no query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

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


def text_of(path: Path, location: Location) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        message = f"the file {path.name} cannot be read: {error}"
        raise ArgumentError(message, hint="save it as UTF-8", location=location) from None
