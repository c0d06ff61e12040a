"""Features and options of a Delta table: what is not done here is refused by name.

Options of a Delta table that Penstock applies or only other engines need; others are refused.

An option whose feature is not in the protocol breaks the table for engines that know the feature.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from penstock.delta.actions import TABLE_FEATURES_READER, TABLE_FEATURES_WRITER, Metadata, Protocol
from penstock.errors import ArgumentError, UnsupportedFeature

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
    written = frozenset(name for key, name in _WRITER_NEEDS.items() if metadata.is_on(key))
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


# The features that writers alone need, by the properties that turn them on.
_WRITER_NEEDS = {APPEND_ONLY: "appendOnly", CHANGE_FEED: "changeDataFeed"}
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


CHECKPOINT_INTERVAL = "delta.checkpointInterval"
_OWN = "delta."
_SPAN = re.compile(r"(interval\s+)?\d+\s+(micro|milli)?(second|minute|hour|day|week)s?", re.I)
Reader = Callable[[str], str | None]  # the value as Delta has it, None for one that is none


def _boolean(text: str) -> str | None:
    return text.lower() if text.lower() in {"true", "false"} else None


def _number(text: str) -> str | None:
    return text if text.isdecimal() and int(text) > 0 else None


def _whole(text: str) -> str | None:
    return text if re.fullmatch(r"-?\d+", text) else None


def _span(text: str) -> str | None:
    return text if _SPAN.fullmatch(text.strip()) else None


def _size(text: str) -> str | None:
    return text if re.fullmatch(r"\d+\s*([kmgt]?b?)", text.strip(), re.I) else None


_READERS: Mapping[str, tuple[Reader, str]] = {
    VECTORS: (_boolean, "true or false"),
    APPEND_ONLY: (_boolean, "true or false"),
    CHANGE_FEED: (_boolean, "true or false"),
    CHECKPOINT_INTERVAL: (_number, "a number of commits"),
    "delta.columnMapping.mode": (
        lambda text: text if text == "none" else None,
        "none: column mapping is not written",
    ),
    # What follows says how other engines write, optimize or clean up the table.
    "delta.isolationLevel": (
        lambda text: text if text in {"Serializable", "WriteSerializable"} else None,
        "Serializable or WriteSerializable",
    ),
    "delta.logRetentionDuration": (_span, "a time such as 'interval 30 days'"),
    "delta.deletedFileRetentionDuration": (_span, "a time such as 'interval 7 days'"),
    "delta.setTransactionRetentionDuration": (_span, "a time such as 'interval 7 days'"),
    "delta.enableExpiredLogCleanup": (_boolean, "true or false"),
    "delta.autoOptimize": (_boolean, "true or false"),
    "delta.autoOptimize.autoCompact": (str, "text"),
    "delta.autoOptimize.optimizeWrite": (_boolean, "true or false"),
    "delta.tuneFileSizesForRewrites": (_boolean, "true or false"),
    "delta.targetFileSize": (_size, "a size such as 128mb"),
    "delta.randomizeFilePrefixes": (_boolean, "true or false"),
    "delta.dataSkippingNumIndexedCols": (_whole, "a number of columns"),
    "delta.dataSkippingStatsColumns": (str, "names of columns"),
}
_SPELLED = {name.lower(): name for name in _READERS}


def checked_options(options: Mapping[str, object], table: str) -> dict[str, str]:
    """The options as Delta spells them. Options without ``delta.`` are the user's own.

    Raises UnsupportedFeature for an option that is not done, ArgumentError for a wrong value.
    """
    checked: dict[str, str] = {}
    for key, value in options.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if key.lower().startswith(_OWN):
            name = _SPELLED.get(key.lower())
            if name is None:
                raise _refused_option(key, table)
            checked[name] = _value(name, text)
        else:
            checked[key] = text
    return checked


def _value(name: str, text: str) -> str:
    reader, form = _READERS[name]
    value = reader(text)
    if value is None:
        raise ArgumentError(
            f"{text!r} is not a value of {name}", hint=f"write {form}", data={"option": name}
        )
    return value


def _refused_option(key: str, table: str) -> UnsupportedFeature:
    supported = ", ".join(sorted((VECTORS, APPEND_ONLY, CHANGE_FEED, CHECKPOINT_INTERVAL)))
    return UnsupportedFeature(
        f"Penstock cannot set the option {key} of the Delta table {table}: it does not implement "
        "what the option requires of writers",
        hint=f"set it with another engine; Penstock sets {supported}, and the retention and "
        "layout options of other engines",
        data={"table": table, "option": key},
    )
