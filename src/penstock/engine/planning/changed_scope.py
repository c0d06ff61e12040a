"""Find what changes of definitions reach: slices of another definition, and what reads them. Pure.

A run of what has changed rebuilds exactly that (`changed`), a range with ``--changed`` beside what
it builds anyhow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from penstock.engine.planning.plan import Asked
from penstock.engine.planning.reasons import stale_slices
from penstock.engine.planning.restatement_scope import (
    Cascade,
    RestatementScope,
    cascade,
    why_not,
)

_ALWAYS = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ChangedScope:
    """The changes of ``first`` models, what they reach, and why others are ``refused``."""

    first: Mapping[str, RestatementScope] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    reached: Cascade = field(default_factory=Cascade)


def changed_scope(asked: Asked) -> ChangedScope:
    """Return the scope of the stale slices of the models that were asked for."""
    roots = [model for model in asked.steps if model.name in asked.roots]
    stale = stale_slices(roots, asked.known)
    refused = {m.name: why[0] for m in roots if m.name in stale and (why := why_not(m))}
    first = {
        model.name: RestatementScope(
            f"the definition of {model.name} has changed",
            _ALWAYS,
            stale[model.name],
            model.partition,
            now=True,
        )
        for model in roots
        if model.name in stale and model.name not in refused
    }
    if not first:
        return ChangedScope(refused=refused)
    names = {model.name for model in asked.steps}
    pasts = asked.known.pasts(asked.steps)
    reached = cascade(asked.steps, asked.graph.parents, names, pasts, first=first)
    return ChangedScope(first, refused, reached)
