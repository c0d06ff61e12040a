"""What counts as a binding, and which names are vague."""

from __future__ import annotations

import ast
from pathlib import Path

from scripts.check_names import bound_names, count_names

TEXT = """
class Reader:
    def read(self, path, *found, **options):
        for each in found:
            total = each
        return [item for item in path]
"""


def test_parameters_and_assigned_names_are_bindings() -> None:
    names = sorted(bound_names(ast.parse(TEXT)))
    assert names == ["each", "found", "item", "options", "path", "total"]


def test_a_function_word_is_vague_with_underscores_too(tmp_path: Path) -> None:
    (tmp_path / "reader.py").write_text(TEXT + "_found = 1\n")
    (tmp_path / "writer.py").write_text("table = 1\n")
    count = count_names(tmp_path)
    assert (count.bindings, dict(count.words)) == (8, {"found": 2, "each": 1})
    assert dict(count.files) == {tmp_path / "reader.py": 3}
    assert count.share == 37.5


def test_no_binding_has_no_share(tmp_path: Path) -> None:
    assert count_names(tmp_path).share == 0
