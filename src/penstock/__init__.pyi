"""The public names for type checkers; `__init__.py` loads each when it is first asked for."""

from penstock.delta.delta import Delta
from penstock.engine.python.helpers import lake
from penstock.errors import PenstockError
from penstock.lakes.format.files import PartitionField
from penstock.lakes.format.objects import SortKey
from penstock.lakes.format.schema import Column, TableSchema
from penstock.lakes.lake import Lake
from penstock.lakes.maintenance.writing import Resources
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
