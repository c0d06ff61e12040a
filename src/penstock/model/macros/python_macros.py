"""Macros that a project writes in Python: functions marked ``@macro`` in ``macros/*.py``.

They are found without running anything; a file runs when one of its macros is first called. A
macro gets its arguments as `macro_arguments` says, and returns SQL, a value, an expression of
sqlglot's, or a list of these.

SQLMesh's macros begin with ``from sqlmesh import macro``. Their files get a stand-in with what such
files use, through an ``__import__`` of their own: nothing outside of them sees it, and a name that
it lacks is looked for in SQLMesh where that is installed.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any, NewType, TypeVar, overload

from penstock.errors import Diagnostic, Location
from penstock.model.files.python_code import PythonFile, is_called, module_of, python_files, said
from penstock.model.macros.at_scope import Call, Function, Made
from penstock.model.macros.macro_arguments import EVALUATED, MacroEvaluator, call_with, made_of
from penstock.model.script.at_text import MacroError

SQLMESH, MACROS = "sqlmesh", "macros"
Importer = Callable[..., Any]


class RuntimeStage(Enum):
    """The stages that SQLMesh evaluates macros in; here each is evaluated once, for the query."""

    LOADING = "loading"
    CREATING = "creating"
    EVALUATING = "evaluating"
    PROMOTING = "promoting"
    DEMOTING = "demoting"
    AUDITING = "auditing"
    TESTING = "testing"
    BEFORE_ALL = "before_all"
    AFTER_ALL = "after_all"


class SQLMeshError(Exception):
    """Raised by macros written for SQLMesh."""


class MacroEvalError(SQLMeshError):
    """An error in the evaluation of a macro."""


class _OnlyAType:
    """Stands in annotations for a class that macros are handed by SQLMesh alone."""


def sqlmesh_macro(*_: object, **__: object) -> Callable[[Any], Any]:
    """``@macro()``, ``@macro("name")``: mark a function whose first parameter is the evaluator."""

    def mark(function: Any) -> Any:
        setattr(function, EVALUATED, True)
        return function

    return mark


SQL = NewType("SQL", str)
_MACROS: Mapping[str, object] = {
    "macro": sqlmesh_macro,
    "SQL": SQL,
    "MacroEvaluator": MacroEvaluator,
    "RuntimeStage": RuntimeStage,
}
_ERRORS: Mapping[str, object] = {"SQLMeshError": SQLMeshError, "MacroEvalError": MacroEvalError}
_CONTEXTS: Mapping[str, object] = {"ExecutionContext": _OnlyAType, "EngineAdapter": _OnlyAType}
#: the modules of the stand-in with their names
_MODULES: Mapping[str, Mapping[str, object]] = {
    "sqlmesh": {"macro": sqlmesh_macro, "SQL": SQL, **_CONTEXTS},
    "sqlmesh.core": {},
    "sqlmesh.core.macros": _MACROS,
    "sqlmesh.core.context": _CONTEXTS,
    "sqlmesh.core.engine_adapter": _CONTEXTS,
    "sqlmesh.utils": {},
    "sqlmesh.utils.errors": _ERRORS,
}


class _StandIn(ModuleType):
    """A module of SQLMesh; what it lacks is SQLMesh's own where that is installed."""

    def __getattr__(self, name: str) -> Any:
        full = f"{self.__name__}.{name}"
        if full in _MODULES:
            return _module(full)
        if name.startswith("__"):
            raise AttributeError(name)
        if importlib.util.find_spec(SQLMESH) is None:
            raise ImportError(f"{full} needs SQLMesh, which is not installed")
        return getattr(importlib.import_module(self.__name__), name)


def _module(name: str) -> _StandIn:
    module = _StandIn(name)
    module.__dict__.update(_MODULES[name])
    return module


def imports_of(directory: Path, path: Path) -> Importer:
    """The ``__import__`` of a file below ``directory``, the project's ``macros/``."""

    def own_import(
        name: str,
        globals_: Mapping[str, object] | None = None,
        locals_: Mapping[str, object] | None = None,
        fromlist: Sequence[str] = (),
        level: int = 0,
    ) -> Any:
        if level == 0 and name in _MODULES:
            return _module(name if fromlist else SQLMESH)
        place = _place(name, level, directory, path)
        found = None if place is None else _of_project(place, fromlist or (), directory)
        if found is not None:
            return found
        return builtins.__import__(name, globals_, locals_, fromlist, level)

    return own_import


def _place(name: str, level: int, directory: Path, path: Path) -> Path | None:
    """Return where a module of ``macros/`` would be: ``macros.a``, ``.a``; None for any other."""
    parts = name.split(".") if name else []
    if level:
        return path.parents[level - 1].joinpath(*parts)
    return directory.joinpath(*parts[1:]) if parts[0] == MACROS else None


def _of_project(place: Path, names: Sequence[str], directory: Path) -> ModuleType | None:
    """The module at a place, or of a directory those of its files that are named."""
    file = place.with_suffix(".py") if place != directory else place / "__init__.py"
    if file.is_file() and place != directory:
        module: ModuleType = module_of(file, imports_of(directory, file))
        return module
    files = {name: place / f"{name}.py" for name in names}
    if not files or not all(path.is_file() for path in files.values()):
        return None
    package = ModuleType(place.name)
    for name, path in files.items():
        setattr(package, name, module_of(path, imports_of(directory, path)))
    return package


DIRECTORY = "macros"
F = TypeVar("F", bound=Callable[..., Any])


@overload
def macro(function: F) -> F: ...
@overload
def macro(function: str | None = None) -> Callable[[F], F]: ...
def macro(function: F | str | None = None) -> F | Callable[[F], F]:
    """Mark a function of ``macros/*.py`` as a macro, ``@name(...)`` in the project's scripts;
    ``@macro("other_name")`` gives it another name::

    @macro
    def half(column):
        return f"{column} / 2"
    """
    return function if callable(function) else lambda marked: marked


@dataclass(slots=True)
class PythonMacros:
    """The macros of a project. ``called`` grows with each that was called."""

    functions: dict[str, Function] = field(default_factory=dict)
    findings: tuple[Diagnostic, ...] = ()
    called: int = 0

    @classmethod
    def of(cls, root: Path) -> PythonMacros:
        """Find them below a project's ``macros/``."""
        macros = cls()
        first: dict[str, Location] = {}
        directory = root / DIRECTORY
        files, unread = python_files(directory)
        findings = [*unread]
        for file in files:
            for name, function, location in _marked(file):
                other = first.setdefault(name.lower(), location)
                if other is not location:
                    where = f"{other.path}:{other.line}"
                    message = f"there are two macros @{name}, the other is at {where}"
                    hint = "give one another name"
                    findings.append(Diagnostic("error", message, location, hint, "macro"))
                macros.functions[name.lower()] = macros._function(
                    file.path, name, function, directory
                )
        macros.findings = tuple(findings)
        return macros

    def _function(self, path: Path, name: str, function: str, directory: Path) -> Function:
        def call(given: Call) -> Made:
            self.called += 1
            try:
                module = module_of(path, imports_of(directory, path))
                return made_of(call_with(getattr(module, function), given), given.scope.dialect)
            except Exception as error:  # of the project's code: it is said with its place
                hint = getattr(error, "hint", None) or f"fix @{name} in {path.name}"
                raise MacroError(f"@{name} failed at {said(error, path)}", hint) from None

        return call


def _marked(file: PythonFile) -> Iterator[tuple[str, str, Location]]:
    """The macros of a file: functions under ``@macro``, ``@macro('name')`` or ``@x.macro()``, by
    the names of the macros, with those of the functions.
    """
    for node in file.tree.body:
        if isinstance(node, ast.FunctionDef):
            for mark in node.decorator_list:
                if is_called(mark.func if isinstance(mark, ast.Call) else mark, "macro"):
                    yield _name(mark) or node.name, node.name, file.where(node)
                    break


def _name(mark: ast.expr) -> str | None:
    """The name that a decorator gives, as ``"x"`` or ``name="x"``."""
    if not isinstance(mark, ast.Call):
        return None
    given = [*mark.args[:1], *(each.value for each in mark.keywords if each.arg == "name")]
    names = [each.value for each in given if isinstance(each, ast.Constant)]
    return next((name for name in names if isinstance(name, str) and name), None)
