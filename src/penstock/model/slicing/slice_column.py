"""The slice of a row as a column, from the SELECT with a condition on it up to the outermost one.

What would look across slices is refused: the rows of a slice must be those of the query for it
alone. Sources that have slices are joined by them, and others are the same for every slice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from penstock.model.script.arguments import PARTITION
from penstock.model.slicing.slice_condition import (
    NotJoint,
    SliceCondition,
    SliceFilter,
    condition_in,
    qualifiers,
)
from penstock.sql.determinism import AGGREGATES
from penstock.sql.identifiers import fold, quoted
from penstock.sql.query.edits import Edit, edited
from penstock.sql.query.reading import Query, Select, Source
from penstock.sql.tokens import NAME, WORD, Token, closing

_REFUSED = {
    "LIMIT": "it has a LIMIT",
    "OFFSET": "it has an OFFSET",
    "FETCH": "it has a FETCH",
    "WINDOW": "it has a WINDOW clause",
    "SORT": "it has SORT BY",
    "CLUSTER": "it has CLUSTER BY",
    "DISTRIBUTE": "it has DISTRIBUTE BY",
}
_NO_PLAIN_LIST = frozenset({"GROUPING", "CUBE", "ROLLUP"})
_NO_COLUMN = frozenset(
    {"DISTINCT", "ALL", "NULL", "TRUE", "FALSE", "CASE", "END", "NOT", "INTERVAL", "USER"}
    | {"CURRENT_USER", "SESSION_USER", "CURRENT_DATABASE", "CURRENT_SCHEMA", "CURRENT_CATALOG"}
)
_COLUMN = "penstock_slice_"  # with a number: the slice in queries inside


@dataclass(frozen=True, slots=True)
class Insertion:
    """``before``, what says the slice of a row, and ``after`` put into the text at ``at``."""

    at: int
    before: str
    after: str = ""


@dataclass(frozen=True, slots=True)
class SlicedSelect:
    """A SELECT whose rows have a slice each: by its own condition, or a column of what it reads.

    ``equal`` are columns of slices that are the same; ``where`` is where a WHERE for that begins
    and ends, None for both where it has none. ``name`` is the new column; None for the model's.
    ``listed`` are the places in its list that stand for the slice.
    """

    condition: SliceCondition | None
    column: str
    equal: tuple[str, ...]
    where: tuple[int | None, int]
    name: str | None
    selected: int
    puts: tuple[Insertion, ...]
    trial: str = ""
    listed: tuple[tuple[int, int], ...] = ()

    def edits(self, told: SliceFilter | None, name: str) -> Iterator[Edit]:
        slice_ = self.column if told is None else told.slice
        yield Edit(self.selected, self.selected, f", {slice_} AS {quoted(name)} ")
        yield from (Edit(start, end, slice_) for start, end in self.listed)
        for put in self.puts:
            yield Edit(put.at, put.at, f"{put.before}{slice_}{put.after}")
        same = "".join(f" AND {slice_} = {column}" for column in self.equal)
        if self.condition is not None and told is not None:
            (start, end), *others = self.condition.where
            yield Edit(start, end, f"({told.condition}{same})")
            yield from (Edit(first, last, "TRUE") for first, last in others)
        elif same and self.where[0] is None:
            yield Edit(self.where[1], self.where[1], f" WHERE {same.removeprefix(' AND ')} ")
        elif same and self.where[0] is not None:
            yield Edit(self.where[0], self.where[0], "(")
            yield Edit(self.where[1], self.where[1], f"){same} ")


@dataclass(frozen=True, slots=True)
class Scope:
    """The queries of WITHs that can be read: their texts without conditions on the slice, and the
    columns of those whose rows have one.
    """

    texts: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)


Read = tuple[Source, str | None]  # with the column that says the slice, qualified


@dataclass(slots=True)
class Reading:
    """A query that is looked through; ``selects`` and ``fixed`` are what was found."""

    sql: str
    tokens: Sequence[Token]
    markers: Mapping[int, str]
    seen: set[int] = field(default_factory=set)
    selects: list[SlicedSelect] = field(default_factory=list)
    fixed: list[Edit] = field(default_factory=list)
    _true: list[Edit] = field(default_factory=list)  # in place of conditions on the slice
    _names: int = 0

    def query(self, query: Query, scope: Scope, name: str | None) -> bool:
        """Return whether its rows have a slice each; then the column ``name`` says it, and without
        a name that of the model. Raises NotJoint.
        """
        texts, columns = dict(scope.texts), dict(scope.columns)
        for each in query.ctes:
            if each.name in texts:
                raise NotJoint(f"two queries of its WITHs are called {each.name}")
            column = self._name()
            if self.query(each.query, Scope(texts, columns), column):
                columns[each.name] = column
                self._also_named(each.columns, column)
            texts[each.name] = self._trial_text(each.first, each.last)
        inner = Scope(texts, columns)
        found = [
            self.query(term, inner, name)
            if isinstance(term, Query)
            else self._select(term, inner, name)
            for term in query.terms
        ]
        if any(found) and not all(found):
            raise NotJoint("a part of its UNION has no condition on the partition")
        return found[0]

    def _name(self) -> str:
        self._names += 1
        return f"{_COLUMN}{self._names}"

    def _also_named(self, bracket: int | None, column: str) -> None:
        """Add a column to a list of names."""
        if bracket is not None:
            at = self.tokens[bracket].start
            self.fixed.append(Edit(at, at, f", {quoted(column)}"))

    def _trial_text(self, first: int, last: int) -> str:
        """Words of the text, where the conditions on the slice are always true."""
        start, end = self.tokens[first].start, self.tokens[last - 1].end
        inside = [edit for edit in self._true if start <= edit.start and edit.end <= end]
        return edited(self.sql, inside, start, end).text

    def _select(self, select: Select, scope: Scope, name: str | None) -> bool:
        self._refuse_inside(select, scope)
        read = [self._read(source, scope) for source in select.sources]
        where, from_ = select.clause("WHERE"), select.clause("FROM")
        condition = None if where is None else condition_in(self.tokens, where, self.markers)
        if condition is None and all(column is None for _, column in read):
            return False
        if from_ is None:
            raise NotJoint("a SELECT with a condition on the partition has no FROM")
        trial = ""
        if condition is not None and where is not None:
            self.seen |= {at for at in self.markers if where[0] <= at < where[1]}
            self._true += [Edit(start, end, "TRUE") for start, end in condition.where]
            named = ", ".join(scope.texts.values())
            trial = f"WITH {named} " if named else ""
            trial += f"SELECT {condition.expression} AS c FROM {self._trial_text(*from_)}"
        self._refuse_across(select)
        self._leave_out(select, read)
        column, equal, puts = self._joined(read, condition)
        after = from_ if where is None else where
        self.selects.append(
            SlicedSelect(
                condition=condition,
                column=column,
                equal=tuple(equal),
                where=(None if where is None else self.tokens[where[0]].start, self._end(after)),
                name=name,
                selected=self.tokens[select.clauses["FROM"]].start,
                puts=(*puts, *self._grouped(select), *self._windows(select)),
                trial=trial,
                listed=tuple(self._listed(select)),
            )
        )
        return True

    def _listed(self, select: Select) -> Iterator[tuple[int, int]]:
        """Find the slice's value in the list: the column that says it stands there instead."""
        for at in select.own(select.first, select.clauses["FROM"]):
            if self.markers.get(at) == PARTITION:
                self.seen.add(at)
                yield self.tokens[at].start, self.tokens[at].end

    def _end(self, words: tuple[int, int]) -> int:
        return self.tokens[words[1] - 1].end

    def _read(self, source: Source, scope: Scope) -> Read:
        column = scope.columns.get(source.table)
        if source.query is not None:
            own = self._name()
            column = own if self.query(source.query, scope, own) else None
        if column is None:
            return source, None
        if source.lateral:
            raise NotJoint("a LATERAL query has a condition on the partition")
        self._also_named(source.columns, column)
        of = f"{source.name}." if source.name else ""
        return source, f"{of}{quoted(column)}"

    def _refuse_inside(self, select: Select, scope: Scope) -> None:
        """Refuse queries in expressions, and joins in brackets, that read rows of slices."""
        tokens = self.tokens
        for first, last in select.inside:
            for at in range(first, last):
                word = tokens[at]
                if word.kind not in {WORD, NAME} or fold(word.value) not in scope.columns:
                    continue
                if tokens[at - 1].text != "." and tokens[at + 1].text != ".":
                    what = "a query in an expression, or a join in brackets,"
                    raise NotJoint(f"{what} reads {word.text}")

    def _refuse_across(self, select: Select) -> None:
        """Refuse what looks at rows of several slices."""
        for word, why in _REFUSED.items():
            if word in select.clauses:
                raise NotJoint(why)
        group = select.clause("GROUP")
        if group is None:
            if "HAVING" in select.clauses:
                raise NotJoint("it has HAVING without GROUP BY")
            self._refuse_aggregates(select)
            return
        words = [self.tokens[at] for at in select.own(*group)]
        empty = any(
            token.text == "(" and after.text == ")"
            for before, token, after in zip(words, words[1:], words[2:], strict=False)
            if before.text == "," or before.upper == "BY"
        )
        by_all = words[1].upper == "ALL" and not self._has_plain_column(select)
        if empty or by_all or any(word.upper in _NO_PLAIN_LIST for word in words):
            raise NotJoint("its GROUP BY is not a plain list")

    def _has_plain_column(self, select: Select) -> bool:
        """Return whether an item of the list is a column: GROUP BY ALL has it as a key."""
        items = [self.tokens[first:last] for first, last in select.items(self.tokens)]
        aliases = {fold(item[-1].value) for item in items if len(item) > 1}
        return any(
            item
            and all(each.kind in {WORD, NAME} or each.text == "." for each in item)
            and _NO_COLUMN.isdisjoint(each.upper for each in item)
            and ((len(item) > 1 and item[1].text == ".") or fold(item[0].value) not in aliases)
            for item in items
        )

    def _refuse_aggregates(self, select: Select) -> None:
        """Without GROUP BY an aggregate has a row for a slice without rows, too."""
        for at in select.own(select.first, select.last - 1):
            token = self.tokens[at]
            if token.kind not in {WORD, NAME} or self.tokens[at + 1].text != "(":
                continue
            if fold(token.value) in AGGREGATES and not self._is_window(at + 1, select.last):
                raise NotJoint(f"{token.text}() stands without GROUP BY")

    def _is_window(self, opening: int, last: int) -> bool:
        at = closing(self.tokens, opening)
        while at is not None and at + 1 < last:
            word = self.tokens[at + 1].upper
            if word == "OVER":
                return True
            if word in {"IGNORE", "RESPECT"}:
                at += 2
            elif word == "FILTER":
                at = closing(self.tokens, at + 2)
            else:
                return False
        return False

    def _leave_out(self, select: Select, read: Sequence[Read]) -> None:
        """Leave the columns of slices out of each ``*``."""
        shown = [(each, column) for each, column in read if column and each.join != "half"]
        if not shown:
            return
        for at, of, listed in select.stars(self.tokens):
            columns = [column for each, column in shown if of in {"", _called(each)}]
            if columns and not listed:
                raise NotJoint("a * stands in a call, and would have the slice in it")
            if columns:
                self._without(at, ", ".join(columns))

    def _without(self, star: int, columns: str) -> None:
        after = self.tokens[star + 1]
        if after.upper in {"EXCLUDE", "REPLACE", "RENAME", "ILIKE", "LIKE"}:
            raise NotJoint(f"a * is followed by {after.text}")
        end = closing(self.tokens, star + 2) if after.upper == "EXCEPT" else None
        if end is None:
            at, text = self.tokens[star].end, f" EXCEPT ({columns})"
        else:
            at, text = self.tokens[end].start, f", {columns}"
        self.fixed.append(Edit(at, at, text))

    def _joined(
        self, read: Sequence[Read], condition: SliceCondition | None
    ) -> tuple[str, list[str], list[Insertion]]:
        """The column that says the slice, those that are to be equal to it, and what is to be put
        into the conditions of joins.
        """
        first, equal, puts = "", list[str](), list[Insertion]()
        if all(column is None for _, column in read):
            return first, equal, puts
        earlier: set[str] = set()
        for source, column in read:
            if source.join == "other":
                raise NotJoint("it joins what has a condition on the partition by FULL, RIGHT, ...")
            if source.pivots:
                raise NotJoint("it pivots what has a condition on the partition")
            if column is not None and source.join == "inner":
                if condition is not None or first:
                    equal.append(column)
                first = first or column
            elif column is not None:
                puts += self._by_slice(source, column, first, earlier, condition)
            earlier.add(_called(source))
        return first, equal, puts

    def _by_slice(
        self,
        source: Source,
        column: str,
        first: str,
        earlier: set[str],
        condition: SliceCondition | None,
    ) -> list[Insertion]:
        """Add the slice to the condition of an outer join, SEMI or ANTI JOIN."""
        name = source.name or "a query"
        if source.on is None:
            raise NotJoint(f"{name} has a condition on the partition and is not joined by ON")
        start, end = self.tokens[source.on[0]].start, self._end(source.on)
        self.fixed.append(Edit(start, start, "("))
        if first:
            self.fixed.append(Edit(end, end, f") AND {first} = {column}"))
            return []
        if condition is None:
            raise NotJoint(f"{name} has a condition on the partition, but not what it is joined to")
        if not qualifiers(condition.expression) <= earlier:
            raise NotJoint(
                f"{name} has a condition on the partition, and {condition.expression} may be of it:"
                " write the table before the column"
            )
        return [Insertion(end, ") AND ", f" = {column}")]

    def _grouped(self, select: Select) -> Iterator[Insertion]:
        group = select.clause("GROUP")
        if group is not None and self.tokens[group[0] + 1].upper != "ALL":
            yield Insertion(self._end(group), ", ", " ")

    def _windows(self, select: Select) -> Iterator[Insertion]:
        """The slice in the PARTITION BY of each window."""
        tokens = self.tokens
        for at in select.own(select.first, select.last):
            if tokens[at].kind != WORD or tokens[at].upper != "OVER":
                continue
            if at + 2 >= select.last or tokens[at + 1].text != "(":
                raise NotJoint("a window has a name")
            inside = tokens[at + 2]
            if inside.upper == "PARTITION":
                yield Insertion(tokens[at + 4].start, "", ", ")
            elif inside.upper in {"ORDER", "ROWS", "RANGE"} or inside.text == ")":
                yield Insertion(inside.start, "PARTITION BY ", " ")
            else:
                raise NotJoint("a window builds on another, or is by DISTRIBUTE BY")


def _called(source: Source) -> str:
    return fold(source.name.strip("`"))
