"""Nested values as DuckDB writes them: what it casts to text is read back to the same values."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.lakes.format.schema import Column
from penstock.lakes.format.values.duck_text import CAST, SQL_LISTS, SQL_STRUCTS, Form, parse

_ODD = st.text(alphabet="ab'\"\\,:;=()[]{} \n\tNUL|ü🦆-", max_size=8)
_TEXT = st.one_of(_ODD, st.sampled_from(["NULL", "null", "", "true", "1", "CAST('a' AS DATE)"]))
_NAMES = st.text(alphabet="ab'\\ :,{}=é", min_size=1, max_size=4)


@st.composite
def columns(draw: st.DrawFn, depth: int = 3) -> Column:
    kinds = ["varchar", "int32"] + (["list", "struct", "map"] if depth else [])
    kind = draw(st.sampled_from(kinds))
    if kind == "struct":
        names = draw(st.lists(_NAMES, min_size=1, max_size=3, unique_by=str.lower))
        fields = [draw(columns(depth - 1)) for _ in names]
        named = zip(fields, names, strict=True)
        return Column(
            "c", kind, children=tuple(Column(n, f.type, children=f.children) for f, n in named)
        )
    counts = {"list": 1, "map": 2}
    children = tuple(draw(columns(depth - 1)) for _ in range(counts.get(kind, 0)))
    if kind == "map":  # keys are texts only; equal keys are tested elsewhere
        children = (Column("key", "varchar"), children[1])
    return Column("c", kind, children=children)


def _sql(column: Column) -> str:
    parts = [_sql(child) for child in column.children]
    if column.type == "struct":
        names = ['"' + child.name.replace('"', '""') + '"' for child in column.children]
        return f"STRUCT({', '.join(f'{n} {p}' for n, p in zip(names, parts, strict=True))})"
    forms = {"list": "{0}[]", "map": "MAP({0}, {1})", "int32": "INTEGER", "varchar": "VARCHAR"}
    return forms[column.type].format(*parts)


def values(column: Column) -> st.SearchStrategy[Any]:
    """The parts of a value: leaves as text, structs as lists, maps as pairs."""
    parts = [values(child) for child in column.children]
    made: dict[str, st.SearchStrategy[Any]] = {
        "varchar": _TEXT,
        "int32": st.integers(-(2**31), 2**31 - 1).map(str),
    }
    if column.type == "struct":
        made["struct"] = st.tuples(*parts).map(list)
    if column.type == "list":
        made["list"] = st.lists(parts[0], max_size=3)
    if column.type == "map":
        pairs = st.tuples(_TEXT, parts[1])
        made["map"] = st.lists(pairs, max_size=3, unique_by=lambda pair: pair[0])
    return st.one_of(st.none(), made[column.type])


def _literal(column: Column, value: Any) -> str:
    """The value in DuckDB's SQL."""
    if value is None:
        return f"NULL::{_sql(column)}"
    if column.type == "varchar":
        return "'" + str(value).replace("'", "''") + "'"
    if column.type == "int32":
        return f"({value})"
    if column.type == "list":
        items = ", ".join(_literal(column.children[0], item) for item in value)
        return f"[{items}]::{_sql(column)}"
    if column.type == "map":
        key, item = column.children
        keys = ", ".join(_literal(key, k) for k, _ in value)
        items = ", ".join(_literal(item, v) for _, v in value)
        return f"MAP([{keys}]::VARCHAR[], [{items}]::{_sql(item)}[])"
    pairs = zip(column.children, value, strict=True)
    fields = ", ".join(f"{_key(c.name)}: {_literal(c, v)}" for c, v in pairs)
    return f"{{{fields}}}"


def _key(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"


_CONNECTION: list[duckdb.DuckDBPyConnection] = []


@pytest.fixture(scope="module", autouse=True)
def _duckdb() -> Any:
    with duckdb.connect() as connection:
        _CONNECTION.append(connection)
        yield
    _CONNECTION.clear()


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_what_duckdb_casts_to_text_is_read_as_what_it_was(data: st.DataObject) -> None:
    column = data.draw(columns().filter(lambda c: c.type in {"list", "struct", "map"}))
    value = data.draw(values(column).filter(lambda v: v is not None))
    query = f"SELECT CAST({_literal(column, value)} AS VARCHAR)"
    ((text,),) = _CONNECTION[0].execute(query).fetchall()
    assert parse(text, column, [CAST]) == value


def _struct(**fields: str) -> Column:
    return Column("s", "struct", children=tuple(Column(n, k) for n, k in fields.items()))


def _list(element: Column) -> Column:
    return Column("l", "list", children=(element,))


TEXT = Column("element", "varchar")


@pytest.mark.parametrize(
    ("text", "column", "expected"),
    [
        ("{'a': 'it''s', 'b': NULL}", _struct(a="varchar", b="int32"), ["it's", None]),
        ("{'a': 'a\\''b', 'b': 1}", _struct(a="varchar", b="int32"), ["a\\'b", "1"]),
        ("{'a': CAST('2024-02-03' AS DATE)}", _struct(a="date"), ["2024-02-03"]),
        ("{'a': CAST('nan' AS VARCHAR)}", _struct(a="float64"), ["nan"]),
        ("{'a': CONCAT('x''y', chr(0), 'z')}", _struct(a="varchar"), ["x'y\0z"]),
        ("{'a''b': 1}", _struct(**{"a'b": "int32"}), ["1"]),
        ("{'a': it}", _struct(a="varchar"), ["it"]),
        ("{'a': 'it\\'s'}", _struct(a="varchar"), ["it's"]),
        ("{'a': 2024-02-03}", _struct(a="date"), ["2024-02-03"]),
    ],
)
def test_structs_are_read_in_each_form(text: str, column: Column, expected: list[Any]) -> None:
    """The texts are what DuckDB 1.4.4 and 1.5.5 left in SQLite."""
    assert parse(text, column, [SQL_STRUCTS, SQL_LISTS, CAST]) == expected


@pytest.mark.parametrize(
    ("text", "element", "expected"),
    [
        ("['b''c', '\\', 'x']", TEXT, ["b'c", "\\", "x"]),
        ("['b\\'c', \\, x]", TEXT, ["b'c", "\\", "x"]),
        ("['2024-02-03'::DATE, NULL]", Column("element", "date"), ["2024-02-03", None]),
        ("['nan'::DOUBLE, 1e1000]", Column("element", "float64"), ["nan", "1e1000"]),
    ],
)
def test_lists_are_read_in_each_form(text: str, element: Column, expected: list[Any]) -> None:
    assert parse(text, _list(element), [CAST, SQL_LISTS]) == expected


@pytest.mark.parametrize("text", ["[1, 2", "1, 2]", "[1,2]", "['a'b']", "", "[NULL]x"])
@pytest.mark.parametrize("form", [CAST, SQL_STRUCTS, SQL_LISTS])
def test_other_text_is_refused(text: str, form: Form) -> None:
    with pytest.raises(ValueError, match="as DuckDB writes it"):
        parse(text, _list(TEXT), [form])
