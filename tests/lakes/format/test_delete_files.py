"""Numbers of rows."""

from __future__ import annotations

import pyarrow as pa
import pytest

from penstock.lakes.format.files import sequence


@pytest.mark.parametrize("count", [0, 1, 2, 1000])
def test_from_0_on(count: int) -> None:
    numbers = sequence(count)
    assert isinstance(numbers, pa.Int64Array)
    assert numbers.to_pylist() == list(range(count))
