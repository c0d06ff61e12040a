"""Penstock: managed data pipelines on Spark. The public names.

Each is loaded when it is first asked for: what uses one part does not pay for the others.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.lake.lake import Lake
    from penstock.project import Project

__all__ = ["Lake", "Project"]

_HOMES = {"Lake": "penstock.lake.lake", "Project": "penstock.project"}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'penstock' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
