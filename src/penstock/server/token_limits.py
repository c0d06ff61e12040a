"""Count wrong tokens by the address that shows them.

A token is too long to be guessed. The limit tells a client that is set up wrongly to wait, and
keeps one that tries on from filling the log with refusals that look like any other. A right token
is accepted all the same: many clients may share the address of a proxy.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable

from penstock.server.client_address import find_network


class TokenLimits:
    """The wrong tokens of the last time. Only the thread of the HTTP server uses it.

    Attributes:
        limit: The number of wrong tokens within the window after which an address has to wait.
        window: The seconds from the first wrong token of an address on in which they count.
    """

    def __init__(
        self,
        limit: int = 20,
        window: float = 60.0,
        *,
        most: int = 10_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create the limits without a wrong token.

        Args:
            limit: The number of wrong tokens within the window after which an address has to wait.
            window: The seconds in which they count.
            most: The number of addresses that are remembered at most.
            clock: Returns the time in seconds.
        """
        self.limit = limit
        self.window = window
        self._most = most
        self._clock = clock
        # When the first wrong token of a window came, and how many have: the oldest first.
        self._counts: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def __len__(self) -> int:
        """Return the number of addresses that are remembered."""
        return len(self._counts)

    def count_wrong(self, address: str) -> int | None:
        """Count a wrong token.

        Args:
            address: The address that shows it.

        Returns:
            The whole seconds after which it may try again; None if it may at once.
        """
        moment, key = self._clock(), find_network(address)
        self._forget(moment)
        since, number = self._counts.get(key, (moment, 0))
        self._counts[key] = since, number + 1
        if len(self._counts) > self._most:
            self._counts.popitem(last=False)
        if number < self.limit:
            return None
        return max(1, math.ceil(since + self.window - moment))

    def _forget(self, moment: float) -> None:
        while self._counts:
            key, (since, _) = next(iter(self._counts.items()))
            if moment - since < self.window:
                return
            del self._counts[key]
