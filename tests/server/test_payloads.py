"""Payloads: JSON that all readers read alike, of bounded size and depth."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import PartitionError
from penstock.model.time.partition import PartitionSpec
from penstock.server.http_security import RefusedRequest
from penstock.server.payloads import MAX_DEPTH, parse_payload, partitions_of

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**37), 10**37)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=20,
)
TENANT = PartitionSpec("dynamic", key="$.tenant.id")


def status_of(body: bytes) -> int:
    with pytest.raises(RefusedRequest) as caught:
        parse_payload(body)
    assert caught.value.hint
    return caught.value.status


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), VALUES))
def test_an_object_is_read_as_it_was_sent(payload: dict[str, Any]) -> None:
    for is_ascii in (True, False):
        assert parse_payload(json.dumps(payload, ensure_ascii=is_ascii).encode()) == payload


def read_or_refuse(body: bytes) -> dict[str, Any] | int:
    try:
        return parse_payload(body)
    except RefusedRequest as error:
        return error.status


@given(st.binary() | st.text('{}[]":,\\u0d18eE+-. aN').map(str.encode))
def test_any_bytes_are_an_object_or_refused(body: bytes) -> None:
    result = read_or_refuse(body)
    assert result in (400, 422) or result == json.loads(body)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"\xff", "byte 0 is not UTF-8"),
        (b'{"a": \n x}', "line 2, column 2"),
        (b"\xef\xbb\xbf{}", "line 1"),
        (b'{"a": {"b": 1, "b": 2}}', "a key twice"),
        (b'{"a": -Infinity}', "-Infinity is not a JSON number"),
        (b'{"a": 1e400}', "too large"),
        (b'{"a": ' + b"1" * 39 + b"}", "more than 38 digits"),
        (b'{"a": ' + b"1" * 100_000 + b"}", "more than 38 digits"),
        (b'{"\\udc00": 1}', "half of a character"),
        (b'{"a": ["\\ud800"]}', "half of a character"),
        (b'{"a": ' * 100_000, "nested deeper"),
    ],
)
def test_json_that_readers_take_differently_is_refused(body: bytes, reason: str) -> None:
    with pytest.raises(RefusedRequest, match=reason) as caught:
        parse_payload(body)
    assert caught.value.status == 400


@pytest.mark.parametrize("body", [b"[]", b"1", b'"a"', b"null", b"true"])
def test_another_value_than_an_object_is_refused(body: bytes) -> None:
    assert status_of(body) == 422


def nested(depth: int) -> bytes:
    return b'{"a":' * depth + b"1" + b"}" * depth


def test_the_depth_has_a_limit() -> None:
    assert parse_payload(nested(MAX_DEPTH))
    assert status_of(nested(MAX_DEPTH + 1)) == 400
    assert status_of(nested(900)) == 400


def test_partitions_come_from_the_keys() -> None:
    specs = (TENANT, PartitionSpec("daily"), PartitionSpec("dynamic", key="$.region"))
    assert partitions_of({"tenant": {"id": 7}, "region": "eu"}, specs) == ("7", "eu")
    assert partitions_of({}, (PartitionSpec("daily"),)) == ()


@pytest.mark.parametrize(
    "payload",
    [{}, {"tenant": 1}, {"tenant": {}}, {"tenant": {"id": None}}, {"tenant": {"id": [1]}}],
)
def test_a_payload_without_the_key_is_refused(payload: dict[str, Any]) -> None:
    with pytest.raises(PartitionError, match="tenant") as caught:
        partitions_of(payload, (TENANT,))
    assert caught.value.hint == "send $.tenant.id in the payload"


@given(st.text())
def test_a_value_of_a_payload_leads_out_of_no_directory(value: str) -> None:
    try:
        (partition,) = partitions_of({"tenant": {"id": value}}, (TENANT,))
    except PartitionError:
        return
    assert partition == value
    assert not set("/\\\0") & set(partition)
    assert ".." not in partition
