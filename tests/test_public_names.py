"""What users may import from ``penstock`` itself: adding a name is a decision."""

from __future__ import annotations

import subprocess
import sys

import pytest

import penstock


def test_the_public_names() -> None:
    assert penstock.__all__ == ["Lake", "Project"]
    assert [getattr(penstock, name).__name__ for name in penstock.__all__] == penstock.__all__


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Pond'"):
        penstock.Pond  # noqa: B018 - asking is the test


def test_importing_penstock_loads_nothing_else() -> None:
    code = "import sys, penstock; print(*(n for n in sys.modules if n.startswith('penstock.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
