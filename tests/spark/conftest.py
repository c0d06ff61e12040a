"""The lake whose texts reach Spark: as tests of the lake have it."""

from tests.lake.conftest import lake, limits

__all__ = ["lake", "limits"]
