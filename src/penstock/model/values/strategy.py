"""Strategies: how the rows of a query become those of a table.

Whatever differs from kind to kind is a property here. A comparison with a strategy's name elsewhere
is refused by ``scripts/check_strategies.py``: it would be forgotten when a strategy is added.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any


class Output(Enum):
    """The output of a model."""

    TABLE = "a table that Penstock writes"
    STATEMENTS = "a table that the script's own statements write"
    VIEW = "a view"
    FILES = "files that a step in Python writes"
    NOTHING = "nothing: its query stands in the models that read it"


class Restate(Enum):
    """The rebuilt part, of a model without partitions."""

    SLICES = "its slices"
    INTERVALS = "its intervals; the whole table, where it has none"
    WHOLE = "the whole table: no query says which rows to remove"


class Capability(Enum):
    """An ability of a destination, which is where a step's table is made."""

    SLICES = "replace one slice of a table"
    MERGE = "merge rows by key"
    PARTITIONS = "replace the partitions that rows belong to"
    RANGES = "replace ranges of a column's values"
    HISTORY = "close versions of rows"
    VIEWS = "keep views"
    STATEMENTS = "run SQL statements in the transaction of a step"
    RECORDS = "record what a run did in the commit of its data"
    CHANGES = "tell which rows of a table changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """``name`` is how records, commands and messages call it.

    Of the table: ``restores``: a rerun makes a slice what the SELECT returns, whatever other
    writers did to it; ``exact``: it also removes what the SELECT does not return; ``replaces``: a
    slice becomes the rows of the SELECT, ``merges``: rows are updated or inserted by key,
    ``only_adds``: rows are added and stay, ``keeps_versions`` of its rows, ``by_partition_keys``:
    it replaces the partitions that the SELECT has rows of. ``keyed``: it has keys;
    ``keeps_columns`` that the query does not make; ``may_repeat`` the rows of a slice that is made
    twice.

    Of time: ``may_have_intervals``: its query may be about an interval; ``time_column``: each row
    says which interval it is of.

    Of a run: ``restate`` is what restating rebuilds, and ``irreplaceable`` why a model is only
    restated where it says so; ``reads_changes``: it may read only what changed in its input;
    ``joint``: it leaves other slices alone, so that many can be made together. ``helper`` writes
    such a table from Python. ``annotated``: a header can ask for it. ``needs`` is what the
    destination of its table has to be able to do.
    """

    name: str
    output: Output = Output.TABLE
    restores: bool = False
    exact: bool = False
    replaces: bool = False
    merges: bool = False
    only_adds: bool = False
    keeps_versions: bool = False
    by_partition_keys: bool = False
    keyed: bool = False
    keeps_columns: bool = True
    may_repeat: bool = False
    may_have_intervals: bool = False
    time_column: bool = False
    restate: Restate = Restate.SLICES
    irreplaceable: str | None = None
    reads_changes: bool = False
    joint: bool = False
    helper: str | None = None
    annotated: bool = False
    needs: frozenset[Capability] = frozenset()

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the name only: the properties are those of the version that reads it."""
        return strategy_named, (self.name,)

    @property
    def runs(self) -> bool:
        """Return whether a run makes anything of it."""
        return self.output is not Output.NOTHING

    @property
    def by_statements(self) -> bool:
        """Return whether the script's own statements write its table."""
        return self.output is Output.STATEMENTS

    @property
    def by_readers(self) -> bool:
        """Return whether its query is evaluated by those who read it."""
        return self.output in {Output.VIEW, Output.NOTHING}

    @property
    def counts_rows(self) -> bool:
        """Return whether the rows of its slices are counted."""
        return self.output not in {Output.VIEW, Output.FILES}

    @property
    def takes_tests(self) -> bool:
        """Return whether data tests can look at its rows before they are published."""
        return self.output in {Output.TABLE, Output.VIEW}

    @property
    def keeps_text(self) -> bool:
        """Return whether the text of its query is executed in the script's own dialect."""
        return self.output in {Output.VIEW, Output.STATEMENTS}

    @property
    def leaves_nothing(self) -> bool:
        """Return whether a run of an unpartitioned model leaves nothing that was there before."""
        return self.replaces or self.output is not Output.TABLE

    @property
    def builds_on_slices(self) -> bool:
        """Return whether what a run makes depends on what runs before it made
        of the same slices.
        """
        return self.may_repeat or self.keeps_versions

    def rerun_restores(self, *, by_time: bool) -> bool:
        """Return whether the next run rebuilds slices that another writer changed.

        Added rows would be added again, statements are the script's own, and merged or added rows
        of intervals do not say which interval they are of.
        """
        return self.time_column if by_time else self.restores


REPLACE = Strategy(
    name="replace",
    restores=True,
    exact=True,
    replaces=True,
    keeps_columns=False,
    joint=True,
    annotated=True,
)
APPEND = Strategy(
    name="append",
    only_adds=True,
    may_repeat=True,
    may_have_intervals=True,
    restate=Restate.WHOLE,
    irreplaceable="its rows are only ever added, and would be added again",
    reads_changes=True,
    joint=True,
    helper="append_partition",
    annotated=True,
)
MERGE = Strategy(
    name="merge",
    restores=True,
    merges=True,
    keyed=True,
    may_have_intervals=True,
    restate=Restate.WHOLE,
    reads_changes=True,
    helper="upsert_partition",
    annotated=True,
    needs=frozenset({Capability.MERGE}),
)
PARTITIONS = Strategy(
    name="partitions",
    restores=True,
    by_partition_keys=True,
    may_have_intervals=True,
    restate=Restate.WHOLE,
    needs=frozenset({Capability.PARTITIONS}),
)
TIME_RANGE = Strategy(
    name="time_range",
    restores=True,
    exact=True,
    may_have_intervals=True,
    time_column=True,
    annotated=True,
    needs=frozenset({Capability.RANGES}),
)
HISTORY = Strategy(
    name="history",
    keeps_versions=True,
    keyed=True,
    may_have_intervals=True,
    restate=Restate.WHOLE,
    irreplaceable="it would lose the versions that its source has no more",
    annotated=True,
    needs=frozenset({Capability.HISTORY}),
)
CUSTOM = Strategy(
    name="custom", may_repeat=True, may_have_intervals=True, restate=Restate.INTERVALS
)
MANUAL = Strategy(
    name="manual",
    output=Output.STATEMENTS,
    may_repeat=True,
    annotated=True,
    needs=frozenset({Capability.STATEMENTS}),
)
VIEW = Strategy(
    name="view",
    output=Output.VIEW,
    restores=True,
    keeps_columns=False,
    needs=frozenset({Capability.VIEWS}),
)
EMBEDDED = Strategy(name="embedded", output=Output.NOTHING, keeps_columns=False)
FILES = Strategy(name="files", output=Output.FILES)

STRATEGIES: Mapping[str, Strategy] = {
    each.name: each
    for each in (
        *(REPLACE, APPEND, MERGE, PARTITIONS, TIME_RANGE, HISTORY, CUSTOM),
        *(MANUAL, VIEW, EMBEDDED, FILES),
    )
}


def strategy_named(name: str) -> Strategy:
    """The strategy that a record names. One of a later version is known by its name alone."""
    return STRATEGIES.get(name) or Strategy(name=name)
