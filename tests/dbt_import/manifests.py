"""Manifests as dbt writes them, with the fields that are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from penstock.dbt_import.manifest import Manifest, read_manifest


def node(kind: str, name: str, **more: Any) -> dict[str, Any]:
    """A node of the project ``shop`` in the schema ``shop``."""
    return {
        "resource_type": kind,
        "unique_id": f"{kind}.shop.{name}",
        "name": name,
        "alias": name,
        "schema": "shop",
        "relation_name": f'"lake"."shop"."{name}"',
        "language": "sql",
        "raw_code": "",
        "compiled_code": "select 1 as id",
        "config": {"materialized": "table"},
        "columns": {},
        "tags": [],
        "description": "",
        "depends_on": {"nodes": []},
        "original_file_path": f"models/{name}.sql",
        **more,
    }


def data_test(name: str, reads: list[str], **more: Any) -> dict[str, Any]:
    """A data test, without a table of its own."""
    given = {"relation_name": None, "depends_on": {"nodes": reads}, "config": {}, **more}
    return node("test", name, **given)


def content(*nodes: dict[str, Any], adapter: str = "penstock", **more: Any) -> dict[str, Any]:
    about = {"adapter_type": adapter, "project_name": "shop"}
    return {"metadata": about, "nodes": {n["unique_id"]: n for n in nodes}, **more}


def written(root: Path, *nodes: dict[str, Any], **more: Any) -> Path:
    """A dbt project with a manifest of these nodes."""
    (root / "target").mkdir(parents=True, exist_ok=True)
    (root / "target" / "manifest.json").write_text(json.dumps(content(*nodes, **more)))
    return root


def manifest(root: Path, *nodes: dict[str, Any], **more: Any) -> Manifest:
    return read_manifest(written(root, *nodes, **more))
