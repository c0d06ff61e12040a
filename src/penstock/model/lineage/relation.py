"""Relations that a FROM can name: columns with what they derive from, as far as they are known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from penstock.model.lineage.values import ROWS, VALUE
from penstock.sql.identifiers import fold

#: asset, column, kind
Dependency = tuple[str, str, str]
Dependencies = frozenset[Dependency]
NOTHING: Dependencies = frozenset()
#: columns of every table that a star leaves out
HIDDEN = frozenset({"rowid"})


@dataclass(frozen=True, slots=True)
class Doubt:
    """The reason of a doubt; ``offset`` is the place in the text of the statement.

    ``lacks`` is set where the query names a column that nothing returns: the asset that lacks it
    (``""`` where that may be any of several), and its name.
    """

    reason: str
    offset: int | None = None
    lacks: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Value:
    """The origins of an expression; with ``doubts`` there may be more."""

    inputs: Dependencies = NOTHING
    doubts: tuple[Doubt, ...] = ()

    def used(self, kind: str) -> Value:
        """The inputs of what is used as ``kind``."""
        if kind == VALUE:
            return self
        return Value(frozenset((asset, name, kind) for asset, name, _ in self.inputs), self.doubts)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a relation; ``""`` as its name where the query gives none.

    ``left_by`` is the asset whose table still has the column though its query returns it no more.
    """

    name: str
    value: Value = field(default_factory=Value)
    left_by: str | None = None

    @property
    def named(self) -> Value:
        """The value for a query that names the column."""
        if self.left_by is None:
            return self.value
        lacks = (self.left_by, self.name)
        doubt = Doubt(f"{self.left_by} no longer returns {self.name}", lacks=lacks)
        return Value(self.value.inputs, (*self.value.doubts, doubt))


def within(outer: str, kind: str) -> str:
    """The kind of what acts as ``kind`` on a value that itself is used as ``outer``."""
    return kind if outer == VALUE else outer


def joined(values: Iterable[Value]) -> Value:
    """Return what several expressions derive from together."""
    items = list(values)
    doubts = dict.fromkeys(doubt for item in items for doubt in item.doubts)
    return Value(frozenset().union(*(item.inputs for item in items)), tuple(doubts))


@dataclass(frozen=True, slots=True)
class Rest:
    """Columns of ``relation`` that stand behind a star and are not known, but for ``without``."""

    relation: Relation
    without: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Relation:
    """Columns in their order, and ``rows``, which decides which rows there are.

    ``missing`` says why there may be more columns; ``rest`` is where those would come from.
    ``asset`` is set for a table or a file itself. ``every`` is what all columns of a function
    derive from, whatever they are called. ``counted`` are the rows that it has. ``unsure``: it may
    come to have other columns, so that nothing says of a name that it lacks it.
    """

    columns: tuple[Column, ...] = ()
    rows: Value = field(default_factory=Value)
    missing: Doubt | None = None
    rest: tuple[Rest, ...] = ()
    asset: str | None = None
    every: Value | None = None
    counted: Dependencies = NOTHING
    unsure: bool = False
    by_name: Mapping[str, Column] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        found: dict[str, Column] = {}
        for column in self.columns:
            name = fold(column.name)
            if name in found:
                doubt = Doubt(f"there are two columns {column.name}")
                found[name] = Column(column.name, Value(NOTHING, (doubt,)))
            elif name:
                found[name] = column
        object.__setattr__(self, "by_name", found)

    def find(self, name: str) -> Column | None:
        """The column if it is known to be there, or if only here it can be from."""
        column = self.by_name.get(fold(name))
        if column is not None:
            return column
        if self.asset is not None and (self.missing is not None or fold(name) in HIDDEN):
            return Column(name, Value(frozenset({(self.asset, name, VALUE)})))
        if self.every is not None:
            return Column(name, self.every)
        return None if self.missing is None else self._behind_star(name)

    def _behind_star(self, name: str) -> Column | None:
        assert self.missing is not None, "asked only then"
        if not self.rest:
            return Column(name, Value(NOTHING, (self.missing,)))
        found = [rest for rest in self.rest if fold(name) not in rest.without]
        if len(found) > 1:
            doubt = Doubt(f"{name} may be of several tables: {self.missing.reason}")
            return Column(name, Value(NOTHING, (doubt,)))
        return found[0].relation.find(name) if found else None

    def renamed(self, names: Sequence[str]) -> Relation:
        """With names of its own for its first columns: ``t (a, b)``."""
        if not names:
            return self
        columns = [
            replace(column, name=name) for name, column in zip(names, self.columns, strict=False)
        ]
        columns += self.columns[len(names) :]
        if self.missing is None:
            return replace(self, columns=tuple(columns), asset=None)
        # Which columns the names are for is not known.
        doubts = (self.missing,)
        named = tuple(Column(name, Value(NOTHING, doubts)) for name in names)
        return replace(self, columns=named, asset=None, rest=())


def table(
    asset: str,
    names: Iterable[str] | None,
    why: str = "",
    leftover: Sequence[str] = (),
    *,
    unsure: bool = False,
) -> Relation:
    """The relation of a table or a file; ``why`` its columns are not known (``names`` is None).

    ``leftover`` are columns that the table still has and its model's query no longer returns;
    ``unsure`` is that of `Relation`.
    """
    columns = tuple(
        Column(name, Value(frozenset({(asset, name, VALUE)})), asset if name in leftover else None)
        for name in (*(names or ()), *leftover)
    )
    missing = Doubt(why) if names is None else None
    counted = frozenset({(asset, ROWS, VALUE)})
    return Relation(columns, missing=missing, asset=asset, counted=counted, unsure=unsure)
