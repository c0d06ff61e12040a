"""The dbt adapter against a part of dbt's own suite, in an environment that has dbt: ``.venv-dbt``.

The whole is `make dbt-tests`.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ADAPTER = Path(__file__).parents[2] / "adapters" / "dbt"
PYTHON = ADAPTER.parents[1] / ".venv-dbt" / "bin" / "python"
CHOSEN = (
    "TestSimpleMaterializations or TestSnapshotTimestamp or TestBaseIncrementalNotSchemaChange"
    " or unit or staged"
)


@pytest.mark.skipif(not PYTHON.exists(), reason="`make test` makes .venv-dbt")
def test_a_part_of_the_suite_of_dbt_passes() -> None:
    paths = ("tests/unit", "tests/conformance/test_basic.py", "tests/test_staged.py")
    command = [str(PYTHON), "-m", "pytest", "-q", "--tb=short", "-k", CHOSEN, *paths]
    ran = subprocess.run(
        command, cwd=ADAPTER, capture_output=True, text=True, timeout=500, check=False
    )
    assert ran.returncode == 0, ran.stdout[-6000:]
