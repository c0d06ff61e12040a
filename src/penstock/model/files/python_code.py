"""A Python file of a project as it stands, read by `ast`: nothing of it runs.

Python that a project writes for Penstock: found by what is in it, loaded when it is needed.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from penstock.errors import Diagnostic, Location


@dataclass(frozen=True)
class PythonCode:
    """``root`` is the project's directory, from which its files import each other."""

    path: Path
    text: str
    tree: ast.Module
    root: Path

    def where(self, node: ast.AST) -> Location:
        line, column = getattr(node, "lineno", None), getattr(node, "col_offset", None)
        return Location(self.path, line, None if column is None else column + 1)

    @cached_property
    def imports(self) -> Mapping[str, str]:
        """Return what each imported name stands for: ``pd`` for ``pandas``, ``Table`` for its
        module's.
        """
        found: dict[str, str] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for each in node.names:
                    first = each.name.split(".")[0]
                    found[each.asname or first] = each.name if each.asname else first
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for each in node.names:
                    found[each.asname or each.name] = f"{node.module}.{each.name}"
        return found

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """The constants of the file that are texts, by name."""
        return {name: value for name, (value, _) in self.placed_texts.items()}

    @cached_property
    def placed_texts(self) -> Mapping[str, tuple[str, ast.stmt]]:
        """The same, each with its assignment."""
        found: dict[str, tuple[str, ast.stmt]] = {}
        for node in self.tree.body:
            targets = node.targets if isinstance(node, ast.Assign) else []
            if isinstance(node, ast.AnnAssign):
                targets = [node.target]
            value = getattr(node, "value", None)
            text = _folded(value, found) if isinstance(value, ast.expr) else None
            if text is not None:
                names = (each.id for each in targets if isinstance(each, ast.Name))
                found |= dict.fromkeys(names, (text, node))
        return found

    def text_of(self, node: ast.expr | None) -> str | None:
        """The text that an expression is, where that is written down."""
        return None if node is None else _folded(node, self.placed_texts)

    def dotted(self, node: ast.expr) -> str | None:
        """The full name of ``Table``, ``pa.Table`` or ``int``."""
        if isinstance(node, ast.Name):
            return self.imports.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            before = self.dotted(node.value)
            return None if before is None else f"{before}.{node.attr}"
        return None

    def imports_module(self, name: str) -> bool:
        """Return whether the code, once it runs, imports a package; for types
        only does not count.
        """
        return any(
            module.split(".")[0] == name for node in _run(self.tree) for module in _modules(node)
        )

    @cached_property
    def digest(self) -> str:
        """Of the file, and of the files of the project that it imports, and those import."""
        known: dict[Path, str] = {}
        _collect(self.path, self.text, self.tree, self.root, known)
        parts = (
            f"{path.relative_to(self.root)}\0{known[path]}"
            for path in sorted(known)
            if path != self.path
        )
        whole = "\0".join([self.code_text, *parts])
        return hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def code_text(self) -> str:
        """The text without the comments at its top, which the header is among."""
        lines = self.text.split("\n")
        first = next(
            (
                n
                for n, line in enumerate(lines)
                if line.strip() and not line.lstrip().startswith("#")
            ),
            len(lines),
        )
        return "\n".join(line.rstrip() for line in lines[first:]).rstrip()


def read_code(
    text: str, path: Path, root: Path
) -> tuple[PythonCode | None, tuple[Diagnostic, ...]]:
    """The file's code; a finding where it is not Python."""
    try:
        return PythonCode(path, text, ast.parse(text, str(path)), root), ()
    except (SyntaxError, ValueError) as error:
        place = Location(path, getattr(error, "lineno", None), getattr(error, "offset", None))
        message = f"the file is not Python: {getattr(error, 'msg', error)}"
        hint = "correct the line; Penstock reads it as this Python does"
        return None, (Diagnostic("error", message, place, hint, "python"),)


def _folded(node: ast.expr, known: Mapping[str, tuple[str, ast.stmt]]) -> str | None:
    """The text that an expression of constants is: ``BASE + "/x"``, ``f"{BASE}/x"``."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Name(id=name):
            return known[name][0] if name in known else None
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _joined([left, right], known)
        case ast.JoinedStr(values=values):
            return _joined(values, known)
        case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
            return _folded(value, known)
    return None


def _joined(nodes: Sequence[ast.expr], known: Mapping[str, tuple[str, ast.stmt]]) -> str | None:
    texts = [_folded(node, known) for node in nodes]
    return None if None in texts else "".join(text for text in texts if text is not None)


def _run(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of what runs: not those under ``if TYPE_CHECKING``."""
    yield node
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
        children: list[ast.AST] = list(node.orelse)
    else:
        children = list(ast.iter_child_nodes(node))
    for child in children:
        yield from _run(child)


def _modules(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [each.name for each in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [node.module, *(f"{node.module}.{each.name}" for each in node.names)]
    return []


def _collect(path: Path, text: str, tree: ast.Module, root: Path, known: dict[Path, str]) -> None:
    known[path] = text
    for node in ast.walk(tree):
        for module in _modules(node):
            for file in _files(module, root):
                if file in known:
                    continue
                try:
                    own = file.read_text(encoding="utf-8-sig")
                    _collect(file, own, ast.parse(own, str(file)), root, known)
                except (OSError, SyntaxError, ValueError):
                    known[file] = ""  # the import fails when it runs, and says so


def _files(module: str, root: Path) -> Iterator[Path]:
    """The files of the project that importing a module runs."""
    parts = module.split(".")
    for length in range(1, len(parts) + 1):
        place = root.joinpath(*parts[:length])
        for file in (place.with_suffix(".py"), place / "__init__.py"):
            if file.is_file():
                yield file


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
