"""Declared column lineage (``column`` lines): metadata, never run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
