"""The ``materialize`` line as a value (seeds/materialization.md, "Grammar")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.model.asset import Asset
from penstock.model.header.quoted import split_values

SCHEMA_CHANGES = ("warn", "ignore", "fail", "sync")


@dataclass(frozen=True, slots=True)
class Materialize:
    """The managed target and how a slice of it is reconciled.

    ``unique_key`` is the text after ``key=``; ``keys`` are its column names.
    """

    target: Asset
    manual: bool = False
    append: bool = False
    history: bool = False
    unique_key: str | None = None
    track: tuple[str, ...] = ()
    deletes: str | None = None
    on_schema_change: str | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(key for key in split_values(self.unique_key or "") if key)

    @property
    def strategy(self) -> str:
        """``manual``, ``history``, ``append`` (it wins over keys), ``merge`` or ``replace``."""
        asked = (
            ("manual", self.manual),
            ("history", self.history),
            ("append", self.append),
            ("merge", bool(self.keys)),
        )
        return next((strategy for strategy, wanted in asked if wanted), "replace")

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {"target_kind": self.target.kind, "target_path": self.target.path}
        optional = {
            "manual": self.manual,
            "append": self.append,
            "scd2": self.history,
            "unique_key": self.unique_key,
            "track": list(self.track),
            "deletes": self.deletes,
            "on_schema_change": self.on_schema_change,
        }
        return found | {name: value for name, value in optional.items() if value}
