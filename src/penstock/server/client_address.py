"""Say which address a request comes from, also behind a proxy.

A proxy appends the address of its client to the header ``X-Forwarded-For``. Everybody can send
that header: so it counts only from a proxy that is trusted, and only its end, up to the first
address that no trusted proxy has.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

ANY_PROXY = "*"
"""Trust whoever connects as a proxy, but no proxy before it."""
_UNKNOWN = "unknown"
_WITH_PORT = re.compile(r"\[([^\]]*)\](?::\d{1,5})?|([^:\[\]]+):\d{1,5}")
_NETWORK_BITS = 64  # of IPv6: whoever has one address has all of its network


def find_client(peer: str | None, forwarded: Sequence[str], trusted_proxy: str | None) -> str:
    """Return the address that a request comes from.

    Args:
        peer: The address that connects; None if it is not known.
        forwarded: The values of the headers ``X-Forwarded-For``, in their order.
        trusted_proxy: The address or network of the proxy, `ANY_PROXY`, or None.

    Returns:
        The address. Where the header has something else in place of an address, it is that of
        the trusted proxy which received that.
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
    """Return the address that a text has.

    Args:
        text: An address of IPv4 or IPv6, perhaps in brackets and with a port.

    Returns:
        The address; that of IPv4 for one that is mapped to IPv6. None if there is none.
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
    """Return what stands for all addresses of one client.

    Args:
        address: What `find_client` returned.

    Returns:
        The network of an address of IPv6; any other text as it is.
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
