"""What is named late is loaded when something of it is used, and not before."""

from __future__ import annotations

import subprocess
import sys

import pytest

from penstock.lazy import Late

LATE = """
import sys
from penstock.lazy import exp, pa, pc, pq
big = {"pyarrow", "pyarrow.compute", "pyarrow.parquet", "sqlglot"}
assert not big & set(sys.modules), big & set(sys.modules)
pa.int64(); pc.any; pq.ParquetFile; exp.Select
assert big <= set(sys.modules)
"""


def test_nothing_loads_before_its_first_use() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", LATE], check=False, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr


def test_an_attribute_is_looked_up_once() -> None:
    late = Late("json")
    assert "dumps" not in vars(late)
    assert late.dumps([1]) == "[1]"
    assert "dumps" in vars(late)
    with pytest.raises(AttributeError, match="nothing_like_it"):
        _ = late.nothing_like_it
