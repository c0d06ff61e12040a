"""An ASOF JOIN in one of two ways. One shuffle: the rows of both sides together, sorted by key and
time, and beside each row of the left side the last one of the right side so far. Or, where the
right side is small, a search in sorted arrays of its rows (`penstock.model.asof.asof_lookup`).

Spark's own plan compares each row with every version of its key. The text made here has the pairs
of rows as one subquery, and a LATERAL subquery over it for each table of the join, so that the rest
of the query finds the names that it had:

    FROM (SELECT ... last_value(d, true) OVER (PARTITION BY k ORDER BY t, s, ...) ...) AS pair
    CROSS JOIN LATERAL (SELECT pair.row.l0 AS id, ...) AS o
    CROSS JOIN LATERAL (SELECT pair.row.r.f0 AS tier, ...) AS d
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from penstock.lazy import exp
from penstock.model.asof.asof import PAIR, AsofJoin, NotPlanned, comparison
from penstock.model.asof.asof_lookup import FIELDS, arrays, joined, search, start
from penstock.sql.identifiers import quoted
from penstock.sql.query.edits import Edit, Mapped, Piece, assemble, pieces
from penstock.sql.query.nesting import symbols
from penstock.sql.text import Unreadable, parse_expression
from penstock.sql.tokens import NAME, WORD, Token

ROW = "penstock_row"  # the pair's one column
LEFT, RIGHT = "left", "right"
_EQUALS = ("=", "==", "<=>")
_NO_COLUMNS = ("'f', 1",)  # of a struct
_SWAPPED = {">=": "<=", ">": "<", "<=": ">=", "<": ">"}


@dataclass(frozen=True, slots=True)
class Column:
    """A column as the schema names it; ``sorts`` that its type has an order."""

    name: str
    sorts: bool = True


@dataclass(frozen=True, slots=True)
class Sides:
    """The columns of each table of the left side, by its name in small letters; the right's."""

    lefts: Mapping[str, tuple[str, ...]]
    right: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Match:
    """Two expressions, of the left side and of the right; NULLs match where it is ``null_safe``."""

    left: Piece
    right: Piece
    null_safe: bool = False


@dataclass(frozen=True, slots=True)
class Conditions:
    """``keys`` are equal, and ``time`` compares as ``operator`` says, the left side first.

    ``right`` and ``left`` have to hold for rows of a side, whatever they are paired with.
    """

    keys: tuple[Match, ...]
    time: Match
    operator: str
    left: tuple[Piece, ...]
    right: tuple[Piece, ...]

    @property
    def matches(self) -> tuple[Match, ...]:
        return (*self.keys, self.time)


def conditions_of(join: AsofJoin, sides: Sides) -> Conditions:
    """Return what the join compares. Raises NotPlanned."""
    which = _finder(join, sides)
    named = [_named(join, sides, column) for column in join.using]
    keys = named if join.match else named[:-1]
    right: list[Piece] = []
    for group in join.on:
        side = which(group)
        if len(side) < 2 and side != {RIGHT}:
            keys.append(Match(_piece(join, group), Piece("TRUE", join.start, exact=False)))
        elif side == {RIGHT}:
            right.append(_piece(join, group))
        else:
            keys.append(_key(join, group, which))
    operator, time = _time(join, which) if join.match else (">=", named[-1])
    left = tuple(_piece(join, group) for group in join.where if _may_go_first(join, group, which))
    return Conditions(tuple(keys), time, operator, left, tuple(right))


Finder = Callable[[Sequence[Token]], set[str]]


def _finder(join: AsofJoin, sides: Sides) -> Finder:
    """Return which sides the columns of an expression are of."""
    own = [name.lower() for names in sides.lefts.values() for name in names]
    other = [column.name.lower() for column in sides.right]

    def side(column: exp.Column) -> str:
        first = column.parts[0].name.lower()
        tables = (*sides.lefts, join.right_name)
        qualified = len(column.parts) > 1 and first in tables
        if qualified and (first in own or first in other):
            raise NotPlanned(f"{first} is a table of it and a column")
        if qualified:
            return RIGHT if first == join.right_name else LEFT
        if own.count(first) + other.count(first) != 1:
            raise NotPlanned(f"which table has {first} is not clear")
        return LEFT if first in own else RIGHT

    def which(group: Sequence[Token]) -> set[str]:
        tree = _tree(join, group)
        if tree.find(exp.Query, exp.Lambda, exp.Star) is not None:
            raise NotPlanned("a condition of it has a subquery or a lambda")
        return {side(column) for column in tree.find_all(exp.Column)}

    return which


def _tree(join: AsofJoin, group: Sequence[Token]) -> exp.Expr:
    try:
        return parse_expression(join.text[group[0].start : group[-1].end])
    except (IndexError, Unreadable):
        raise NotPlanned("a condition of it cannot be read") from None


def _piece(join: AsofJoin, group: Sequence[Token]) -> Piece:
    return Piece(join.text[group[0].start : group[-1].end], group[0].start, exact=True)


def _named(join: AsofJoin, sides: Sides, column: str) -> Match:
    """A column of USING."""
    lefts = [name for names in sides.lefts.values() for name in names]
    rights = [known.name for known in sides.right]
    for names, where in ((lefts, "left"), (rights, "right")):
        times = [name.lower() for name in names].count(column.lower())
        if times != 1:
            raise NotPlanned(f"its {where} side has {times or 'no'} columns {column}")
    named = Piece(quoted(column), join.start, exact=False)
    return Match(named, named)


def _key(join: AsofJoin, group: Sequence[Token], which: Finder) -> Match:
    tree = _tree(join, group)
    places = symbols(group, _EQUALS)
    if not isinstance(tree, exp.EQ | exp.NullSafeEQ) or len(places) != 1:
        raise NotPlanned(f"{tree.sql('spark')} compares both sides in another way")
    match, _ = _halves(join, group, places[0], which)
    return Match(match.left, match.right, isinstance(tree, exp.NullSafeEQ))


def _time(join: AsofJoin, which: Finder) -> tuple[str, Match]:
    at = comparison(join.match)
    tree = _tree(join, join.match)
    if at is None or not isinstance(tree, exp.GT | exp.GTE | exp.LT | exp.LTE):
        raise NotPlanned("it does not compare two times")
    match, swapped = _halves(join, join.match, at, which)
    operator = join.match[at].text
    return (_SWAPPED[operator] if swapped else operator), match


def _halves(join: AsofJoin, group: Sequence[Token], at: int, which: Finder) -> tuple[Match, bool]:
    """The two sides of a comparison, the left table's first, and whether that is the other way."""
    first, second = group[:at], group[at + 1 :]
    sides = which(first), which(second)
    if sides == ({LEFT}, {RIGHT}):
        return Match(_piece(join, first), _piece(join, second)), False
    if sides == ({RIGHT}, {LEFT}):
        return Match(_piece(join, second), _piece(join, first)), True
    raise NotPlanned("a comparison in it is not between its two sides")


def _may_go_first(join: AsofJoin, group: Sequence[Token], which: Finder) -> bool:
    """Return whether a condition of the query is one of the left side alone, and may be asked
    twice.
    """
    try:
        return (
            which(group) == {LEFT}
            and _tree(join, group).find(exp.Anonymous, exp.Rand, exp.Randn, exp.Uuid) is None
        )
    except NotPlanned:
        return False


def needed(join: AsofJoin, sides: Sides, *, calls_macros: bool = False) -> tuple[Column, ...]:
    """The columns of the right side that the text may use beside the join's own conditions."""
    tokens = join.tokens
    starred = any(
        token.value.lower() == join.right_name
        and [following.text for following in tokens[at + 1 : at + 3]] == [".", "*"]
        for at, token in enumerate(tokens)
    )
    natural = any(token.upper == "NATURAL" for token in tokens)
    if starred and join.using:
        raise NotPlanned(f"{join.right_name}.* has the columns of USING as well")
    if starred or natural or join.stars or calls_macros:
        return sides.right
    words = {token.value.lower() for token in _outside(join) if token.kind in {WORD, NAME}}
    return tuple(column for column in sides.right if column.name.lower() in words)


def _outside(join: AsofJoin) -> Iterator[Token]:
    """The words that may name a column of the right side: not those of the conditions, which are
    compared before, nor what is qualified with a table of the left side.
    """
    for at, token in enumerate(join.tokens):
        qualifier = join.tokens[at - 2].value.lower() if at > 1 else ""
        qualified = at > 1 and join.tokens[at - 1].text == "." and qualifier in join.lefts
        if not qualified and not join.right[1] <= token.start < join.end:
            yield token


def planned(
    join: AsofJoin,
    sides: Sides,
    conditions: Conditions,
    casts: Sequence[str | None],
    right: Sequence[Column],
    *,
    small: bool = False,
) -> Mapped:
    """The text with the join made in another way.

    ``casts`` are types that the keys and the time are to be compared in, ``right`` what is needed
    of the right side, ``small`` that it is to be searched in arrays. Raises NotPlanned.
    """
    if join.stars and join.using and join.match:
        raise NotPlanned("* has the columns of USING first")
    pair, fresh = _name(join)
    edits = [*(_hidden(join, pair) if fresh else ()), *_of_using(join, pair, right)]
    before = [edit for edit in edits if edit.end <= join.left[0]]
    after = [edit for edit in edits if edit.start >= join.end]
    return assemble(
        [
            *pieces(join.text, before, 0, join.left[0]),
            *_pairs(join, sides, conditions, casts, right, small=small),
            _own(join, f" AS {pair}{''.join(_tables(join, sides, right, pair))}"),
            *pieces(join.text, after, join.end),
        ]
    )


def _own(join: AsofJoin, text: str) -> Piece:
    return Piece(text, join.start, exact=False)


def _name(join: AsofJoin) -> tuple[str, bool]:
    """Return what the pairs are called, and whether by a name that the query does not have yet.

    A second join of a FROM has the first one inside, and takes over its name.
    """
    earlier = next((name for name in join.lefts if name.startswith(PAIR)), None)
    if earlier is None:
        return next(name for n in count() if (name := f"{PAIR}{n}") not in join.text), True
    outside = join.text[join.scope[0] : join.left[0]] + join.text[join.end : join.scope[1]]
    if f"{earlier}.{ROW}.r." in outside:
        raise NotPlanned("the join before it has USING")
    return earlier, False


def _hidden(join: AsofJoin, pair: str) -> Iterator[Edit]:
    """The pairs are not columns of ``*``."""
    for at in join.stars:
        star, following = join.tokens[at], join.tokens[at + 1 : at + 3]
        if following and following[0].upper in {"EXCEPT", "EXCLUDE"} and len(following) == 2:
            yield Edit(following[1].end, following[1].end, f"{pair}.{ROW}, ")
        else:
            yield Edit(star.end, star.end, f" EXCEPT ({pair}.{ROW})")


def _of_using(join: AsofJoin, pair: str, right: Sequence[Column]) -> Iterator[Edit]:
    """``d.at`` is the right side's own, which the join with USING (at) has no column of."""
    columns = {name.lower() for name in join.using}
    fields = {column.name.lower(): f"f{n}" for n, column in enumerate(right)}
    tokens = join.within(join.scope)
    for at in range(len(tokens) - 2):
        first, dot, last = tokens[at : at + 3]
        name = last.value.lower()
        qualified = first.value.lower() == join.right_name and dot.text == "."
        if not qualified or name not in columns or (at and tokens[at - 1].text == "."):
            continue
        label = f" AS {last.text}" if first.start in join.items else ""
        yield Edit(first.start, last.end, f"{pair}.{ROW}.r.{fields[name]}{label}")


def _lefts(sides: Sides) -> list[tuple[str, str]]:
    """Each column of the left side with its table; not the pairs of a join before."""
    tables = ((name, names) for name, names in sides.lefts.items() if not name.startswith(PAIR))
    return [(table, name) for table, names in tables for name in names]


def _tables(join: AsofJoin, sides: Sides, right: Sequence[Column], pair: str) -> Iterator[str]:
    """The tables of the join by their names, as subqueries over the pairs."""
    hidden = {name.lower() for name in join.using}
    columns: dict[str, list[str]] = {}
    for n, (table, name) in enumerate(_lefts(sides)):
        columns.setdefault(table, []).append(f"{pair}.{ROW}.l{n} AS {quoted(name)}")
    columns[join.right_name] = [
        f"{pair}.{ROW}.r.f{n} AS {quoted(column.name)}"
        for n, column in enumerate(right)
        if column.name.lower() not in hidden
    ]
    for table, listed in columns.items():
        if listed:
            yield f" CROSS JOIN LATERAL (SELECT {', '.join(listed)}) AS {quoted(table)}"


def _pairs(
    join: AsofJoin,
    sides: Sides,
    conditions: Conditions,
    casts: Sequence[str | None],
    right: Sequence[Column],
    *,
    small: bool,
) -> Iterator[Piece]:
    lefts = _lefts(sides)
    fields = ["r", *(f"l{n}" for n in range(len(lefts)))]
    row = ", ".join(f"'{field}', {field}" for field in fields)
    own = "".join(f"{quoted(t)}.{quoted(name)} AS l{n}, " for n, (t, name) in enumerate(lefts))
    values = [f"'f{n}', {quoted(join.right_name)}.{quoted(c.name)}" for n, c in enumerate(right)]
    right_row = f"named_struct({', '.join(values or _NO_COLUMNS)}) AS d"
    yield _own(join, f"(SELECT named_struct({row}) AS {ROW} FROM (")
    if small:
        yield from _searched(join, conditions, casts, own, right_row)
    else:
        nothing = f"{'NULL, ' * len(lefts)}{right_row}"
        yield from _sorted(join, conditions, casts, (own, nothing), _last(conditions, right))
    yield _own(join, "))" if join.outer else ") WHERE r IS NOT NULL)")


def _searched(
    join: AsofJoin, conditions: Conditions, casts: Sequence[str | None], own: str, right_row: str
) -> Iterator[Piece]:
    """Each row of the left side with the array of its key, and the element found in it."""
    keys = len(conditions.keys)
    head, tail = search(conditions.operator, f"k{keys}")
    first, last = arrays(conditions.operator, keys)
    yield _own(join, f"{head}SELECT l.*, x.a, {start()} FROM (")
    yield from _left(join, conditions, casts, own.removesuffix(", ") or "1 AS l")
    yield _own(join, f") AS l {'LEFT ' * join.outer}JOIN ({first}")
    yield from _right(join, conditions, casts, right_row)
    equal = joined([match.null_safe for match in conditions.keys])
    yield _own(join, f"{last}) AS x ON {equal}{tail}")


def _sorted(
    join: AsofJoin,
    conditions: Conditions,
    casts: Sequence[str | None],
    selected: tuple[str, str],
    last: str,
) -> Iterator[Piece]:
    """The rows of both sides together, by key and time."""
    later = conditions.operator in {">=", "<="}  # the left row comes after right ones of its time
    yield _own(join, f"SELECT * FROM (SELECT *, {last} AS r FROM (")
    yield from _left(join, conditions, casts, f"{int(later)} AS s, {selected[0]}NULL AS d")
    yield _own(join, " UNION ALL ")
    yield from _right(join, conditions, casts, f"{int(not later)} AS s, {selected[1]}")
    yield _own(join, f")) WHERE s = {int(later)}")


def _left(
    join: AsofJoin, conditions: Conditions, casts: Sequence[str | None], selected: str
) -> Iterator[Piece]:
    """Yield what is compared of the left side, and ``selected``."""
    yield _own(join, "SELECT ")
    yield from _compared(join, [match.left for match in conditions.matches], casts)
    yield _own(join, f"{selected} FROM ")
    yield _source(join, join.left)
    known = () if join.outer else _known((m.left, m) for m in conditions.matches)
    yield from _filter(join, [*conditions.left, *known])


def _right(
    join: AsofJoin, conditions: Conditions, casts: Sequence[str | None], selected: str
) -> Iterator[Piece]:
    yield _own(join, "SELECT ")
    yield from _compared(join, [match.right for match in conditions.matches], casts)
    yield _own(join, f"{selected} FROM ")
    yield _source(join, join.right)
    known = _known((m.right, m) for m in conditions.matches)
    yield from _filter(join, [*conditions.right, *known])


def is_narrow(sides: Sides, right: Sequence[Column]) -> bool:
    """Return whether the right side may be searched in arrays, if it is small."""
    fields = len(_lefts(sides)) + len(right)
    return fields <= FIELDS and all(column.sorts for column in right)


def _source(join: AsofJoin, span: tuple[int, int]) -> Piece:
    return Piece(join.text[slice(*span)], span[0], exact=True)


def _last(conditions: Conditions, right: Sequence[Column]) -> str:
    """The row of the right side that is last so far, in the order of time and then of columns."""
    keys = ", ".join(f"k{n}" for n in range(len(conditions.keys)))
    parts = f"PARTITION BY {keys} " if keys else ""
    order = " DESC" if conditions.operator in {"<=", "<"} else ""
    ties = "".join(f", d.f{n}{order}" for n, column in enumerate(right) if column.sorts)
    frame = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    time = f"k{len(conditions.keys)}"
    return f"last_value(d, true) OVER ({parts}ORDER BY {time}{order} NULLS FIRST, s{ties} {frame})"


def _compared(
    join: AsofJoin, pieces: Sequence[Piece], casts: Sequence[str | None]
) -> Iterator[Piece]:
    for n, (piece, cast) in enumerate(zip(pieces, casts, strict=True)):
        yield _own(join, "CAST(" if cast else "(")
        yield piece
        yield _own(join, f" AS {cast}) AS k{n}, " if cast else f") AS k{n}, ")


def _known(matches: Iterable[tuple[Piece, Match]]) -> Iterator[Piece]:
    """Conditions that what is compared is not NULL; as pieces that read as a whole."""
    for piece, match in matches:
        if not match.null_safe:
            yield Piece(f"({piece.text}) IS NOT NULL", piece.origin, exact=False)


def _filter(join: AsofJoin, conditions: Sequence[Piece]) -> Iterator[Piece]:
    for n, piece in enumerate(conditions):
        yield _own(join, " AND (" if n else " WHERE (")
        yield piece
        yield _own(join, ")")


def sides_query(join: AsofJoin) -> tuple[str, str]:
    """Queries whose columns are the tables of the left side, and the right one, as structs."""
    tables = [name for name in join.lefts if not name.startswith(PAIR)]
    lefts = ", ".join(f"struct({quoted(name)}.*)" for name in tables)
    left = f"{join.with_tables}SELECT {lefts} FROM {join.text[slice(*join.left)]}"
    right = f"struct({quoted(join.right_name)}.*)"
    return left, f"{join.with_tables}SELECT {right} FROM {join.text[slice(*join.right)]}"


def compared_query(join: AsofJoin, conditions: Conditions) -> tuple[str, str]:
    """Queries whose columns are what the join compares, of the left side and of the right."""
    lefts = ", ".join(f"({match.left.text})" for match in conditions.matches)
    rights = ", ".join(f"({match.right.text})" for match in conditions.matches)
    left = f"{join.with_tables}SELECT {lefts} FROM {join.text[slice(*join.left)]}"
    return left, f"{join.with_tables}SELECT {rights} FROM {join.text[slice(*join.right)]}"


def with_names(join: AsofJoin, lefts: Sequence[Sequence[str]], right: Collection[Column]) -> Sides:
    """The sides as `sides_query` has them. Raises NotPlanned for columns of one name."""
    tables = [name for name in join.lefts if not name.startswith(PAIR)]
    for names in (*lefts, [column.name for column in right]):
        if len({name.lower() for name in names}) < len(names):
            raise NotPlanned("two columns of a table have one name")
    known = dict(zip(tables, map(tuple, lefts), strict=True))
    return Sides(known, tuple(right))
