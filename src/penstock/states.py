"""Define the states of slices and of steps, and what each state means for a run.

A state is its word: in the catalog, in JSON and for people. docs/plans.md and docs/runs.md explain
the words.
"""

from __future__ import annotations

from enum import StrEnum


class SliceState(StrEnum):
    """The state of a slice of a model, in order: the first is the most pressing."""

    FAILED = "failed"
    SKIPPED = "skipped"
    WAITING = "waiting"
    RUNNING = "running"
    NO_MODEL = "no model"
    CHANGED_OUTSIDE = "changed outside"
    OTHER_KIND = "other kind"
    BEHIND = "behind"
    LATE = "late"
    STALE = "stale"
    UNFINISHED = "unfinished"
    MATERIALIZED = "materialized"
    MISSING = "missing"

    @property
    def urgency(self) -> int:
        """Return the place in the order of states: 0 is the most pressing."""
        return _URGENCY[self]

    def is_due(self, *, can_rebuild: bool) -> bool:
        """Tell whether a run makes the slice. One that is running is made if that run fails.

        Args:
            can_rebuild: Whether a rerun of the model replaces the rows that are there.

        Returns:
            True for what does not exist, and for what a rerun makes right.
        """
        return self in _NEED_BUILD or (can_rebuild and self in _NEED_REBUILD)

    @property
    def exists(self) -> bool:
        """Return whether the slice counts as made.

        A failed slice does not, although rows of an earlier run may remain.
        """
        return self in _EXIST

    @property
    def is_as_recorded(self) -> bool:
        """Return whether the rows are those that a run recorded, and no other writer's."""
        return self in _EXIST and self is not SliceState.CHANGED_OUTSIDE

    @property
    def has_current_definition(self) -> bool:
        """Return whether the slice was made by the current definition, as far as the state tells.

        An unfinished slice may have an older one.
        """
        return self in _OF_CURRENT_DEFINITION

    @property
    def blocks_readers(self) -> bool:
        """Return whether a reader of the whole table waits.

        It does if the last attempt at the slice failed, was skipped, or waits. A missing slice
        stops it only if the model says where its slices start.
        """
        return self in _BLOCK_READERS

    @property
    def is_attempt(self) -> bool:
        """Return whether the state is that of an attempt that has published nothing."""
        return self in _BLOCK_READERS or self is SliceState.RUNNING


_URGENCY = {state: position for position, state in enumerate(SliceState)}
_NEED_BUILD = frozenset(
    {
        SliceState.MISSING,
        SliceState.FAILED,
        SliceState.SKIPPED,
        SliceState.WAITING,
        SliceState.RUNNING,
    }
)
_NEED_REBUILD = frozenset({SliceState.CHANGED_OUTSIDE, SliceState.BEHIND, SliceState.UNFINISHED})
_BLOCK_READERS = frozenset({SliceState.FAILED, SliceState.SKIPPED, SliceState.WAITING})
_OF_CURRENT_DEFINITION = frozenset(
    {SliceState.MATERIALIZED, SliceState.BEHIND, SliceState.LATE, SliceState.UNFINISHED}
)
_EXIST = _OF_CURRENT_DEFINITION | {SliceState.STALE, SliceState.CHANGED_OUTSIDE}


class StepState(StrEnum):
    """The state of a step of a run, or of its attempt at one slice."""

    DONE = "done"
    UNCHANGED = "unchanged"
    FAILED = "failed"
    SKIPPED = "skipped"
    WAITING = "waiting"
    RUNNING = "running"
    CANCELLED = "cancelled"
    ABANDONED = "abandoned"


# States of steps after which the slice is as the step would make it.
PUBLISHED = frozenset({StepState.DONE, StepState.UNCHANGED})
# A step ends like that when its user stops it, or when its process is killed.
INTERRUPTED = frozenset({StepState.CANCELLED, StepState.ABANDONED})
