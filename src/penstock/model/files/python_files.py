"""Python that a project writes for Penstock: found by what is in it, loaded when it is needed."""

from __future__ import annotations

import ast
import builtins
import importlib.util
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.errors import Diagnostic, Location


@dataclass(frozen=True, slots=True)
class PythonFile:
    path: Path
    tree: ast.Module

    def where(self, node: ast.stmt) -> Location:
        return Location(self.path, node.lineno, node.col_offset + 1)


def python_files(directory: Path) -> tuple[list[PythonFile], tuple[Diagnostic, ...]]:
    """The files below a directory, and why others cannot be read. Nothing runs."""
    files: list[PythonFile] = []
    findings: list[Diagnostic] = []
    for path in sorted(directory.rglob("*.py")) if directory.is_dir() else ():
        try:
            files.append(PythonFile(path, ast.parse(path.read_bytes(), str(path))))
        except (SyntaxError, ValueError, OSError) as error:
            place = Location(path, getattr(error, "lineno", None), getattr(error, "offset", None))
            message = f"the file cannot be read: {getattr(error, 'msg', error)}"
            findings.append(Diagnostic("error", message, place, "correct it", "python"))
    return files, tuple(findings)


def is_called(node: ast.expr, name: str) -> bool:
    """Return whether an expression is a name, whatever module it is of: ``name`` or ``x.name``."""
    return (isinstance(node, ast.Name) and node.id == name) or (
        isinstance(node, ast.Attribute) and node.attr == name
    )


def module_of(path: Path, imports: Callable[..., Any] | None = None) -> Any:
    """The file as a module; it runs when it is first asked for as it is now.

    ``imports`` is what it imports by in place of Python's ``__import__``.
    """
    name = f"penstock_project_{path.stem}_{abs(hash((str(path), path.stat().st_mtime_ns)))}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None, "a .py file has one"
        assert spec.loader is not None, "of the same kind"
        module = importlib.util.module_from_spec(spec)
        if imports is not None:
            vars(module)["__builtins__"] = {**vars(builtins), "__import__": imports}
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]


def said(error: BaseException, path: Path) -> str:
    """The error with the last line of the file that led to it."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path)]
    line = f":{frames[-1].lineno}" if frames else ""
    return f"{path.name}{line}: {type(error).__name__}: {error}"
