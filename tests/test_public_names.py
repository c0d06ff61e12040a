"""What users may import from ``penstock`` itself: adding a name is a decision."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import FunctionType

import pytest

import penstock

ROOT = Path(__file__).parents[1]


def test_the_public_names() -> None:
    assert penstock.__all__ == [
        *(
            "Column",
            "CustomMaterialization",
            "Delta",
            "Lake",
            "PartitionField",
            "PenstockError",
            "Project",
            "Resources",
        ),
        *("SortKey", "TableSchema", "lake", "macro"),
    ]
    names = [getattr(penstock, name).__name__ for name in penstock.__all__]
    assert [name.removeprefix("penstock.") for name in names] == penstock.__all__


def test_the_lake_of_a_step_is_a_function_whatever_is_imported() -> None:
    assert isinstance(penstock.Lake, type)  # of the package of lakes
    assert isinstance(penstock.lake, FunctionType)
    with pytest.raises(penstock.PenstockError, match="no run has started this code"):
        penstock.lake("main")


def test_docs_import_no_other_names() -> None:
    """What the guide has users import is pinned; modules of functions are named by their path."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    imports = [
        (page.name, names)
        for page in pages
        for names in re.findall(r"^ *from penstock import (.+)$", page.read_text(), re.M)
    ]
    assert imports
    for page, names in imports:
        assert set(names.split(", ")) <= set(penstock.__all__), page
    others = {
        module
        for page in pages
        for module in re.findall(r"^ *from (penstock\.[a-z_.]+) import", page.read_text(), re.M)
    }
    assert others <= {"penstock.lakes"}, others  # `alter`: functions over schemas


def test_another_name_is_an_attribute_error() -> None:
    name = "Pond"
    with pytest.raises(AttributeError, match="no attribute 'Pond'"):
        getattr(penstock, name)


def test_importing_penstock_loads_nothing_else() -> None:
    code = "import sys, penstock; print(*(n for n in sys.modules if n.startswith('penstock.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_packages_hold_no_code() -> None:
    """Only that of the public names has any: it loads them when they are asked for."""
    source = Path(penstock.__file__).parent
    for path in source.rglob("__init__.py"):
        body = ast.parse(path.read_text(encoding="utf-8")).body
        code = [node for node in body if not isinstance(node, ast.Expr)]
        assert path.parent == source or not code, path


def test_the_stub_has_the_public_names() -> None:
    stub = ast.parse(Path(penstock.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imported = {
        alias.name: node.module
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert sorted(imported) == sorted(penstock.__all__)
    for name, module in imported.items():
        assert module is not None
        assert getattr(import_module(module), name) is not None
