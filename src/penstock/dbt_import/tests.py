"""Tests of a dbt project: data tests as audits, unit tests as those of a project."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.dbt_import.manifest import Fields, Manifest, config_of, table_of
from penstock.dbt_import.text import literal, name, names, renamed, table


@dataclass(frozen=True, slots=True)
class Audit:
    """``call`` stands in ``audits (...)`` of the model with the id ``model``; ``query`` is the text
    of an audit of the project's own, where it is one, and ``reads`` are the tables that it reads.
    """

    model: str
    call: str
    name: str
    query: str | None = None
    reads: tuple[str, ...] = ()


def audit_of(node: Fields, manifest: Manifest) -> Audit | str:
    """The audit of a data test, or why there is none."""
    config = config_of(node)
    if (config.get("error_if") or "!= 0") != "!= 0" or config.get("limit"):
        return "error_if and limit have no counterpart: an audit fails on any row"
    known, attached = _known(node), node.get("attached_node")
    blocking = str(config.get("severity") or "error").lower() == "error"
    if known is not None and attached:
        if not _has_rows(attached, manifest):
            return "it tests a table that no model makes"
        called, options = known
        if where := config.get("where"):
            options["condition"] = str(where)
        return Audit(attached, _call(called, options, blocking=blocking), called)
    if not node.get("compiled_code"):
        return "its query is not compiled"
    return _own(node, manifest, blocking=blocking)


def _own(node: Fields, manifest: Manifest, *, blocking: bool) -> Audit | str:
    """An audit with the query of a test, of the table among those it reads that is made last."""
    read = [str(of) for of in node["depends_on"]["nodes"]]
    tested = _made_last(read, node.get("attached_node"), manifest)
    if tested is None:
        return "it tests several tables, and none of them is made last"
    if not _has_rows(tested, manifest):
        return "it tests a table that no model makes"
    subject = manifest.nodes[tested]
    tables = {**manifest.tables(), subject["relation_name"]: "@this_model"}
    query = renamed(str(node["compiled_code"]).strip().rstrip(";"), tables)
    own = str(node["name"])
    text = f"AUDIT (name {name(own)}, dialect {manifest.dialect});\n\n{query};\n"
    others = (manifest.nodes[one] for one in read if one in manifest.nodes and one != tested)
    reads = tuple(table(table_of(other)) for other in others)
    return Audit(tested, _call(own, {}, blocking=blocking), own, text, reads)


def _call(called: str, options: Mapping[str, str], *, blocking: bool) -> str:
    given = [f"{key} := {value}" for key, value in options.items()]
    if not blocking:
        given.append("blocking := false")
    return name(called) + (f"({', '.join(given)})" if given else "")


def _known(node: Fields) -> tuple[str, dict[str, str]] | None:
    """The audit of Penstock's that a generic test of dbt's own is, with its options."""
    about = node.get("test_metadata")
    if not about or about.get("namespace") or about["name"] not in _AUDITS:
        return None
    arguments = dict(about.get("kwargs") or {})
    column = arguments.get("column_name") or node.get("column_name")
    return _AUDITS[about["name"]](str(column), arguments) if column else None


def _accepted(column: str, arguments: Fields) -> tuple[str, dict[str, str]] | None:
    values = arguments.get("values")
    if not isinstance(values, Sequence) or isinstance(values, str):
        return None
    quotes = arguments.get("quote", True)
    listed = ", ".join(literal(str(value)) if quotes else str(value) for value in values)
    return "accepted_values", {"column": name(column), "is_in": f"({listed})"}


_AUDITS: Mapping[str, Callable[[str, Fields], tuple[str, dict[str, str]] | None]] = {
    "not_null": lambda column, _: ("not_null", {"columns": names([column])}),
    "unique": lambda column, _: ("unique_values", {"columns": names([column])}),
    "accepted_values": _accepted,
}


def _made_last(read: Sequence[str], attached: str | None, manifest: Manifest) -> str | None:
    """The id of the table that is made after all others that a test reads: that which it is
    attached to, where none of them is made after the others.
    """
    above = {one: _above(one, manifest) for one in read}
    for one in read:
        if all(other in above[one] for other in read):
            return one
    if attached is not None and not any(attached in above[o] for o in read if o != attached):
        return attached
    return None


def _above(one: str, manifest: Manifest) -> set[str]:
    """A node and all that it reads, however far up."""
    seen: set[str] = set()
    left = [one]
    while left:
        current = left.pop()
        if current not in seen:
            seen.add(current)
            node = manifest.nodes.get(current)
            left += node.get("depends_on", {}).get("nodes", []) if node else []
    return seen


def _has_rows(one: str, manifest: Manifest) -> bool:
    """Return whether the node of this id is a table or view that an audit can look at."""
    node = manifest.nodes.get(one)
    return node is not None and config_of(node).get("materialized") != "ephemeral"


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
