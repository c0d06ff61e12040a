"""Actions are read from the log and written to it."""

from __future__ import annotations

import json

from penstock.delta.actions import Add, DeletionVector, Metadata, Protocol, lines
from tests.delta.tables import metadata

VECTOR = {"storageType": "u", "pathOrInlineDv": "ab", "offset": 1, "sizeInBytes": 9}
VECTOR |= {"cardinality": 2}
FILE = {
    "path": "a%20b.parquet",
    "partitionValues": {"day": "2026-05-01", "name": ""},
    "size": 7,
    "modificationTime": 3,
    "dataChange": True,
    "stats": "{}",
    "tags": {"k": "v"},
    "deletionVector": VECTOR,
}


def test_a_file_keeps_what_it_says() -> None:
    add = Add.of(FILE)
    assert add.key == ("a%20b.parquet", "uab@1")
    assert add.json()["add"] == {**FILE, "partitionValues": {"day": "2026-05-01", "name": None}}


def test_an_empty_partition_value_is_null() -> None:
    assert dict(Add.of(FILE).values) == {"day": "2026-05-01", "name": None}


def test_maps_of_a_checkpoint_are_pairs() -> None:
    add = Add.of({**FILE, "partitionValues": [("day", None)], "tags": [("k", "v")]})
    assert (add.values, add.json()["add"]["tags"]) == ((("day", None),), {"k": "v"})


def test_a_removal_names_the_vector() -> None:
    remove = Add.of(FILE).removal(5)["remove"]
    assert (remove["deletionTimestamp"], remove["deletionVector"]) == (5, VECTOR)
    assert "stats" not in remove


def test_a_vector_in_the_log_has_no_offset() -> None:
    vector = DeletionVector("i", "x", 4, 1)
    assert vector.unique_id == "ix"
    assert "offset" not in vector.json()
    assert DeletionVector.of(vector.json()) == vector


def test_metadata() -> None:
    known = metadata(options={"delta.appendOnly": "true"}, partition_by=("day",), description="d")
    assert Metadata.of(known.json()["metaData"]) == known
    assert known.is_on("delta.appendOnly")
    assert not known.is_on("delta.other")


def test_a_protocol_lists_features_from_versions_3_and_7_on() -> None:
    old, new = Protocol(1, 2), Protocol(3, 7, frozenset({"b", "a"}), frozenset({"a"}))
    assert old.json() == {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
    assert new.json()["protocol"]["readerFeatures"] == ["a", "b"]
    assert Protocol.of(new.json()["protocol"]) == new


def test_lines_are_one_action_each() -> None:
    content = lines([{"a": "é\n"}, {"b": 1}])
    assert [json.loads(line) for line in content.splitlines()] == [{"a": "é\n"}, {"b": 1}]
