"""Which address a request comes from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.server.client_address import ANY_PROXY, find_client, find_network, parse_address

NETWORK = "10.0.0.0/8"


@pytest.mark.parametrize("trusted", [None, NETWORK, "192.0.2.7/32"])
def test_whoever_is_no_trusted_proxy_cannot_name_an_address(trusted: str | None) -> None:
    assert find_client("198.51.100.9", ["203.0.113.1"], trusted) == "198.51.100.9"


@pytest.mark.parametrize(
    ("forwarded", "client"),
    [
        ([], "10.0.0.1"),
        (["203.0.113.1"], "203.0.113.1"),
        (["203.0.113.1, 10.9.9.9"], "203.0.113.1"),  # through two proxies
        (["203.0.113.1", "10.9.9.9"], "203.0.113.1"),  # each with a header of its own
        (["127.0.0.1, 203.0.113.1, 10.9.9.9"], "203.0.113.1"),  # the first is made up
        (["10.1.1.1, 203.0.113.1"], "203.0.113.1"),
        (["10.1.1.1, 10.9.9.9"], "10.1.1.1"),  # a client within the network
        (["203.0.113.1:4711"], "203.0.113.1"),
        (["2001:db8::1"], "2001:db8::1"),
        (["[2001:db8::1]:4711"], "2001:db8::1"),
        (["::ffff:203.0.113.1"], "203.0.113.1"),
    ],
)
def test_the_last_address_that_is_no_proxy_counts(forwarded: list[str], client: str) -> None:
    assert find_client("10.0.0.1", forwarded, NETWORK) == client
    assert find_client("::ffff:10.0.0.1", forwarded, NETWORK) == client


@pytest.mark.parametrize(
    ("forwarded", "client"),
    [
        (["unknown"], "10.0.0.1"),
        (["203.0.113.1, unknown"], "10.0.0.1"),
        (["unknown, 203.0.113.1"], "203.0.113.1"),
        (["203.0.113.1, , 10.9.9.9"], "10.9.9.9"),
        ([""], "10.0.0.1"),
        (["203.0.113.1.5"], "10.0.0.1"),
        (["127.1"], "10.0.0.1"),
        (["<script>, [::1"], "10.0.0.1"),
    ],
)
def test_what_is_no_address_ends_the_list(forwarded: list[str], client: str) -> None:
    assert find_client("10.0.0.1", forwarded, NETWORK) == client


def test_proxies_of_ipv6_are_trusted_by_their_network() -> None:
    forwarded = ["2001:db8::1, fd00::2"]
    assert find_client("fd00::1", forwarded, "fd00::/8") == "2001:db8::1"
    assert find_client("fe00::1", forwarded, "fd00::/8") == "fe00::1"
    assert find_client("10.0.0.1", forwarded, "fd00::/8") == "10.0.0.1"


def test_of_any_proxy_only_its_own_word_counts() -> None:
    assert find_client("198.51.100.9", ["203.0.113.1, 203.0.113.2"], ANY_PROXY) == "203.0.113.2"
    assert find_client("198.51.100.9", ["unknown"], ANY_PROXY) == "198.51.100.9"


def test_a_client_without_an_address_has_a_name() -> None:
    assert find_client(None, ["203.0.113.1"], ANY_PROXY) == "unknown"
    assert find_client("testclient", ["203.0.113.1"], NETWORK) == "testclient"


def test_addresses_of_one_client_are_one() -> None:
    assert find_network("2001:db8::1") == find_network("2001:db8::ffff:1") == "2001:db8::/64"
    assert find_network("2001:db8:0:1::1") != find_network("2001:db8::1")
    assert (find_network("203.0.113.1"), find_network("unknown")) == ("203.0.113.1", "unknown")


@given(st.lists(st.text()), st.sampled_from([None, NETWORK, "fd00::/8", ANY_PROXY]))
def test_no_header_is_an_error(forwarded: list[str], trusted: str | None) -> None:
    client = find_client("10.0.0.1", forwarded, trusted)
    assert parse_address(client) is not None
