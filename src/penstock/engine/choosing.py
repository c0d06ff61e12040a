"""Which parts of a script's query tell which files of its tables can matter."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from penstock.errors import PenstockError
from penstock.model.render import RenderedQuery
from penstock.model.sources import QuerySource
from penstock.sql.conditions import Or, Predicate
from penstock.sql.predicate import of_query
from penstock.sql.tables import Analysis, Unreadable, analyse

_CONDITIONS = re.compile(r"\b(WHERE|ON)\b", re.IGNORECASE)


def analysed(rendered: RenderedQuery) -> Analysis | None:
    """The query read again, where it may have conditions and can be read."""
    if _CONDITIONS.search(rendered.sql) is None:
        return None
    try:
        return analyse(rendered.sql)
    except (Unreadable, PenstockError):
        return None


def predicates(
    analysis: Analysis | None,
    views: Mapping[QuerySource, str],
    args: Mapping[str, Any],
    zone: str,
) -> dict[QuerySource, Predicate]:
    """The predicate of each source of which there is one; ``views`` are their names in the query.

    ``args`` are the values of the text's markers, ``zone`` the session's time zone. A source that
    the query names more than once is read once, for all its places. Never fails.
    """
    if analysis is None:
        return {}
    text = analysis.text
    nodes = defaultdict(list)
    for table in analysis.tables:
        nodes[table.name].append(table.node)
    found: dict[QuerySource, Predicate] = {}
    for source, view in views.items():
        if text.count(f"`{view}`") == len(nodes[view]):  # no place was overlooked
            found[source] = _any_of(
                [of_query(text, node, zone=zone, args=args) for node in nodes[view]], zone
            )
    return found


def _any_of(places: list[Predicate], zone: str) -> Predicate:
    """What matters at one of the places."""
    if len(places) == 1:
        return places[0]
    known = [place.condition for place in places if place.condition is not None]
    parts = tuple(dict.fromkeys(part for place in places for part in (*place.used, *place.unused)))
    if not known or len(known) < len(places):
        return Predicate(None, zone, unused=parts)
    used = tuple(" AND ".join(place.used) for place in places)
    unused = tuple(part for place in places for part in place.unused)
    return Predicate(Or(tuple(known)), zone, (" OR ".join(f"({one})" for one in used),), unused)
