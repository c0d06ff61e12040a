"""DuckLake on Spark. Called in a step in Python, it is a lake of the step's project::

penstock.lake("main").read("orders")
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _Package(ModuleType):
    """The issue of Python steps names the helper as the package: so the package can be called."""

    def __call__(self, name: str | None = None) -> Any:
        # By its name: a step's lake is the engine's, and this room imports nothing from above.
        return import_module("penstock.engine.python.helpers").lake(name)


sys.modules[__name__].__class__ = _Package
