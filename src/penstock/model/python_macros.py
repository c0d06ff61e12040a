"""Macros that a project writes in Python: functions marked ``@macro`` in ``macros/*.py``.

They are found without running anything; a file runs when one of its macros is first called. A
macro gets the texts of its arguments and returns SQL, or a list of it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, overload

from penstock.errors import Diagnostic, Location
from penstock.model.at_macros import Function, MacroError
from penstock.model.python_files import PythonFile, is_called, module_of, python_files, said

DIRECTORY = "macros"
F = TypeVar("F", bound=Callable[..., Any])


@overload
def macro(function: F) -> F: ...
@overload
def macro() -> Callable[[F], F]: ...
def macro(function: F | None = None) -> F | Callable[[F], F]:
    """Mark a function of ``macros/*.py`` as a macro, ``@name(...)`` in the project's scripts::

    @macro
    def half(column):
        return f"{column} / 2"
    """
    return (lambda marked: marked) if function is None else function


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
        files, unread = python_files(root / DIRECTORY)
        findings = [*unread]
        for file in files:
            for name, location in _marked(file):
                other = first.setdefault(name.lower(), location)
                if other is not location:
                    where = f"{other.path}:{other.line}"
                    message = f"there are two macros @{name}, the other is at {where}"
                    hint = "give one another name"
                    findings.append(Diagnostic("error", message, location, hint, "macro"))
                macros.functions[name.lower()] = macros._function(file.path, name)
        macros.findings = tuple(findings)
        return macros

    def _function(self, path: Path, name: str) -> Function:
        def call(plain: Sequence[str], named: Mapping[str, str]) -> str:
            self.called += 1
            try:
                return _text(getattr(module_of(path), name)(*plain, **named))
            except Exception as error:  # of the project's code: it is said with its place
                hint = f"mend @{name} in {path.name}"
                raise MacroError(f"@{name} failed at {said(error, path)}", hint) from None

        return call


def _marked(file: PythonFile) -> Iterator[tuple[str, Location]]:
    """The functions under ``@macro``, ``@macro()`` or ``@penstock.macro``."""
    for node in file.tree.body:
        if isinstance(node, ast.FunctionDef):
            marks = (m.func if isinstance(m, ast.Call) else m for m in node.decorator_list)
            if any(is_called(mark, "macro") for mark in marks):
                yield node.name, file.where(node)


def _text(made: object) -> str:
    if made is None:
        return ""
    if isinstance(made, str):
        return made
    if isinstance(made, list | tuple) and all(isinstance(each, str) for each in made):
        return ", ".join(made)
    raise TypeError(f"it returned {type(made).__name__}, and a macro returns SQL or a list of it")
