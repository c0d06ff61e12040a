"""Checks that run on a staged slice before it is published (``data_test`` lines)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.model.asset import Asset


@dataclass(frozen=True, slots=True)
class UniqueTest:
    """No value of ``column`` occurs twice."""

    column: str

    @property
    def name(self) -> str:
        return f"unique {self.column}"

    def to_dict(self) -> dict[str, Any]:
        return {"type": "unique", "column": self.column}


@dataclass(frozen=True, slots=True)
class NotNullTest:
    """``column`` holds no NULL."""

    column: str

    @property
    def name(self) -> str:
        return f"not_null {self.column}"

    def to_dict(self) -> dict[str, Any]:
        return {"type": "not_null", "column": self.column}


@dataclass(frozen=True, slots=True)
class AcceptedValuesTest:
    """``column`` holds only ``values`` (text, compared as text)."""

    column: str
    values: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"accepted_values {self.column}"

    def to_dict(self) -> dict[str, Any]:
        return {"type": "accepted_values", "column": self.column, "values": list(self.values)}


@dataclass(frozen=True, slots=True)
class RelationshipsTest:
    """Every value of ``column`` exists in ``to_column`` of the asset ``to``."""

    column: str
    to: Asset
    to_column: str

    @property
    def name(self) -> str:
        return f"relationships {self.column}"

    def to_dict(self) -> dict[str, Any]:
        found = {"type": "relationships", "column": self.column}
        return {
            **found,
            "to_kind": self.to.kind,
            "to_path": self.to.path,
            "to_column": self.to_column,
        }


@dataclass(frozen=True, slots=True)
class CustomTest:
    """The script at ``path`` (below the project or the models) returns the rows that fail."""

    path: str

    @property
    def name(self) -> str:
        return self.path

    def to_dict(self) -> dict[str, Any]:
        return {"type": "custom", "path": self.path}


DataTest = UniqueTest | NotNullTest | AcceptedValuesTest | RelationshipsTest | CustomTest
