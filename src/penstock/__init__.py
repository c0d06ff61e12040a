"""Penstock: managed data pipelines on Spark. The public names.

Each is loaded when it is first asked for: what uses one part does not pay for the others.
``__init__.pyi`` has them for type checkers.
"""

from importlib import import_module

_HOMES = {
    "Column": "penstock.lakes.format.schema",
    "CustomMaterialization": "penstock.model.values.custom_strategy",
    "Delta": "penstock.delta.delta",
    "Lake": "penstock.lakes.lake",
    "PartitionField": "penstock.lakes.format.files",
    "PenstockError": "penstock.errors",
    "Project": "penstock.project.project",
    "Resources": "penstock.lakes.maintenance.writing",
    "SortKey": "penstock.lakes.format.objects",
    "TableSchema": "penstock.lakes.format.schema",
    "lake": "penstock.engine.python.helpers",
    "macro": "penstock.model.macros.python_macros",
}
__all__ = list(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'penstock' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
