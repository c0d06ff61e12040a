"""Macros that a project writes in Python: functions marked ``@macro`` in ``macros/*.py``.

They are found without running anything; a file runs when one of its macros is first called. A
macro gets the texts of its arguments and returns SQL, or a list of it.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, overload

from penstock.errors import Diagnostic, Location
from penstock.model.at_macros import Function, MacroError

DIRECTORY = "macros"
F = TypeVar("F", bound=Callable[..., Any])


@overload
def macro(function: F) -> F: ...
@overload
def macro() -> Callable[[F], F]: ...
def macro(function: F | None = None) -> F | Callable[[F], F]:
    """Mark a function of ``macros/*.py`` as a macro: ``@name(...)`` in the project's scripts."""
    return (lambda marked: marked) if function is None else function


@dataclass(frozen=True, slots=True)
class _Found:
    name: str
    location: Location


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
        first: dict[str, _Found] = {}
        findings: list[Diagnostic] = []
        directory = root / DIRECTORY
        for path in sorted(directory.rglob("*.py")) if directory.is_dir() else ():
            try:
                found = list(_marked(path))
            except (SyntaxError, ValueError, OSError) as error:
                line = getattr(error, "lineno", None)
                message = f"the file cannot be read: {getattr(error, 'msg', error)}"
                place = Location(path, line, getattr(error, "offset", None))
                findings.append(Diagnostic("error", message, place, "mend it", "macro"))
                continue
            for each in found:
                other = first.setdefault(each.name.lower(), each)
                if other is not each:
                    where = f"{other.location.path}:{other.location.line}"
                    message = f"there are two macros @{each.name}, the other is at {where}"
                    hint = "give one another name"
                    findings.append(Diagnostic("error", message, each.location, hint, "macro"))
                macros.functions[each.name.lower()] = macros._function(path, each.name)
        macros.findings = tuple(findings)
        return macros

    def _function(self, path: Path, name: str) -> Function:
        def call(plain: Sequence[str], named: Mapping[str, str]) -> str:
            self.called += 1
            try:
                return _text(getattr(_module(path), name)(*plain, **named))
            except Exception as error:  # of the project's code: it is said with its place
                raise MacroError(_said(error, path, name), f"mend @{name} in {path.name}") from None

        return call


def _marked(path: Path) -> Iterator[_Found]:
    tree = ast.parse(path.read_text(encoding="utf-8-sig"), str(path))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and any(map(_is_macro, node.decorator_list)):
            yield _Found(node.name, Location(path, node.lineno, node.col_offset + 1))


def _is_macro(node: ast.expr) -> bool:
    """``@macro``, ``@macro()`` or ``@penstock.macro``."""
    called = node.func if isinstance(node, ast.Call) else node
    return (isinstance(called, ast.Name) and called.id == "macro") or (
        isinstance(called, ast.Attribute) and called.attr == "macro"
    )


def _module(path: Path) -> Any:
    name = f"penstock_macros_{path.stem}_{abs(hash((str(path), path.stat().st_mtime_ns)))}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None, "a .py file has one"
        assert spec.loader is not None, "of the same kind"
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]


def _text(made: object) -> str:
    if made is None:
        return ""
    if isinstance(made, str):
        return made
    if isinstance(made, list | tuple) and all(isinstance(each, str) for each in made):
        return ", ".join(made)
    raise TypeError(f"it returned {type(made).__name__}, and a macro returns SQL or a list of it")


def _said(error: Exception, path: Path, name: str) -> str:
    """The error, and the last line of the project's file that led to it."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path)]
    line = f":{frames[-1].lineno}" if frames else ""
    return f"@{name} failed at {path.name}{line}: {type(error).__name__}: {error}"
