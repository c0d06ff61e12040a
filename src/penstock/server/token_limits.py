"""Limit the rate of wrong tokens by client address.

A token is too long to be guessed. The limit makes misconfigured clients wait, and makes repeated
attempts visible in the log (status 429). A valid token is accepted even from a limited address,
because many clients may share the address of a proxy.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable

from penstock.server.client_address import find_network


class TokenLimits:
    """Counters of wrong tokens by address. Only the thread of the HTTP server uses them.

    Attributes:
        limit: The number of wrong tokens within the window after which an address has to wait.
        window: The seconds of a window. It starts with the first wrong token of an address.
    """

    def __init__(
        self,
        limit: int = 20,
        window: float = 60.0,
        *,
        max_addresses: int = 10_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create empty counters.

        Args:
            limit: The number of wrong tokens within the window after which an address has to wait.
            window: The seconds of a window.
            max_addresses: The maximum number of counters. The oldest one is dropped first.
            clock: Returns monotonic seconds.
        """
        self.limit = limit
        self.window = window
        self._max_addresses = max_addresses
        self._clock = clock
        # The time of the first wrong token in the window, and their number. Oldest window first.
        self._counts: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def __len__(self) -> int:
        """Return the number of counters."""
        return len(self._counts)

    def count_wrong(self, address: str) -> int | None:
        """Count a wrong token.

        Args:
            address: The address of the client.

        Returns:
            The seconds until the client may try again, rounded up; None if it need not wait.
        """
        moment, key = self._clock(), find_network(address)
        self._drop_expired(moment)
        since, number = self._counts.get(key, (moment, 0))
        self._counts[key] = since, number + 1
        if len(self._counts) > self._max_addresses:
            self._counts.popitem(last=False)
        if number < self.limit:
            return None
        return max(1, math.ceil(since + self.window - moment))

    def _drop_expired(self, moment: float) -> None:
        while self._counts:
            key, (since, _) = next(iter(self._counts.items()))
            if moment - since < self.window:
                return
            del self._counts[key]
