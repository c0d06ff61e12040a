"""DuckDB's dialect, and the way back from Spark's places to the user's file."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.query.query import ScriptKind, read_query
from penstock.model.query.render import RenderedQuery
from penstock.model.time.partition import PartitionSpec
from penstock.model.values.asset import Names
from penstock.sql.query.edits import Edit, edited

DAILY = PartitionSpec("daily")

NAMES = Names(("main",), aliases={"dl": "main"})


def render(text: str, dialect: str = "spark") -> RenderedQuery:
    query, findings = read_query(
        text, Path("m.sql"), names=NAMES, dialect=dialect, kind=ScriptKind(partition=DAILY)
    )
    assert query is not None, findings
    return query.render(dict.fromkeys(query.sources, "`a_rather_long_view_name`"))


def place_of(word: str, rendered: RenderedQuery) -> tuple[int | None, int | None]:
    """Where the first ``word`` of the rendered text stands in the file."""
    before = rendered.sql[: rendered.sql.index(word)]
    where = rendered.locate(before.count("\n") + 1, len(before) - (before.rfind("\n") + 1))
    return where.line, where.column


def expected_place(word: str, text: str) -> tuple[int, int]:
    before = text[: text.index(word)]
    return before.count("\n") + 1, len(before) - before.rfind("\n")


TEXTS = [
    "SELECT wrong FROM dl.t",
    "-- head\n\nSELECT a,\n  b FROM dl.t\nWHERE wrong = 1",
    "SELECT a FROM dl.t WHERE d = '{partition}' AND wrong = 1",
    "SELECT a FROM dl.t AT (VERSION =>\n 3)\nJOIN dl.u ON wrong",
    "SELECT * FROM read_csv('a' ||\n '{partition}',\n header = true) WHERE wrong",
    "CREATE TEMP VIEW x AS SELECT * FROM dl.t;\nCREATE TEMP VIEW y AS\n SELECT wrong;\nFROM y",
    "CREATE TEMP VIEW x AS SELECT 1;\n\n\nSELECT 1,\n wrong FROM x",
    "SELECT * FROM dl.a ASOF JOIN dl.b ON a.t >= b.t AND a.k = b.k\nWHERE wrong",
    "FROM dl.t\nWHERE wrong",
    "SELECT 'é😀' AS x, wrong FROM dl.t",
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_place_leads_back(text: str) -> None:
    assert place_of("wrong", render(text)) == expected_place("wrong", text)


@pytest.mark.parametrize("text", TEXTS)
def test_a_place_leads_back_from_another_dialect(text: str) -> None:
    assert place_of("wrong", render(text, "duckdb")) == expected_place("wrong", text)


def test_a_replaced_name_leads_to_the_table() -> None:
    text = "SELECT *\nFROM   dl.t\nWHERE a"
    assert place_of("a_rather", render(text)) == (2, 8)
    assert place_of("a_rather", render(text, "duckdb")) == (2, 8)


@pytest.mark.parametrize(("line", "position"), [(1, 0), (1, 9999), (99, 0), (99, 99)])
def test_any_place_leads_into_the_file(line: int, position: int) -> None:
    where = render("SELECT 1\nFROM dl.t").locate(line, position)
    assert where.line in {1, 2}


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("SELECT log(x) AS y FROM dl.t", "LOG(10, x)) AS y"),
        ("SELECT * EXCLUDE (a) FROM dl.t", "EXCEPT (a)"),
        ("SELECT [1, 2] AS l", "ARRAY(1, 2) AS l"),
        ('SELECT "weird col" FROM dl.t', "`weird col`"),
        ("SELECT '{partition}'::date AS d", "CAST(:penstock_partition AS DATE) AS d"),
        ("SELECT $partition AS p", ":penstock_arg_partition AS p"),
        ("FROM dl.t", "FROM `a_rather_long_view_name` AS t"),
        ('SELECT * FROM dl."T x"', "FROM `a_rather_long_view_name` AS `T x`"),
        (
            "FROM dl.a ASOF JOIN dl.b ON a.t >= b.t AND a.k = b.k",
            "MATCH_CONDITION (a.t >= b.t) ON a.k = b.k",
        ),
    ],
)
def test_duckdb_is_turned_into_spark(text: str, rendered: str) -> None:
    assert rendered in render(text, "duckdb").sql


@pytest.mark.parametrize(
    ("declared", "rendered"),
    [
        ("int", "SELECT :penstock_arg_x"),
        ("timestamp", "CAST(:penstock_arg_x AS TIMESTAMP_NTZ)"),
        ("timestamptz", "CAST(:penstock_arg_x AS TIMESTAMP)"),
        ("decimal(9,2)", "CAST(:penstock_arg_x AS DECIMAL(9, 2))"),
    ],
)
def test_arguments_in_duckdb(declared: str, rendered: str) -> None:
    assert rendered in render(f"-- $x ({declared})\nSELECT $x", "duckdb").sql


@given(
    st.text(alphabet="ab\n", min_size=1, max_size=30),
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 5), st.text(alphabet="XY", max_size=4))),
)
def test_edits_keep_every_kept_letter(text: str, wanted: list[tuple[int, int, str]]) -> None:
    edits: list[Edit] = []
    position = 0
    for start, length, replacement in sorted(wanted):
        if position <= start <= len(text):
            edits.append(Edit(start, min(start + length, len(text)), replacement))
            position = edits[-1].end + 1
    mapped = edited(text, edits)
    for offset, letter in enumerate(mapped.text):
        if letter not in "XY":
            assert text[mapped.back(offset)] == letter


def test_edits_must_not_overlap() -> None:
    with pytest.raises(ValueError, match="overlap"):
        edited("abcdef", [Edit(0, 3, "x"), Edit(2, 4, "y")])
