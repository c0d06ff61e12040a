"""Queries built of pieces whose lineage is known by construction."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model.lineage.given import lineage

BASE = ("id", "a", "b", "c")  # of main.t


@dataclass(frozen=True)
class Built:
    """A query; the columns of ``t`` that each of its columns, and its rows, derive from."""

    sql: str
    columns: tuple[tuple[str, frozenset[str]], ...]
    rows: frozenset[str] = frozenset()


START = Built("SELECT * FROM t", tuple((name, frozenset({name})) for name in BASE))


def filtered(query: Built, number: int) -> Built:
    name, inputs = query.columns[number % len(query.columns)]
    return replace(
        query, sql=f"SELECT * FROM ({query.sql}) WHERE {name} > 0", rows=query.rows | inputs
    )


def added(query: Built, number: int) -> Built:
    first, second = (query.columns[(number + step) % len(query.columns)] for step in (0, 1))
    name = f"x{len(query.sql)}_{number}"  # the text grows, so no other column has the name
    sql = f"SELECT *, {first[0]} + q.{second[0]} AS {name} FROM ({query.sql}) AS q"
    return replace(query, sql=sql, columns=(*query.columns, (name, first[1] | second[1])))


def dropped(query: Built, number: int) -> Built:
    if len(query.columns) < 2:
        return query
    at = number % len(query.columns)
    sql = f"SELECT * EXCEPT ({query.columns[at][0]}) FROM ({query.sql})"
    return replace(query, sql=sql, columns=query.columns[:at] + query.columns[at + 1 :])


def named(query: Built, number: int) -> Built:
    return replace(query, sql=f"WITH w{number} AS ({query.sql}) SELECT * FROM w{number}")


def renamed(query: Built, number: int) -> Built:
    names = [f"r{number}_{at}" for at in range(len(query.columns))]
    columns = tuple((new, inputs) for new, (_, inputs) in zip(names, query.columns, strict=True))
    sql = f"WITH w ({', '.join(names)}) AS ({query.sql}) SELECT w.* FROM w"
    return replace(query, sql=sql, columns=columns)


def united(query: Built, number: int) -> Built:
    """With itself, its columns turned by some places."""
    count = len(query.columns)
    turned = [query.columns[(at + number) % count] for at in range(count)]
    other = ", ".join(name for name, _ in turned)
    columns = tuple(
        (name, inputs | more)
        for (name, inputs), (_, more) in zip(query.columns, turned, strict=True)
    )
    sql = f"SELECT * FROM ({query.sql}) UNION ALL SELECT {other} FROM ({query.sql})"
    return replace(query, sql=sql, columns=columns)


def joined(query: Built, number: int) -> Built:
    name, inputs = query.columns[number % len(query.columns)]
    sql = f"SELECT l.* FROM ({query.sql}) l LEFT JOIN t r ON l.{name} = r.id"
    return replace(query, sql=sql, rows=query.rows | inputs | {"id"})


SHAPES = (filtered, added, dropped, named, renamed, united, joined)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(SHAPES), st.integers(0, 9)), max_size=6))
def test_the_lineage_is_that_of_the_pieces(steps: list[tuple[object, int]]) -> None:
    query = START
    for shape, number in steps:
        query = shape(query, number)  # type: ignore[operator]  # the shapes above
    found = lineage(query.sql)
    assert found.complete
    assert [
        (column.name, frozenset(item.column for item in column.inputs)) for column in found.columns
    ] == list(query.columns)
    assert {item.column for item in found.rows} == query.rows
    assert not any(column.unknown for column in found.columns)
