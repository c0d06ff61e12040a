"""Refuse by name what a Delta table asks of its readers and writers, and is not done here."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from penstock.delta.actions import (
    TABLE_FEATURES_READER,
    TABLE_FEATURES_WRITER,
    Metadata,
    Protocol,
)
from penstock.errors import UnsupportedFeature

COLUMN_MAPPING = "delta.columnMapping.mode"
VECTORS = "delta.enableDeletionVectors"
APPEND_ONLY = "delta.appendOnly"
CHANGE_FEED = "delta.enableChangeDataFeed"
DELETION_VECTORS, NTZ = "deletionVectors", "timestampNtz"

_READ = frozenset({DELETION_VECTORS, NTZ, "columnMapping", "v2Checkpoint", "vacuumProtocolCheck"})
MATERIALIZED = "materializePartitionColumns"
# A table lists features that it does not use: what is used is found in the metadata. Clustering is
# a matter of how files are laid out; files have their partition columns; logs are not cleaned up.
_WRITTEN = _READ | {
    "appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns",
    "identityColumns", "clustering", "domainMetadata", "inCommitTimestamp", "allowColumnDefaults",
    "checkpointProtection", MATERIALIZED,
}  # fmt: skip
_HINTS = {
    "read": "rewrite the table with the engine that made it, without this feature",
    "written": "write to it with the engine that made it, or rewrite it there without this feature",
}


def check_readable(protocol: Protocol, metadata: Metadata, table: str) -> None:
    """Raise UnsupportedFeature for a table that is not read right here."""
    if protocol.reader > TABLE_FEATURES_READER:
        raise _refused(table, f"reader version {protocol.reader}", "read")
    others = sorted(protocol.reader_features - _READ)
    if protocol.reader == TABLE_FEATURES_READER and others:
        raise _refused(table, f"the reader feature {others[0]}", "read")
    mode = metadata.option(COLUMN_MAPPING) or "none"
    if mode not in {"none", "name"}:
        raise _refused(table, f"column mapping by {mode}", "read")


def check_writable(protocol: Protocol, metadata: Metadata, table: str, *, deletes: bool) -> None:
    """Raise UnsupportedFeature for a table whose rules a write would not keep.

    ``deletes``: the write removes rows, or changes some.
    """
    if protocol.writer > TABLE_FEATURES_WRITER:
        raise _refused(table, f"writer version {protocol.writer}", "written")
    others = sorted(protocol.writer_features - _WRITTEN)
    if protocol.writer == TABLE_FEATURES_WRITER and others:
        raise _refused(table, f"the writer feature {others[0]}", "written")
    rule = next(_rules(metadata, deletes=deletes), None)
    if rule is not None:
        raise _refused(table, rule, "written")


def _rules(metadata: Metadata, *, deletes: bool) -> Iterator[str]:
    """The rules of a table that a write would not keep."""
    constraint = next((n for n in metadata.options if n.startswith("delta.constraints.")), None)
    if constraint is not None:
        yield f"the CHECK constraint {constraint.removeprefix('delta.constraints.')}"
    if (metadata.option(COLUMN_MAPPING) or "none") != "none":
        yield "column mapping"
    if metadata.is_on("delta.enableRowTracking"):
        yield "row tracking"
    if metadata.is_on("delta.enableInCommitTimestamps"):
        yield "in-commit timestamps"
    if deletes and metadata.is_on(APPEND_ONLY):
        yield f"{APPEND_ONLY}, which allows no changes of rows,"
    if deletes and metadata.is_on(CHANGE_FEED):
        yield "a change data feed, whose files changes of rows would have to write,"
    yield from _type_rules(json.loads(metadata.schema_text))


def _type_rules(kind: Any) -> Iterator[str]:
    """The rules of the fields inside of a type."""
    if not isinstance(kind, dict):
        return
    for field in kind.get("fields", ()):
        yield from _column_rules(field)
    for part in ("elementType", "keyType", "valueType"):
        yield from _type_rules(kind.get(part))


def _column_rules(field: Mapping[str, Any]) -> Iterator[str]:
    name, keys = field["name"], field.get("metadata") or {}
    if "delta.invariants" in keys:
        yield f"an invariant of column {name}"
    if "delta.generationExpression" in keys:
        yield f"the generated column {name}"
    if any(key.startswith("delta.identity.") for key in keys):
        yield f"the identity column {name}"
    if "CURRENT_DEFAULT" in keys:
        yield f"a default of column {name}"
    if field["type"] == "void":
        yield f"the column {name} of type void, which files do not have,"
    yield from _type_rules(field["type"])


def _refused(table: str, feature: str, done: str) -> UnsupportedFeature:
    return UnsupportedFeature(
        f"the Delta table {table} has {feature} and is not {done}",
        hint=_HINTS[done],
        data={"table": table, "feature": feature},
    )


def protocol_for(protocol: Protocol | None, metadata: Metadata) -> Protocol:
    """The protocol of a table with this metadata, from the one that it has, if any."""
    before = protocol or Protocol()
    needs = frozenset(_needs(metadata)) - (before.reader_features & before.writer_features)
    written = frozenset(_writer_needs(metadata))
    if not needs and before.writer < TABLE_FEATURES_WRITER:
        return replace(
            before, writer=max(before.writer, *map(_WRITER_IMPLIES.__getitem__, written), 0)
        )
    more = (needs | written) - before.writer_features
    if not needs and not more:
        return before
    protocol = replace(
        before,
        writer=TABLE_FEATURES_WRITER,
        writer_features=before.writer_features | _implied(before.writer, _WRITER_IMPLIES) | more,
    )
    if not needs:
        return protocol
    return replace(
        protocol,
        reader=TABLE_FEATURES_READER,
        reader_features=before.reader_features | _implied(before.reader, _READER_IMPLIES) | needs,
    )


def _needs(metadata: Metadata) -> Iterator[str]:
    """The features that readers and writers need."""
    if metadata.is_on(VECTORS):
        yield DELETION_VECTORS
    if '"timestamp_ntz"' in metadata.schema_text:
        yield NTZ


def _writer_needs(metadata: Metadata) -> Iterator[str]:
    """The features that writers alone need."""
    if metadata.is_on(APPEND_ONLY):
        yield "appendOnly"
    if metadata.is_on(CHANGE_FEED):
        yield "changeDataFeed"


# What versions before table features implied ("Requirements for Writers" of the protocol).
_READER_IMPLIES: Mapping[str, int] = {"columnMapping": 2}
_WRITER_IMPLIES: Mapping[str, int] = {
    "appendOnly": 2,
    "invariants": 2,
    "checkConstraints": 3,
    "changeDataFeed": 4,
    "generatedColumns": 4,
    "columnMapping": 5,
    "identityColumns": 6,
}


def _implied(version: int, since: Mapping[str, int]) -> frozenset[str]:
    return frozenset(name for name, first in since.items() if first <= version < 7)
