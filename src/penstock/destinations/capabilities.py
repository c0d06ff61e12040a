"""The abilities of a destination as one value, and the refusal of what it cannot do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from penstock.errors import ArgumentError
from penstock.model.definition.model import Model
from penstock.model.values.strategy import Capability


@dataclass(frozen=True, slots=True)
class Capabilities:
    """``kind`` is what messages call such a destination, ``can`` what it can do.
    ``carries_records``: data is published before its records are written, so each commit has them.
    ``has_lasting_snapshots``: a snapshot keeps its id as long as it exists.
    """

    kind: str
    can: frozenset[Capability]
    carries_records: bool = False
    has_lasting_snapshots: bool = True


DUCKLAKE = Capabilities("DuckLake", frozenset(Capability))
# Files that are written again without some rows do not say which of theirs are new.
_OF_DELTA = frozenset(Capability) - {Capability.CHANGES}
DELTA = Capabilities("Delta", _OF_DELTA, carries_records=True, has_lasting_snapshots=False)
# As `LakeSettings.kind` calls them.
KINDS: Mapping[str, Capabilities] = {"ducklake": DUCKLAKE, "delta": DELTA}


def refusals(models: Sequence[Model], known: Mapping[str, Capabilities]) -> Iterator[ArgumentError]:
    """Explain which models their destinations cannot make; ``known`` is by the names of lakes."""
    for model in models:
        for lake, need in model.needs:
            if lake in known and need not in known[lake].can:
                yield _refusal(model, lake, known[lake].kind, need)
                break


def _refusal(model: Model, lake: str, kind: str, need: Capability) -> ArgumentError:
    return ArgumentError(
        f"{lake} is a destination of the kind {kind}, which cannot {need.value}: {model.name}, "
        f"a model of the strategy {model.strategy}, needs that",
        hint="give the model another strategy, or a table in another destination",
        location=model.place("target"),
        data={"destination": lake, "strategy": model.strategy.name, "lacks": need.name.lower()},
    )
