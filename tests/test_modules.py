"""Each module of ``src`` has a test of its name, or is named by the test that tests it.

A test of several modules names them, as paths below ``src/penstock``, in its file's docstring.
A test function asserts something about the module: it has an ``assert`` or ``pytest.raises``, and
uses the module or a name imported from it, itself or by what its file defines. A module that is
tested through others only is in ``module_debts.toml``. That list only shrinks.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import penstock

SOURCE = Path(penstock.__file__).parent
TESTS = Path(__file__).parent
DEBTS = TESTS / "module_debts.toml"
NAMED = re.compile(r"``([\w/]+\.py)``")
RAISING = frozenset({"raises", "warns"})


def modules() -> set[str]:
    paths = (path.relative_to(SOURCE) for path in SOURCE.rglob("*.py"))
    return {path.as_posix() for path in paths if path.stem not in {"__init__", "__main__"}}


def covered() -> set[str]:
    """By the place of a test, as tests mirror ``src``, or by a docstring."""
    paths = [path.relative_to(TESTS) for path in TESTS.rglob("test_*.py")]
    mirrored = {(path.parent / path.name.removeprefix("test_")).as_posix() for path in paths}
    return mirrored | named()


@cache
def trees() -> tuple[ast.Module, ...]:
    return tuple(ast.parse(path.read_text(encoding="utf-8")) for path in TESTS.rglob("test_*.py"))


def named() -> set[str]:
    return {path for tree in trees() for path in NAMED.findall(ast.get_docstring(tree) or "")}


def imported_modules(tree: ast.Module, all_modules: Mapping[str, str]) -> dict[str, str]:
    """The modules of ``src`` by the names that a file binds to them, or to something of them."""
    bound: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                module = all_modules.get(f"{node.module}.{alias.name}") or all_modules.get(
                    node.module
                )
                if module is not None:
                    bound[alias.asname or alias.name] = module
    return bound


def names_in(node: ast.AST) -> set[str]:
    """The names that code uses; a parameter may be the name of a fixture."""
    nodes = list(ast.walk(node))
    variables = {part.id for part in nodes if isinstance(part, ast.Name)}
    return variables | {part.arg for part in nodes if isinstance(part, ast.arg)}


def definitions(tree: ast.Module) -> dict[str, set[str]]:
    """The names that each function, class and constant of a file uses."""
    uses: dict[str, set[str]] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            uses[node.name] = names_in(node)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            uses |= {name: names_in(node) for target in targets for name in names_in(target)}
    return uses


def has_assertion(function: ast.FunctionDef) -> bool:
    return any(
        isinstance(node, ast.Assert) or (isinstance(node, ast.Attribute) and node.attr in RAISING)
        for node in ast.walk(function)
    )


def names_reached(function: ast.FunctionDef, uses: Mapping[str, set[str]]) -> set[str]:
    """The names that a test uses, itself or by what its file defines."""
    reached, pending = set[str](), names_in(function)
    while pending:
        reached |= pending
        pending = set[str]().union(*(uses.get(name, ()) for name in pending)) - reached
    return reached


def asserted(tree: ast.Module, all_modules: Mapping[str, str]) -> Iterator[str]:
    """Yield the modules that the tests of a file assert something about."""
    bound, uses = imported_modules(tree, all_modules), definitions(tree)
    for node in ast.walk(tree):
        is_test = isinstance(node, ast.FunctionDef) and node.name.startswith("test")
        if isinstance(node, ast.FunctionDef) and is_test and has_assertion(node):
            yield from (bound[name] for name in names_reached(node, uses) if name in bound)


def test_a_module_has_a_test() -> None:
    missing = sorted(modules() - covered())
    assert not missing, "write tests/.../test_NAME.py, or name it in the docstring of its test"


def test_what_a_test_names_is_there() -> None:
    assert named() <= modules()


def test_a_test_asserts_something_about_each_module() -> None:
    dotted = {f"penstock.{path.removesuffix('.py').replace('/', '.')}": path for path in modules()}
    tested = {path for tree in trees() for path in asserted(tree, dotted)}
    debts = set(tomllib.loads(DEBTS.read_text(encoding="utf-8"))["modules"])
    missing = sorted(modules() - tested - debts)
    assert not missing, "import something of it in a test function that asserts what it does"
    stale = sorted(debts & tested | debts - modules())
    assert not stale, f"these are tested now: remove them from {DEBTS.name}"


def test_a_module_counts_only_where_a_test_asserts_something_of_it() -> None:
    text = """
from penstock.states import SliceState
from penstock import errors
from penstock.uuid7 import new_uuid7
from penstock.masking import masked
def made(): return errors.PenstockError("x")
def test_one():
    assert made()
def test_two():
    new_uuid7()
def helper(): assert masked("x")
"""
    dotted = {f"penstock.{name}": name for name in ("states", "errors", "uuid7", "masking")}
    assert set(asserted(ast.parse(text), dotted)) == {"errors"}
