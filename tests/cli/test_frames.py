"""Rows as a table, CSV, JSON and Markdown, whatever characters they hold."""

from __future__ import annotations

import csv
import json
from datetime import date
from decimal import Decimal

import pytest

from penstock.cli.frames import FORMATS, print_result
from penstock.engine.results import QueryResult

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
    found = QueryResult((("a", "string"), ("b", "string")), (("", None),))
    assert printed(found, "csv", capsys) == 'a,b\n"",\n'


def test_markdown(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(PLAIN, "markdown", capsys).splitlines() == [
        "| id | a\\|b | day | sum |",
        "| --- | --- | --- | --- |",
        '| 1 | said "x", left | 2013-01-02 | 1.50 |',
        "| 2 |  |  |  |",
    ]


def test_json_has_types_and_says_whether_there_is_more(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(printed(QueryResult((("k", "int"),), ((1,),), more=True), "json", capsys))
    assert found == {"columns": [{"name": "k", "type": "int"}], "rows": [[1]], "more": True}


@pytest.mark.parametrize("form", FORMATS)
def test_no_format_lets_control_characters_out(
    form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    nasty = "a\x1b[31mb\x07\x9b2Jc\u202ed\re"
    found = printed(QueryResult(((nasty, "string"),), ((nasty,),)), form, capsys)
    assert not set(found) & set("\x1b\x07\x9b\u202e\r")
    assert "u001b" in found
    if form == "json":
        assert json.loads(found)["rows"] == [[nasty]]
