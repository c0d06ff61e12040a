"""Retries and rollbacks among edits and runs of models that read each other; ``input_hunt --again``
tries hundreds.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import duck
from tests.engine.strategies import input_again


@pytest.mark.parametrize("seed", range(4))
def test_retries_and_rollbacks_come_out_as_by_the_reference(tmp_path: Path, seed: int) -> None:
    """DuckDB makes the rows: see `input_runs`."""
    duck.required()
    assert input_again.wrong(None, tmp_path / "s", seed) is None
