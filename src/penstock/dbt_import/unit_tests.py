"""Unit tests of dbt's as those of a project: rows given, rows expected."""

from __future__ import annotations

import re
from typing import Any

from penstock.dbt_import.manifest import Fields, Manifest, table_of

_INPUT = re.compile(r"(?P<kind>ref|source)\(\s*(?P<names>.*?)\s*\)", re.S)
_NAMES = re.compile(r"['\"]([^'\"]+)['\"]")


def unit_test_of(test: Fields, manifest: Manifest) -> dict[str, Any] | str:
    """The test as its YAML has it, or why there is none."""
    model = next((n for n in manifest.of_type("model") if n["name"] == test["model"]), None)
    if model is None:
        return f"its model {test['model']} is not in the project"
    if any((test.get("overrides") or {}).values()):
        return "its overrides of macros, variables and the environment have no counterpart"
    inputs: dict[str, Any] = {}
    for given in test["given"]:
        table = _table_of(str(given["input"]), manifest)
        if table is None:
            return f"its input {given['input']} is not in the project, or is the model itself"
        rows = _rows(given)
        if rows is None:
            return f"the rows of its input {given['input']} are in SQL or in a file"
        inputs[table] = rows
    expected = _rows(test["expect"])
    if expected is None:
        return "its expected rows are in SQL or in a file"
    outputs = {"partial": True, "query": expected}
    return {"model": table_of(model), "inputs": inputs, "outputs": outputs}


def _table_of(text: str, manifest: Manifest) -> str | None:
    match = _INPUT.fullmatch(text.strip())
    names = _NAMES.findall(match["names"]) if match else []
    if match is None or not names:
        return None
    nodes = manifest.sources if match["kind"] == "source" else manifest.nodes
    for node in nodes.values():
        of = (
            [node.get("source_name"), node["name"]] if match["kind"] == "source" else [node["name"]]
        )
        if of == names[-len(of) :] and node["resource_type"] in _READ:
            return table_of(node)
    return None


_READ = {"model", "seed", "snapshot", "source"}


def _rows(given: Fields) -> dict[str, Any] | None:
    """Rows that are written out, as values or as CSV; None for others."""
    rows = given.get("rows")
    if isinstance(rows, list):
        return {"rows": [dict(row) for row in rows]}
    if given.get("format") == "csv" and isinstance(rows, str):
        return {"format": "csv", "rows": rows}
    return None
