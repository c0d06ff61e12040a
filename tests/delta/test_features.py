"""What is not read or written right is refused by its name."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.delta.actions import Protocol
from penstock.delta.features import check_readable, check_writable, checked_options, protocol_for
from penstock.errors import ArgumentError, UnsupportedFeature
from tests.delta.tables import FIELDS, metadata, schema_text

INNER_VOID = {"type": "struct", "fields": [{"name": "x", "type": "void", "metadata": {}}]}


def of(reader: set[str], writer: set[str] | None = None) -> Protocol:
    return Protocol(3, 7, frozenset(reader), frozenset(reader | (writer or set())))


def test_what_is_read() -> None:
    known = {"deletionVectors", "timestampNtz", "columnMapping", "v2Checkpoint"}
    check_readable(of({*known, "vacuumProtocolCheck"}), metadata(), "t")
    check_readable(Protocol(2, 5), metadata(options={"delta.columnMapping.mode": "name"}), "t")


@pytest.mark.parametrize(
    ("protocol", "options", "named"),
    [
        (of({"typeWidening"}), {}, "the reader feature typeWidening"),
        (of({"variantType"}), {}, "the reader feature variantType"),
        (Protocol(4, 7), {}, "reader version 4"),
        (Protocol(2, 5), {"delta.columnMapping.mode": "id"}, "column mapping by id"),
    ],
)
def test_what_is_not_read(protocol: Protocol, options: dict[str, str], named: str) -> None:
    with pytest.raises(UnsupportedFeature, match=f"table shop.t has {named} and is not read"):
        check_readable(protocol, metadata(options=options), "shop.t")


@pytest.mark.parametrize(
    ("changes", "deletes", "named"),
    [
        ({"options": {"delta.constraints.least": "id > 0"}}, False, "the CHECK constraint least"),
        ({"options": {"delta.columnMapping.mode": "name"}}, False, "column mapping"),
        ({"options": {"delta.enableRowTracking": "true"}}, False, "row tracking"),
        ({"options": {"delta.appendOnly": "true"}}, True, "delta.appendOnly"),
        ({"options": {"delta.enableChangeDataFeed": "true"}}, True, "a change data feed"),
        ({"schema_text": schema_text(first={"delta.invariants": "x"})}, False, "an invariant of"),
        (
            {"schema_text": schema_text(first={"CURRENT_DEFAULT": "1"})},
            False,
            "a default of column",
        ),
        ({"schema_text": schema_text([("a", "void"), ("b", "long")])}, False, "a of type void"),
        (
            {"schema_text": schema_text([("a", {"type": "array", "elementType": INNER_VOID})])},
            False,
            "the column x of type void",
        ),
        (
            {"schema_text": schema_text(first={"delta.generationExpression": "1"})},
            False,
            "the generated column id",
        ),
        (
            {"schema_text": schema_text(first={"delta.identity.start": 1})},
            False,
            "the identity column",
        ),
    ],
)
def test_rules_that_a_write_would_not_keep(
    changes: dict[str, Any], deletes: bool, named: str
) -> None:
    with pytest.raises(UnsupportedFeature, match=named) as error:
        check_writable(Protocol(), metadata(**changes), "t", deletes=deletes)
    assert str(error.value.hint).startswith("write to it with the engine that made it")


def test_a_table_for_appends_takes_appends() -> None:
    options = {"delta.appendOnly": "true", "delta.enableChangeDataFeed": "true"}
    check_writable(Protocol(1, 4), metadata(options=options), "t", deletes=False)


def test_writer_features() -> None:
    check_writable(
        of({"deletionVectors"}, {"invariants", "appendOnly"}), metadata(), "t", deletes=True
    )
    with pytest.raises(UnsupportedFeature, match="the writer feature rowTracking"):
        check_writable(of(set(), {"rowTracking"}), metadata(), "t", deletes=False)
    with pytest.raises(UnsupportedFeature, match="writer version 8"):
        check_writable(Protocol(3, 8), metadata(), "t", deletes=False)


UNUSED = ("inCommitTimestamp", "allowColumnDefaults", "checkpointProtection")


def test_writer_features_that_a_table_lists_and_does_not_use() -> None:
    """Row tracking has duties even where it is not enabled."""
    protocol = of(set(), {*UNUSED, "materializePartitionColumns", "invariants"})
    check_writable(protocol, metadata(), "t", deletes=True)
    used = metadata(options={"delta.enableInCommitTimestamps": "true"})
    with pytest.raises(UnsupportedFeature, match="has in-commit timestamps and is not written"):
        check_writable(protocol, used, "t", deletes=False)


def test_a_plain_table_needs_no_features() -> None:
    assert protocol_for(None, metadata()) == Protocol(1, 2)


def test_deletion_vectors_and_times_without_a_zone_need_features() -> None:
    text = schema_text([*FIELDS, ("at", "timestamp_ntz")])
    known = metadata(schema_text=text, options={"delta.enableDeletionVectors": "true"})
    needed = {"deletionVectors", "timestampNtz"}
    protocol = protocol_for(Protocol(1, 4), known)
    assert (protocol.reader, protocol.writer) == (3, 7)
    assert protocol.reader_features == needed
    implied = {"appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns"}
    assert protocol.writer_features == needed | implied
    assert protocol_for(protocol, known) == protocol


def test_an_option_that_needs_a_later_writer() -> None:
    """An older writer would change rows without the files of the change feed."""
    feed = metadata(options={"delta.enableChangeDataFeed": "TRUE"})
    assert protocol_for(None, feed) == Protocol(1, 4)
    assert protocol_for(Protocol(1, 5), feed) == Protocol(1, 5)
    protocol = protocol_for(Protocol(1, 7, writer_features=frozenset({"invariants"})), feed)
    assert protocol.reader == 1
    assert protocol.writer_features == {"invariants", "changeDataFeed"}
    both = metadata(options={**feed.options, "delta.enableDeletionVectors": "true"})
    protocol = protocol_for(None, both)
    assert protocol.writer_features >= {"changeDataFeed", "deletionVectors", "appendOnly"}
    assert protocol.reader_features == {"deletionVectors"}
    appends = metadata(options={"delta.appendOnly": "true"})
    assert protocol_for(None, appends) == Protocol(1, 2)
    assert "appendOnly" in protocol_for(Protocol(3, 7), appends).writer_features


def test_options_that_are_done() -> None:
    assert checked_options(
        {"delta.enabledeletionvectors": True, "delta.appendOnly": "TRUE"}, "t"
    ) == {
        "delta.enableDeletionVectors": "true",
        "delta.appendOnly": "true",
    }
    others = {"delta.checkpointInterval": "5", "delta.logRetentionDuration": "interval 30 days"}
    assert checked_options({**others, "owner": "ann"}, "t") == {**others, "owner": "ann"}


@pytest.mark.parametrize(
    "name",
    [
        "delta.enableInCommitTimestamps",
        "delta.enableRowTracking",
        "delta.enableTypeWidening",
        "delta.enableIcebergCompatV2",
        "delta.universalFormat.enabledFormats",
        "delta.checkpointPolicy",
        "delta.feature.typeWidening",
        "delta.minWriterVersion",
        "delta.constraints.positive",
        "delta.foo",
    ],
)
def test_options_that_are_not_done(name: str) -> None:
    with pytest.raises(UnsupportedFeature, match=f"the option {name} of the Delta table shop.t"):
        checked_options({name: "true"}, "shop.t")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("delta.checkpointInterval", "abc"),
        ("delta.checkpointInterval", "0"),
        ("delta.enableDeletionVectors", "yes"),
        ("delta.columnMapping.mode", "name"),
        ("delta.isolationLevel", "Snapshot"),
        ("delta.logRetentionDuration", "a while"),
    ],
)
def test_values_that_are_none(name: str, value: str) -> None:
    with pytest.raises(ArgumentError, match="is not a value of"):
        checked_options({name: value}, "t")
