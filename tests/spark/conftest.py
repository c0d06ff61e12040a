"""The lake whose texts reach Spark: as tests of the lake have it."""

from tests.lakes.conftest import lake, limits

__all__ = ["lake", "limits"]
