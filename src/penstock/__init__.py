"""Penstock: managed data pipelines on Spark. The public names.

Each is loaded when it is first asked for: what uses one part does not pay for the others.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.delta.delta import Delta
    from penstock.engine.python.helpers import lake
    from penstock.errors import PenstockError
    from penstock.lake.format.files import PartitionField
    from penstock.lake.format.objects import SortKey
    from penstock.lake.format.schema import Column, TableSchema
    from penstock.lake.lake import Lake
    from penstock.lake.maintenance.writing import Resources
    from penstock.model.macros.python_macros import macro
    from penstock.model.values.custom_strategy import CustomMaterialization
    from penstock.project.project import Project

__all__ = [
    "Column",
    "CustomMaterialization",
    "Delta",
    "Lake",
    "PartitionField",
    "PenstockError",
    "Project",
    "Resources",
    "SortKey",
    "TableSchema",
    "lake",
    "macro",
]

_HOMES = {
    "Column": "penstock.lake.format.schema",
    "CustomMaterialization": "penstock.model.values.custom_strategy",
    "Delta": "penstock.delta.delta",
    "Lake": "penstock.lake.lake",
    "PartitionField": "penstock.lake.format.files",
    "PenstockError": "penstock.errors",
    "Project": "penstock.project.project",
    "Resources": "penstock.lake.maintenance.writing",
    "SortKey": "penstock.lake.format.objects",
    "TableSchema": "penstock.lake.format.schema",
    "macro": "penstock.model.macros.python_macros",
}


def __getattr__(name: str) -> object:
    if name == "lake":  # the package, which can be called (`penstock.lake`)
        return import_module("penstock.lake")
    if name not in _HOMES:
        raise AttributeError(f"module 'penstock' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
