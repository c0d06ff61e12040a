"""Read the definitions that slices were made by, to show what has changed since."""

from __future__ import annotations

import json
from collections.abc import Mapping

from sqlalchemy import Connection, func, select

from penstock.engine.state.tables import DEFINITION, READ, SLICE


def last_other(connection: Connection, target: str, than: str) -> Mapping[str, str] | None:
    """Return the parts of the definition that last made slices of a target, of those that are not
    ``than``; None where it is not recorded.
    """
    last = func.max(SLICE.c.snapshot_id)
    hashes = select(SLICE.c.definition_hash).where(
        SLICE.c.target == target, SLICE.c.definition_hash != than
    )
    hashes = hashes.group_by(SLICE.c.definition_hash).order_by(last.desc()).limit(1)
    other = connection.execute(hashes).scalar()
    own = (DEFINITION.c.target == target, DEFINITION.c.definition_hash == other)
    parts = connection.execute(select(DEFINITION.c.parts).where(*own)).scalar()
    if parts is None:
        return None
    found: dict[str, str] = json.loads(parts)
    return found


def parts_of(connection: Connection, target: str, definition: str) -> dict[str, str]:
    """Return the parts of a definition, by its hash; none where it is not recorded."""
    own = (DEFINITION.c.target == target, DEFINITION.c.definition_hash == definition)
    parts = connection.execute(select(DEFINITION.c.parts).where(*own)).scalar()
    found: dict[str, str] = {} if parts is None else json.loads(parts)
    return found


def other_terms(connection: Connection, now: Mapping[str, str]) -> dict[str, tuple[str, list[str]]]:
    """Return targets of which slices were published on other terms than those of ``now``, by hash:
    the last of these, and the slices. Of records without terms nothing is known.
    """
    kinds = select(READ.c.target, READ.c.tests).where(READ.c.target.in_(now), READ.c.tests != "")
    found = connection.execute(kinds.distinct())
    others = {target for target, terms in found if terms != now[target]}
    if not others:
        return {}
    made = select(SLICE.c.target, READ.c.tests, SLICE.c.slice).join(
        READ, READ.c.read_id == SLICE.c.read_id
    )
    made = made.where(SLICE.c.target.in_(others), READ.c.tests != "")
    known: dict[str, tuple[str, list[str]]] = {}
    for target, terms, slice_ in connection.execute(made.order_by(SLICE.c.snapshot_id)):
        if terms != now[target]:
            _, slices = known.get(target, ("", list[str]()))
            slices.append(slice_)
            known[target] = terms, slices
    return known
