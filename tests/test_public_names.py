"""What users may import from ``penstock`` itself: adding a name is a decision."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

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


def test_the_lake_of_a_step_is_the_package_called() -> None:
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
    assert others <= {"penstock.lake"}, others  # `alter`: functions over schemas


def test_another_name_is_an_attribute_error() -> None:
    name = "Pond"
    with pytest.raises(AttributeError, match="no attribute 'Pond'"):
        getattr(penstock, name)


def test_importing_penstock_loads_nothing_else() -> None:
    code = "import sys, penstock; print(*(n for n in sys.modules if n.startswith('penstock.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
