"""Tables, CSV, JSON and Markdown, in a pipe, whatever characters they hold."""

from __future__ import annotations

import csv
import json
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from penstock.cli.output import (
    FORMATS,
    cell,
    print_result,
    print_table,
    wrapped,
)
from penstock.engine.results import QueryResult


def test_columns_line_up_and_numbers_stand_to_the_right(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_table(("name", "rows"), [("flights", 842), ("airlines", 16), ("none", None)])
    assert capsys.readouterr().out.splitlines() == [
        "name      rows",
        "flights    842",
        "airlines    16",
        "none",
    ]


def test_no_rows_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("a",), [], empty="Nothing yet.")
    assert capsys.readouterr().out == "Nothing yet.\n"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (True, "yes"),
        (1.5, "1.5"),
        (date(2013, 1, 2), "2013-01-02"),
        ("two\nlines", "two\\nlines"),
        ([1, "a"], '[1, "a"]'),
    ],
)
def test_cell_is_one_line(value: Any, text: str) -> None:
    assert cell(value) == text


COLUMNS = (("id", "int"), ("a|b", "string"), ("day", "date"), ("sum", "decimal(4,2)"))
PLAIN = QueryResult(
    COLUMNS, ((1, 'said "x", left', date(2013, 1, 2), Decimal("1.50")), (2,) + (None,) * 3)
)


def printed(result: QueryResult, form: str, capsys: pytest.CaptureFixture[str]) -> str:
    print_result(result, form)
    return capsys.readouterr().out


def test_csv_reads_back(capsys: pytest.CaptureFixture[str]) -> None:
    rows = list(csv.reader(printed(PLAIN, "csv", capsys).splitlines()))
    assert rows == [
        ["id", "a|b", "day", "sum"],
        ["1", 'said "x", left', "2013-01-02", "1.50"],
        ["2", "", "", ""],
    ]


def test_csv_tells_an_empty_text_from_null(capsys: pytest.CaptureFixture[str]) -> None:
    result = QueryResult((("a", "string"), ("b", "string")), (("", None),))
    assert printed(result, "csv", capsys) == 'a,b\n"",\n'


def test_markdown(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(PLAIN, "markdown", capsys).splitlines() == [
        "| id | a\\|b | day | sum |",
        "| --- | --- | --- | --- |",
        '| 1 | said "x", left | 2013-01-02 | 1.50 |',
        "| 2 |  |  |  |",
    ]


def test_json_has_types_and_says_whether_there_is_more(capsys: pytest.CaptureFixture[str]) -> None:
    result = json.loads(printed(QueryResult((("k", "int"),), ((1,),), more=True), "json", capsys))
    columns = [{"name": "k", "type": "int"}]
    assert result == {"schema_version": 1, "columns": columns, "rows": [[1]], "more": True}


@pytest.mark.parametrize("form", FORMATS)
def test_no_format_lets_control_characters_out(
    form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    nasty = "a\x1b[31mb\x07\x9b2Jc\u202ed\re"
    result = printed(QueryResult(((nasty, "string"),), ((nasty,),)), form, capsys)
    assert not set(result) & set("\x1b\x07\x9b\u202e\r")
    assert "u001b" in result
    if form == "json":
        assert json.loads(result)["rows"] == [[nasty]]


def test_a_terminal_breaks_lines_between_words() -> None:
    text = "a hint: " + "word " * 30 + "\n  → " + "another/long-path-that-stays-whole " * 3
    lines = wrapped(text, 60).split("\n")
    assert max(map(len, lines)) <= 60
    assert " ".join(text.split()) == " ".join(" ".join(lines).split())
    assert lines[-1].startswith("    another/long-path")
    assert wrapped("x" * 90 + "\nshort", 60) == "x" * 90 + "\nshort"
