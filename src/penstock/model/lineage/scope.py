"""Resolve the names in one SELECT: its tables, their columns, the aliases of its own columns.

A name that can only mean one thing if the query is right means that; any other is a doubt.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from penstock.lazy import exp
from penstock.model.lineage.relation import (
    HIDDEN,
    NOTHING,
    Column,
    Dependencies,
    Doubt,
    Relation,
    Rest,
    Value,
    joined,
)
from penstock.sql.dialect import SPARK
from penstock.sql.identifiers import fold

#: columns that engines add to what they read
_ADDED = frozenset({"_metadata", "file_index", "file_row_number", "filename"} | {*HIDDEN})
#: words that a parser may take for columns: units of time and functions without brackets
_WORDS = frozenset(
    re.findall(
        r"\w+",
        "all current_catalog current_database current_date current_role current_schema "
        "current_time current_timestamp current_user day dayofweek dayofyear days dow doy epoch "
        "grouping__id hour hours isoweek localtime localtimestamp microsecond microseconds "
        "millisecond milliseconds minute minutes mon month months quarter quarters second seconds "
        "session_user snapshot_id user week weeks year years yy yyyy",
    )
)
#: a query, and the scope around it -> what it makes
Queries = Callable[[exp.Expr, "Scope"], Relation]


@dataclass(frozen=True, slots=True)
class Source:
    """A table of a FROM; ``alias`` is ``""`` where nothing names it."""

    alias: str
    relation: Relation


@dataclass(slots=True)
class Scope:
    """One SELECT. ``visible`` are the relations that a FROM may name, by folded name.

    ``merged`` are the columns of USING and NATURAL, by folded name, the newest first. ``bound``
    are parameters of lambdas. ``by_alias`` says that aliases come before columns (ORDER BY).
    ``lacks`` collects the doubts about columns that nothing returns, of all scopes of a query.
    """

    visible: Mapping[str, Relation]
    queries: Queries
    dialect: str
    outer: Scope | None = None
    sources: list[Source] = field(default_factory=list)
    merged: dict[str, Column] = field(default_factory=dict)
    aliases: dict[str, Value] = field(default_factory=dict)
    windows: dict[str, exp.Expr] = field(default_factory=dict)
    bound: frozenset[str] = frozenset()
    by_alias: bool = False
    lacks: dict[Doubt, None] = field(default_factory=dict)

    def inside(self, visible: Mapping[str, Relation] | None = None) -> Scope:
        """A new scope for a query in this one."""
        visible = self.visible if visible is None else visible
        return Scope(visible, self.queries, self.dialect, self, lacks=self.lacks)

    def seeing(self, visible: Mapping[str, Relation]) -> Scope:
        return replace(self, visible=visible)

    def binding(self, names: Collection[str]) -> Scope:
        """With parameters of a lambda."""
        return replace(self, bound=self.bound | {fold(name) for name in names})

    def with_aliases_first(self) -> Scope:
        return replace(self, by_alias=True)

    def column(self, parts: Sequence[str], offset: int | None) -> Value:
        """Return what ``a``, ``t.a`` or ``t.a.field`` derives from."""
        value = None if len(parts) == 1 else self._qualified(parts)
        if value is None:
            value = self._unqualified(parts[0])
        if value is None:
            name = ".".join(parts[:2])
            is_word = fold(parts[0]) in _ADDED | _WORDS
            lacks = None if self._unsure or is_word else ("", name)
            doubt = Doubt(f"no table of the query has a column {name}", offset, lacks)
            value = Value(NOTHING, (doubt,))
        doubts = tuple(replace(doubt, offset=doubt.offset or offset) for doubt in value.doubts)
        self.lacks |= dict.fromkeys(doubt for doubt in doubts if doubt.lacks is not None)
        return Value(value.inputs, doubts)

    def source(self, alias: str) -> Source | None:
        """The table of this alias, of this SELECT or one around it."""
        scope: Scope | None = self
        while scope is not None:
            for source in scope.sources:
                if fold(source.alias) == fold(alias):
                    return source
            scope = scope.outer
        return None

    @property
    def _unsure(self) -> bool:
        around = self.outer is not None and self.outer._unsure
        return around or any(source.relation.unsure for source in self.sources)

    def counted(self) -> Dependencies:
        """Return what ``count(*)`` counts."""
        return frozenset().union(*(source.relation.counted for source in self.sources))

    def star(self, alias: str | None = None) -> Relation:
        """Return the columns of ``*``, or of ``alias.*``, as far as they are known."""
        if alias is None:
            return self._whole_star()
        source = self.source(alias)
        if source is not None:
            return _star([source.relation], source.relation.columns)
        reason = f"{alias}.* cannot be expanded: it is not a table of the query"
        if self._unqualified(alias) is not None:
            reason = f"{alias}.* cannot be expanded: the fields of {alias} are not known"
        return Relation(missing=Doubt(reason))

    def _whole_star(self) -> Relation:
        relations = [source.relation for source in self.sources]
        columns: list[Column] = list(self.merged.values()) if self.dialect == SPARK else []
        seen = set(self.merged) if self.dialect == SPARK else set()
        for column in (column for relation in relations for column in relation.columns):
            name = fold(column.name)
            if name in self.merged:
                if name not in seen:
                    columns.append(self.merged[name])
                    seen.add(name)
                continue
            columns.append(column)
        return _star(relations, columns)

    def _qualified(self, parts: Sequence[str]) -> Value | None:
        if fold(parts[0]) in self.bound:
            return Value()
        for index, part in enumerate(parts[:-1]):
            source = self.source(part)
            if source is None:
                continue
            column = source.relation.find(parts[index + 1])
            if column is not None:
                return column.named
            name = parts[index + 1]
            unsure = source.relation.unsure or fold(name) in _ADDED
            lacks = None if unsure else (source.relation.asset or "", name)
            return Value(NOTHING, (Doubt(f"{part} has no column {name}", lacks=lacks),))
        return None

    def _unqualified(self, name: str) -> Value | None:
        folded = fold(name)
        if folded in self.bound:
            return Value()
        if self.by_alias and folded in self.aliases:
            return self.aliases[folded]
        value = self._known(name)
        if value is not None:
            return value
        candidates = [source for source in self.sources if _may_have(source.relation, name)]
        around = None if self.outer is None else self.outer._unqualified(name)
        if not candidates:
            own = self.aliases.get(folded)
            return own or around or self._row(name)
        places = [f"of {source.alias or 'a subquery'}" for source in candidates]
        places += ["the alias of another column"] if folded in self.aliases else []
        places += ["of the query around it"] if around is not None else []
        others = (source for source in self.sources if source not in candidates)
        if self.dialect != SPARK and any(fold(source.alias) == folded for source in others):
            places.append(f"a row of {name}")
        if len(places) == 1:
            column = candidates[0].relation.find(name)
            return None if column is None else column.named
        reasons = dict.fromkeys(
            source.relation.missing.reason for source in candidates if source.relation.missing
        )
        doubt = Doubt(f"{name} may be {' or '.join(places)}: {'; '.join(reasons)}")
        return Value(NOTHING, (doubt,))

    def _known(self, name: str) -> Value | None:
        """Of the columns that are known to be there."""
        if fold(name) in self.merged:
            return self.merged[fold(name)].named
        found = [source for source in self.sources if fold(name) in source.relation.by_name]
        if len(found) > 1:
            where = " and ".join(source.alias or "a subquery" for source in found)
            return Value(NOTHING, (Doubt(f"{name} is ambiguous: {where} have it"),))
        return found[0].relation.by_name[fold(name)].named if found else None

    def _row(self, name: str) -> Value | None:
        """The name of a table as that of its rows."""
        source = self.source(name)
        if source is None:
            return None
        return whole(_star([source.relation], source.relation.columns))


def whole(star: Relation) -> Value:
    """Return what all columns of a star derive from."""
    value = joined(column.value for column in star.columns)
    return value if star.missing is None else Value(value.inputs, (*value.doubts, star.missing))


def _may_have(relation: Relation, name: str) -> bool:
    open_ = relation.missing is not None or (relation.asset and fold(name) in HIDDEN)
    return bool(open_) and relation.find(name) is not None


def _star(relations: Sequence[Relation], columns: Sequence[Column]) -> Relation:
    missing = next((relation.missing for relation in relations if relation.missing), None)
    open_ = tuple(Rest(relation) for relation in relations if relation.missing is not None)
    unsure = any(relation.unsure for relation in relations)
    counted = NOTHING.union(*(relation.counted for relation in relations))
    return Relation(tuple(columns), missing=missing, rest=open_, counted=counted, unsure=unsure)
