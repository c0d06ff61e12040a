"""Keywords that say when a script runs: ``on`` and ``trigger``."""

from __future__ import annotations

import re

from penstock.model.files.header_lines import CommentLine
from penstock.model.headers.draft import LineDraft
from penstock.model.values.asset import parse_asset
from penstock.model.values.schedule import EVENTS, Trigger
from penstock.settings.durations import is_duration
from penstock.sql.identifiers import nearest

JOINS = ("all", "any")
_DEBOUNCE = re.compile(r"^(?P<asset>.*?)\s+debounce=(?P<duration>\S*)$")


def on(line: CommentLine, draft: LineDraft) -> None:
    """``on <asset> [debounce=<dur>]`` or ``on <event>``; the path may hold blanks."""
    found = _trigger(line, draft)
    if found is None:
        return
    same = [t for t in draft.triggers if (t.kind, t.asset) == (found.kind, found.asset)]
    if same:
        draft.drop(line, "it is here already", line.text)
        return
    draft.places[f"on:{len(draft.triggers)}"] = line.location
    draft.triggers.append(found)


def trigger(line: CommentLine, draft: LineDraft) -> None:
    if line.rest not in JOINS:
        guess = line.rest.lower() if line.rest.lower() in JOINS else "all"
        draft.drop(line, "the join is `all` or `any`, in small letters", f"trigger {guess}")
        return
    if draft.join_mode not in {None, line.rest}:
        draft.warn(
            line.location,
            f"`{line.text}` replaces `trigger {draft.join_mode}` above",
            "keep one of the two",
            rule="trigger",
        )
    draft.join_mode = line.rest
    draft.places["trigger"] = line.location


def _trigger(line: CommentLine, draft: LineDraft) -> Trigger | None:
    cut = _DEBOUNCE.match(line.rest)
    text, duration = (cut["asset"], cut["duration"]) if cut else (line.rest, None)
    if text in EVENTS:
        if duration is not None:
            message = f"`{line.text}`: only an asset has a debounce, so there is none"
            draft.warn(line.location, message, f"write `{line.prefix} on {text}`", rule="debounce")
        return Trigger(text)
    asset = parse_asset(text, bare_ducklake=False)
    if asset is None:
        reason, form = _why_not(line)
        draft.drop(line, reason, form)
        return None
    if duration is not None and not is_duration(duration):
        draft.warn(
            line.location,
            f"`{line.text}`: `debounce={duration}` is not a duration, so it is dropped",
            f"write `{line.prefix} on {text} debounce=60s`",
            rule="debounce",
        )
        duration = None
    return Trigger("asset", asset, duration)


def _why_not(line: CommentLine) -> tuple[str, str]:
    first = line.words[0].text if line.words else ""
    if first in EVENTS:
        return f"`{first}` stands alone", f"on {first}"
    if first.startswith("delta://"):
        return "the asset names no table", "on delta://ROOT/schema/table"
    if first == "ducklake" or first.startswith("ducklake://"):
        return "the asset names no table", "on ducklake://main/table"
    guess = nearest(first, EVENTS)
    form = f"on {guess}" if guess else "on ducklake://main/table"
    return "it names no asset and no event", form
