"""Macros that a project writes in Python: functions marked ``@macro`` in ``macros/*.py``.

They are found without running anything; a file runs when one of its macros is first called. A
macro gets its arguments as `macro_arguments` says, and returns SQL, a value, an expression of
sqlglot's, or a list of these.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, overload

from penstock.errors import Diagnostic, Location
from penstock.model.files.python_files import PythonFile, is_called, module_of, python_files, said
from penstock.model.macros.at_scope import Call, Function, Made
from penstock.model.macros.macro_arguments import call_with, made_of
from penstock.model.macros.macro_imports import imports_of
from penstock.model.script.at_text import MacroError

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
