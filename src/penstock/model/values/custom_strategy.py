"""The kind CUSTOM: strategies that a project writes, classes in ``materializations/*.py``.

A class is found without running anything; its file runs when a step that it makes is run.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.errors import Diagnostic, Location
from penstock.model.files.python_code import PythonFile, is_called, python_files

DIRECTORY = "materializations"
BASE = "CustomMaterialization"
_HOOKS = ("create", "delete")
_INSERT = "write def insert(self, table, df, properties): ..."
_VALUES = 4


class CustomMaterialization:
    """A strategy of a project: what becomes of the rows that a query gives.

    ``NAME`` is what models call it; without one it is the name of the class::

        class Newest(CustomMaterialization):
            NAME = "newest"

            def insert(self, table, df, properties):
                table.replace(df.where("at >= current_date()"))
    """

    NAME = ""

    def insert(self, table: Any, df: Any, properties: Mapping[str, str]) -> None:
        """Stage the DataFrame ``df`` by the methods of ``table``, such as ``append``, ``merge``,
        ``replace``, ``delete``, ``update`` and ``overwrite`` (`penstock.lakes.staging`).

        Penstock tests what the table will be, and publishes it with the record of the run.
        ``properties`` are the ``materialization_properties`` of the model.
        """
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Materialization:
    """A class of the project. ``digest`` changes when its file does."""

    name: str
    class_name: str
    path: Path
    location: Location
    digest: str


@dataclass(frozen=True, slots=True)
class Custom:
    """What a model says of it."""

    materialization: Materialization
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def texts(self) -> tuple[object, ...]:
        """All that decides what it does, for the definition's hash."""
        return self.materialization.name, self.materialization.digest, dict(self.properties)


def materializations(
    root: Path,
) -> tuple[dict[str, Materialization], tuple[Diagnostic, ...]]:
    """Return those of a project, by their names in small letters, and what is wrong with others."""
    found: dict[str, Materialization] = {}
    files, unread = python_files(root / DIRECTORY)
    findings = [*unread]
    for file in files:
        for node in file.tree.body:
            if isinstance(node, ast.ClassDef) and any(is_called(b, BASE) for b in node.bases):
                made = _read(file, node)
                findings += _wrong(file, node, found.get(made.name.lower()))
                found.setdefault(made.name.lower(), made)
    return found, tuple(findings)


def _read(file: PythonFile, node: ast.ClassDef) -> Materialization:
    names = (_name(each) for each in node.body)
    name = next((name for name in names if name), node.name)
    digest = hashlib.sha256(ast.dump(file.tree).encode()).hexdigest()
    return Materialization(name, node.name, file.path, file.where(node), digest)


def _name(node: ast.stmt) -> str | None:
    """The text of ``NAME = "..."``."""
    if isinstance(node, ast.AnnAssign):
        targets: list[ast.expr] = [node.target]
    elif isinstance(node, ast.Assign):
        targets = node.targets
    else:
        return None
    named = any(isinstance(target, ast.Name) and target.id == "NAME" for target in targets)
    value = node.value
    text = value.value if isinstance(value, ast.Constant) else None
    return text if named and isinstance(text, str) else None


def _wrong(file: PythonFile, node: ast.ClassDef, other: Materialization | None) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    methods = {each.name: each for each in node.body if isinstance(each, ast.FunctionDef)}
    if other is not None:
        message = f"there are two materializations {other.name}, the other is in {other.path.name}"
        found.append(_error(file, node, message, "give one another NAME"))
    if "insert" not in methods:
        found.append(_error(file, node, f"{node.name} has no insert", _INSERT))
    elif not _takes_rows(methods["insert"]):
        message = f"insert of {node.name} does not take table, df and properties"
        found.append(_error(file, methods["insert"], message, _INSERT))
    for name in _HOOKS:
        if name in methods:
            message = f"{name} of a materialization is never called"
            hint = "a table is made when rows are staged, and dropped by penstock drop"
            found.append(_error(file, methods[name], message, hint))
    return found


def _takes_rows(method: ast.FunctionDef) -> bool:
    """Return whether it can be called with four values: itself, the table, the rows, the
    properties.
    """
    said = method.args
    most = len(said.posonlyargs) + len(said.args)
    least = most - len(said.defaults)
    required = [default for default in said.kw_defaults if default is None]
    return least <= _VALUES and (most >= _VALUES or said.vararg is not None) and not required


def _error(file: PythonFile, node: ast.stmt, message: str, hint: str) -> Diagnostic:
    return Diagnostic("error", message, file.where(node), hint, "materialization")
