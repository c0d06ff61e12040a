"""What a name that is not there may have meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from penstock.lake.format.naming import fold


def did_you_mean(name: str, candidates: Iterable[str], kind: str) -> str:
    """``candidates`` may be qualified like ``name``: what they share in front says nothing."""
    known = sorted(candidates)
    shared = f"{fold(name.rpartition('.')[0])}."
    by_fold = {fold(candidate).removeprefix(shared): candidate for candidate in known}
    close = get_close_matches(fold(name).removeprefix(shared), by_fold, n=1)
    if close:
        return f"did you mean {by_fold[close[0]]}?"
    listed = ", ".join(known[:10]) + (", ..." if len(known) > 10 else "")
    return f"the {kind} there are: {listed}" if known else f"there are no {kind} yet"
