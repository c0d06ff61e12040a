"""Read and check the manifest that dbt writes for a project, ``target/manifest.json``.

The manifest of every dbt since 1.0 has these fields; what one has not is taken as empty.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.dbt_import.text import table
from penstock.errors import ArgumentError

Fields = Mapping[str, Any]
# The databases whose SQL Penstock reads, and how it calls the dialect.
DIALECTS = {"penstock": "spark", "spark": "spark", "databricks": "spark", "duckdb": "duckdb"}
_COMPILE = "run `dbt compile` there, so that target/manifest.json has each query"


@dataclass(frozen=True, slots=True)
class Manifest:
    """``nodes`` are models, seeds, snapshots and data tests by id; ``root`` is the dbt project."""

    root: Path
    name: str
    dialect: str
    nodes: Mapping[str, Fields]
    sources: Mapping[str, Fields]
    unit_tests: Mapping[str, Fields]

    def of_type(self, kind: str) -> Iterator[Fields]:
        """The nodes of a type, ``model`` or ``seed``, in the order of their ids."""
        for _, node in sorted(self.nodes.items()):
            if node["resource_type"] == kind:
                yield node

    def tables(self) -> Mapping[str, str]:
        """Return the names of tables here, by those that the compiled queries have."""
        named = [*self.nodes.values(), *self.sources.values()]
        return {
            node["relation_name"]: table(table_of(node), self.dialect)
            for node in named
            if node.get("relation_name")
        }


def table_of(node: Fields) -> str:
    """``schema.table``: what a node makes, or a source is."""
    return f"{node['schema']}.{node.get('alias') or node.get('identifier') or node['name']}"


def config_of(node: Fields) -> Fields:
    """The configuration of a node."""
    config = node.get("config")
    return config if isinstance(config, Mapping) else {}


def as_list(value: Any) -> list[str]:
    """A list that may be written as one text."""
    if value is None:
        return []
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [str(item) for item in value]
    return [str(value)]


def read_manifest(directory: Path) -> Manifest:
    """The manifest of the dbt project in ``directory``, or of the file itself.

    Raises ArgumentError where there is none, it cannot be read, its database's SQL is another one,
    or it has no compiled queries.
    """
    path = directory if directory.is_file() else directory / "target" / "manifest.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ArgumentError(f"{path} does not exist", hint=_COMPILE) from None
    except (OSError, ValueError) as error:
        raise ArgumentError(f"{path} cannot be read: {error}", hint=_COMPILE) from None
    about = content.get("metadata") if isinstance(content, dict) else None
    if not isinstance(about, dict) or "nodes" not in content:
        raise ArgumentError(f"{path} does not hold a manifest of dbt's", hint=_COMPILE)
    adapter = str(about.get("adapter_type"))
    if adapter not in DIALECTS:
        raise ArgumentError(
            f"the project's SQL is that of {adapter}, which Penstock does not read",
            hint=f"compile it for one of {', '.join(sorted(DIALECTS))} first",
        )
    root = path.parent.parent if directory.is_file() else directory
    found = Manifest(
        root,
        str(about.get("project_name") or root.name),
        DIALECTS[adapter],
        content["nodes"],
        content.get("sources") or {},
        content.get("unit_tests") or {},
    )
    lacking = [node["name"] for node in _queried(found) if not node.get("compiled_code")]
    if len(lacking) == len(list(_queried(found))):
        raise ArgumentError(f"{path} has no compiled queries", hint=_COMPILE)
    if lacking:
        raise ArgumentError(
            f"{path} has no compiled query of {', '.join(lacking)}",
            hint=f"the last command of dbt compiled a part of the project: {_COMPILE}",
        )
    return found


def _queried(manifest: Manifest) -> Iterator[Fields]:
    """The models and snapshots that have queries."""
    for node in (*manifest.of_type("model"), *manifest.of_type("snapshot")):
        if node.get("language", "sql") == "sql":
            yield node
