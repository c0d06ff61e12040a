"""Fit a table into the width of a terminal: which columns stay, and how wide each is. Pure.

A word is never broken. Long cells are wrapped at spaces first; then the least needed columns are
left out, then all cells are wrapped. A table that still does not fit has no widths, and is shown as
records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

GAP = 2  # blanks between two columns
READABLE = 24  # a cell that is wrapped has at least this width, where its column allows it


def fit(
    columns: Sequence[Sequence[str]], width: int, least: Sequence[int] = ()
) -> Mapping[int, int] | None:
    """The widths of the columns that are shown, by their numbers; None where no table fits.

    ``columns`` are the texts of each column, its heading among them. ``least`` are those that may
    be left out, the least needed one first.
    """
    from rich.cells import cell_len

    natural = [max(map(cell_len, texts), default=0) for texts in columns]
    words = [
        max((cell_len(word) for text in texts for word in text.split()), default=0)
        for texts in columns
    ]
    readable = [
        full if full <= READABLE else max(word, READABLE)
        for full, word in zip(natural, words, strict=True)
    ]
    shown = list(range(len(columns)))
    for dropped in (None, *least):
        if dropped is not None:
            shown.remove(dropped)
        if _total(readable, shown) <= width:
            return _shared(shown, natural, readable, width)
    if shown and _total(words, shown) <= width:
        return _shared(shown, natural, words, width)
    return None


def _total(widths: Sequence[int], shown: Sequence[int]) -> int:
    return sum(widths[number] for number in shown) + GAP * (len(shown) - 1)


def _shared(
    shown: Sequence[int], natural: Sequence[int], least: Sequence[int], width: int
) -> dict[int, int]:
    """Give what is left of ``width`` to the columns that are wrapped, the narrowest need first."""
    widths = {number: least[number] for number in shown}
    left = width - _total(least, shown)
    wanting = sorted(shown, key=lambda number: natural[number] - least[number])
    for place, number in enumerate(wanting):
        more = min(natural[number] - least[number], left // (len(wanting) - place))
        widths[number] += more
        left -= more
    return widths
