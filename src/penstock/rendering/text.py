"""Write numbers, lengths of time and names in lines of text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

SHORT_ID = 13  # characters of the id of a run: its milliseconds
_FEW = 5  # names in a line
# Control characters move the cursor, change a terminal's settings or turn text around;
# surrogates have no encoding.
_CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def visible(text: str, *, keep: str = "") -> str:
    """Write control characters as escapes.

    Args:
        text: Any text.
        keep: Control characters that stay.

    Returns:
        The text, which a terminal shows as it is.
    """
    return _CONTROL.sub(lambda match: match[0] if match[0] in keep else _escaped(match[0]), text)


def _escaped(character: str) -> str:
    return _SHORT.get(character) or f"\\u{ord(character):04x}"


def one_line(message: str) -> str:
    """Join the lines of a message, for the cell of a table.

    Args:
        message: Some lines.

    Returns:
        One: ``why → next step``.
    """
    return " ".join(line.strip() for line in message.splitlines())


def line(value: object, *parts: object) -> str:
    """Return the ``repr`` of a value: ``Plan(2 steps: orders, customers)``.

    Args:
        value: The value, which is named by its class.
        *parts: What follows in brackets; None and empty texts are left out.

    Returns:
        One line.
    """
    shown = ", ".join(str(part) for part in parts if part not in (None, ""))
    return f"{type(value).__name__}({shown})"


def listed(names: Sequence[str]) -> str:
    """Name the first of many.

    Args:
        names: The names.

    Returns:
        A few of them, and how many others follow.
    """
    more = len(names) - _FEW
    return ", ".join(names[:_FEW]) + (f" and {more} more" if more > 0 else "")


def count(number: int | None, noun: str) -> str:
    """Write a number with its noun.

    Args:
        number: The number; None where it is not known.
        noun: The noun in the singular.

    Returns:
        ``1 row``, ``1,842 rows``, or an empty text.
    """
    return "" if number is None else f"{number:,} {noun}{'' if number == 1 else 's'}"


def seconds(value: float | None) -> str:
    """Write a length of time.

    Args:
        value: The seconds; None where they are not known.

    Returns:
        ``0.4 s``, ``12 s``, ``3 min 05 s``, or an empty text.
    """
    if value is None:
        return ""
    if value < 10:
        return f"{value:.1f} s"
    if value < 100:
        return f"{value:.0f} s"
    minutes, remainder = divmod(round(value), 60)
    return f"{minutes} min {remainder:02d} s"


def slice_state(state: str, outside_snapshot: int | None = None) -> str:
    """Return the state of a slice for people.

    Args:
        state: The state.
        outside_snapshot: The snapshot in which another writer changed it.

    Returns:
        ``skipped: upstream failed``, ``changed outside (snapshot 7)``.
    """
    by_others = "" if outside_snapshot is None else f" (snapshot {outside_snapshot})"
    return f"{'skipped: upstream failed' if state == 'skipped' else state}{by_others}"


def past_freshness(number: int, freshness: str | None, *, has_many: bool) -> str:
    """Write how many slices are older than they may be.

    Args:
        number: The number of slices.
        freshness: How old they may be.
        has_many: Whether the table has slices that are told apart.

    Returns:
        ``2 past their freshness (1h)``, ``past its freshness (1h)``, or an empty text.
    """
    if not number:
        return ""
    number_text = f"{number:,} " if has_many else ""
    return f"{number_text}past {'its' if number == 1 else 'their'} freshness ({freshness})"


def step_counts(steps: Mapping[str, int]) -> str:
    """Write how many slices ended in each state.

    Args:
        steps: The numbers by states.

    Returns:
        ``3 done, 1 failed, 2 skipped: upstream failed``.
    """
    return ", ".join(f"{number:,} {slice_state(state)}" for state, number in steps.items())


def state_text(state: str, reason: str | None, worst: str | None = None) -> str:
    """Return a state with its reason on one line: ``failed: why``, ``skipped (why)``.

    Args:
        state: The state of a step, or a text of several states.
        reason: The message. Only its first line is returned.
        worst: The state that the reason belongs to, where ``state`` is a text of several.

    Returns:
        The text.
    """
    if not reason:
        return state
    cause = reason.splitlines()[0]
    if (worst or state) in {"skipped", "waiting"}:
        return f"{state} ({cause})"
    return f"{state}: {cause}"
