"""Assets: what steps read and make, as the documents write them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Asset:
    """``kind`` is ``ducklake``, ``s3object``, ``resource``, ``datatable`` or ``volume``."""

    kind: str
    path: str


@dataclass(frozen=True, slots=True)
class TableName:
    """A managed table. ``lake`` is a name in penstock.toml; ``schema`` defaults to ``main``."""

    lake: str
    schema: str
    table: str

    @property
    def qualified(self) -> str:
        return f"{self.schema}.{self.table}"

    @property
    def full(self) -> str:
        return f"{self.lake}.{self.qualified}"

    def __str__(self) -> str:
        """``lake.schema.table``; ``main.t`` for ``main.main.t``, as it may be written."""
        is_default = (self.lake, self.schema) == (DEFAULT_LAKE, DEFAULT_SCHEMA)
        return self.qualified if is_default else self.full


_PREFIXES = (
    ("ducklake://", "ducklake"),
    ("s3://", "s3object"),
    ("res://", "resource"),
    ("$res:", "resource"),
    ("datatable://", "datatable"),
    ("volume://", "volume"),
)

DEFAULT_LAKE = "main"
DEFAULT_SCHEMA = "main"


def parse_asset(text: str, *, bare_ducklake: bool = True) -> Asset | None:
    """The asset that ``text`` names, or ``None`` (annotations.md, "Assets").

    A bare ``ducklake`` is ``ducklake://main``, but not after ``on`` (``bare_ducklake=False``).
    """
    if bare_ducklake and text == "ducklake":
        return Asset("ducklake", DEFAULT_LAKE)
    for prefix, kind in _PREFIXES:
        if text.startswith(prefix):
            path = text[len(prefix) :]
            return Asset(kind, path) if path else None
    return None


def table_of(asset: Asset) -> TableName | None:
    """The table of ``ducklake://lake/[schema.]table``; ``None`` when it names none."""
    if asset.kind != "ducklake":
        return None
    lake, _, rest = asset.path.partition("/")
    parts = rest.split(".")
    if not lake or not all(parts) or len(parts) > 2 or "/" in rest:
        return None
    schema = parts[0] if len(parts) == 2 else DEFAULT_SCHEMA
    return TableName(lake, schema, parts[-1])
