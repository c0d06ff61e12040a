"""What is not read or written right is refused by its name."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.delta.actions import Protocol
from penstock.delta.features import check_readable, check_writable, protocol_for
from penstock.errors import UnsupportedFeature
from tests.delta.tables import FIELDS, metadata, schema_text


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
    with pytest.raises(UnsupportedFeature, match=named):
        check_writable(Protocol(), metadata(**changes), "t", deletes=deletes)


def test_a_table_for_appends_takes_appends() -> None:
    options = {"delta.appendOnly": "true", "delta.enableChangeDataFeed": "true"}
    check_writable(Protocol(1, 4), metadata(options=options), "t", deletes=False)


def test_writer_features() -> None:
    check_writable(
        of({"deletionVectors"}, {"invariants", "appendOnly"}), metadata(), "t", deletes=True
    )
    with pytest.raises(UnsupportedFeature, match="the writer feature inCommitTimestamp"):
        check_writable(of(set(), {"inCommitTimestamp"}), metadata(), "t", deletes=False)
    with pytest.raises(UnsupportedFeature, match="writer version 8"):
        check_writable(Protocol(3, 8), metadata(), "t", deletes=False)


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
