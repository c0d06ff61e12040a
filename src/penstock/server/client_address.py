"""Find the client address of a request, also behind a proxy.

A proxy appends the address of its client to the header ``X-Forwarded-For``. Each client can send
this header. So only a header from a trusted proxy counts. It is read from the end, up to the first
address that is not a trusted proxy.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

ANY_PROXY = "*"
"""Trust each peer as a proxy, but no proxy before it."""
_UNKNOWN = "unknown"
_WITH_PORT = re.compile(r"\[([^\]]*)\](?::\d{1,5})?|([^:\[\]]+):\d{1,5}")
_NETWORK_BITS = 64  # of IPv6: a client can use all addresses of its network


def find_client(peer: str | None, forwarded: Sequence[str], trusted_proxy: str | None) -> str:
    """Return the client address of a request.

    Args:
        peer: The address of the connection; None if it is unknown.
        forwarded: The values of the headers ``X-Forwarded-For``, in their order.
        trusted_proxy: The address or network of the proxy, `ANY_PROXY`, or None.

    Returns:
        The address. If an entry of the header is not an address, the result is the address of the
        trusted proxy that added it.
    """
    client = parse_address(peer or "")
    if client is None:
        return peer or _UNKNOWN
    texts = [text for value in forwarded for text in value.split(",")]
    for text in reversed(texts):
        if trusted_proxy is None or not _is_trusted(client, trusted_proxy):
            break
        before = parse_address(text)
        if before is None:
            break
        client = before
        if trusted_proxy == ANY_PROXY:
            break
    return str(client)


def parse_address(text: str) -> Address | None:
    """Parse an address.

    Args:
        text: An IPv4 or IPv6 address, with or without brackets and a port.

    Returns:
        The address; an IPv4-mapped IPv6 address as IPv4. None if the text is not an address.
    """
    text = text.strip()
    if match := _WITH_PORT.fullmatch(text):
        text = match[1] if match[1] is not None else match[2]
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def find_network(address: str) -> str:
    """Return the network of a client.

    Args:
        address: A result of `find_client`.

    Returns:
        The network of an IPv6 address; another text unchanged.
    """
    parsed = parse_address(address)
    if not isinstance(parsed, ipaddress.IPv6Address):
        return address
    return str(ipaddress.IPv6Network((int(parsed), _NETWORK_BITS), strict=False))


def _is_trusted(address: Address, trusted_proxy: str) -> bool:
    if trusted_proxy == ANY_PROXY:
        return True
    network = ipaddress.ip_network(trusted_proxy)
    return address.version == network.version and address in network
