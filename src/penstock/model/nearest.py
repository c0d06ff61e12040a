"""The nearest known word, for messages that say what would be right."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The known word most like ``word`` (case does not count), or ``None``."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    matches = get_close_matches(word.casefold(), list(by_folded), n=1, cutoff=cutoff)
    return by_folded[matches[0]] if matches else None
