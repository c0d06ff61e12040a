"""Each module of ``src`` has a test of its name, or is named by the test that tests it.

A test of several modules names them, as paths below ``src/penstock``, in its file's docstring.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import penstock

SOURCE = Path(penstock.__file__).parent
TESTS = Path(__file__).parent
NAMED = re.compile(r"``([\w/]+\.py)``")


def modules() -> set[str]:
    paths = (path.relative_to(SOURCE) for path in SOURCE.rglob("*.py"))
    return {path.as_posix() for path in paths if path.stem not in {"__init__", "__main__"}}


def covered() -> set[str]:
    """By the place of a test, as tests mirror ``src``, or by a docstring."""
    paths = [path.relative_to(TESTS) for path in TESTS.rglob("test_*.py")]
    mirrored = {(path.parent / path.name.removeprefix("test_")).as_posix() for path in paths}
    return mirrored | named()


def named() -> set[str]:
    texts = (path.read_text(encoding="utf-8") for path in TESTS.rglob("test_*.py"))
    docstrings = (ast.get_docstring(ast.parse(text)) or "" for text in texts)
    return {path for docstring in docstrings for path in NAMED.findall(docstring)}


def test_a_module_has_a_test() -> None:
    missing = sorted(modules() - covered())
    assert not missing, "write tests/.../test_NAME.py, or name it in the docstring of its test"


def test_what_a_test_names_is_there() -> None:
    assert named() <= modules()
