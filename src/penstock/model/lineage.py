"""``column`` lines: declared lineage, which is never run, and declared types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.errors import Location
from penstock.model.asset import Asset


@dataclass(frozen=True, slots=True)
class ColumnInput:
    asset: Asset
    column: str

    def to_dict(self) -> dict[str, Any]:
        return {
            "from_kind": self.asset.kind,
            "from_path": self.asset.path,
            "from_column": self.column,
        }


@dataclass(frozen=True, slots=True)
class ColumnLineage:
    """``column`` of the target derives from ``inputs``."""

    column: str
    inputs: tuple[ColumnInput, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"column": self.column, "inputs": [item.to_dict() for item in self.inputs]}


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A column's type, in DuckDB's words, of a table that its own model reads."""

    name: str
    type: str
    location: Location
