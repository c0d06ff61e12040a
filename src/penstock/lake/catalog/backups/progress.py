"""How far a copy has come."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int], None]  # what is done, of what in all
