"""Provide imports of ``macros/`` that are nowhere installed: SQLMesh's names, and each other.

SQLMesh's macros begin with ``from sqlmesh import macro``. Their files get a stand-in with what such
files use, through an ``__import__`` of their own: nothing outside of them sees it, and a name that
it lacks is looked for in SQLMesh where that is installed.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any, NewType

from penstock.model.files.python_files import module_of
from penstock.model.macros.macro_arguments import EVALUATED
from penstock.model.macros.macro_evaluator import MacroEvaluator

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
