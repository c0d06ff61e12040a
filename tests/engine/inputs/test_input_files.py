"""What is seen in the user's own files: how they are written, and what is wrong with them."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from penstock.engine.inputs.file_reader import Files, files
from penstock.errors import ArgumentError, DataFileCorrupt, QueryFailed

CSV, JSON = "read_csv", "read_json"


def read(root: Path, function: str, content: dict[str, str | bytes], **options: Any) -> Files:
    for name, text in content.items():
        (root / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return files(function, list(content), options, root=root, location=None)


@pytest.mark.parametrize(
    ("text", "separator"),
    [
        ("a,b\n1,2\n", ","),
        ("a;b\n1;2\n", ";"),
        ("a;b\n1,5;2,5\n", ";"),
        ("a\tb\n1\t2\n", "\t"),
        ("a|b", "|"),
        ("a\n1\n", ","),
        ("a;b\n1\n", ","),
        ('a;b\n"x;y";2\n', ";"),
        ("\ufeffa;b\n\n1;2\n", ";"),
        ("#, x\na;b\n1;2\n", ","),
    ],
)
def test_the_separator_is_seen(tmp_path: Path, text: str, separator: str) -> None:
    assert read(tmp_path, CSV, {"a.csv": text}).options["sep"] == separator


def test_a_separator_that_is_said_holds(tmp_path: Path) -> None:
    assert read(tmp_path, CSV, {"a.csv": "a;b\n1;2\n"}, delim="|").options["sep"] == "|"
    assert read(tmp_path, CSV, {"a.csv": "a;b\n1;2\n"}, auto_detect=False).options["sep"] == ","


@pytest.mark.parametrize(
    ("text", "options", "separator"),
    [
        ("#, x\na;b\n1;2\n", {"comment": "#"}, ";"),
        ("a;b\n'x;y';2\n", {"quote": "'"}, ";"),
        ('a;b\n"x\\";y";2\n', {"escape": "\\"}, ";"),
        ('a;b\n";2\n', {"quote": ""}, ";"),
        ("a;b\n1;2\n", {"quote": "''"}, ","),
    ],
)
def test_the_other_options_hold(
    tmp_path: Path, text: str, options: dict[str, str], separator: str
) -> None:
    assert read(tmp_path, CSV, {"a.csv": text}, **options).options["sep"] == separator


def test_an_unknown_encoding_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"encoding is 'utf-7\.5', which is not an encoding"):
        read(tmp_path, CSV, {"a.csv": "a,b"}, encoding="utf-7.5")


def test_a_large_or_compressed_file_is_judged_by_its_beginning(tmp_path: Path) -> None:
    large = "a;b\n" + "1;2\n" * 100_000
    assert read(tmp_path, CSV, {"a.csv": large}).options["sep"] == ";"
    packed = gzip.compress(large.encode())
    assert read(tmp_path, CSV, {"a.csv.gz": packed}).options["sep"] == ";"


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ('[{"a": 1}]', "true"),
        (' \n[\n{"a": 1}\n]', "true"),
        ('{"a": 1}\n{"a": 2}\n', "false"),
        ('[{"a": 1}]\n[{"a": 2}]\n', "false"),  # of which a document would be the first
        ('{\n"a": 1\n}\n', "true"),  # one object over several lines
        ('{\n"a": 1\n}\n{\n"a": 2\n}\n', "false"),  # fails when it is read
    ],
)
def test_arrays_of_json_are_told_from_lines(tmp_path: Path, text: str, whole: str) -> None:
    assert read(tmp_path, JSON, {"a.json": text}).options["multiLine"] == whole


@pytest.mark.parametrize(
    ("function", "content", "options", "said"),
    [
        (CSV, {"a.csv": "a,b;c\n1,2;3\n"}, {}, r"a.csv: ',' and ';' could each .*\n.*delim = ';'"),
        (CSV, {"a.csv": "a,b\n", "b.csv": "a;b\n"}, {}, "b.csv: its separator is ';', and that of"),
        (CSV, {"a.csv": b"a,b\n1,\xe9t\xe9\n"}, {}, "a.csv, line 2: not UTF-8\n.*encoding = "),
        (CSV, {"a.csv": ""}, {}, "a.csv: the file is empty.*\n.*columns = "),
        (
            JSON,
            {"a.json": '{"a": 1}\n{"a": 2}'},
            {"format": "array"},
            "a.json: .* not an array",
        ),
        (JSON, {"a.json": "[]", "b.json": "{}"}, {}, "b.json: it has an object a line, and"),
        (JSON, {"a.json": '[{"a":1},\n{"a":]'}, {}, "a.json, line 2: not JSON: .* at column 6"),
        (JSON, {"a.json": '[\n{"a": 1}\n]\n[\n]'}, {}, "a.json, line 4: not JSON: Extra data"),
    ],
)
def test_files_that_would_be_misread_are_refused(
    tmp_path: Path, function: str, content: Any, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(QueryFailed) as caught:
        read(tmp_path, function, content, **options)
    assert caught.match(f"(?s){said}")


def test_what_is_said_of_a_file_needs_no_look_at_it(tmp_path: Path) -> None:
    latin = b"a,b\n1,\xe9t\xe9\n"
    assert read(tmp_path, CSV, {"a.csv": latin}, encoding="ISO-8859-1").options["sep"] == ","
    assert read(tmp_path, CSV, {"a.csv": ""}, columns={"a": "INTEGER"}).schema == "`a` INT"


def blamed(found: Files, cause: str, path: Path | None = None) -> str:
    reading = f"Encountered error while reading file file://{path}. " if path else ""
    condition = "FAILED_READ_FILE.NO_HINT" if path else "MALFORMED_RECORD_IN_PARSING"
    error = found.blamed(QueryFailed(reading + cause, data={"condition": condition}))
    assert error is not None
    return error.message


@pytest.mark.parametrize(
    ("function", "text", "cause", "said"),
    [
        (CSV, "a,b\n1,x\n2\n", "", "line 3: the row has 1 of 2 columns"),
        (CSV, 'a,b\n"1\n",x\n2,y,z\n', "", "line 4: the row has 3 of 2 columns"),
        (CSV, "a,b\ntwo,x\n", 'For input string: "two"', "line 2: 'two' is not of its column's"),
        (JSON, '{"a":1}\n{"a":\n', "", "line 2: not JSON: Expecting value at column 6"),
        ("read_parquet", "PAR1 and no end", "", ": the Parquet file is cut short"),
        ("read_parquet", "", "", ": this is not a Parquet file"),
    ],
)
def test_a_bad_file_is_named_with_its_line(
    tmp_path: Path, function: str, text: str, cause: str, said: str
) -> None:
    files = read(tmp_path, function, {"bad.x": text})
    assert said in blamed(files, cause, tmp_path / "bad.x")
    assert blamed(files, cause, tmp_path / "bad.x").startswith("bad.x")
    assert said in blamed(files, cause)  # where Spark does not say which file it is


def test_errors_of_other_files_are_not_these(tmp_path: Path) -> None:
    files = read(tmp_path, CSV, {"a.csv": "a\n1\n"})
    other = QueryFailed("reading file file:///lake/x.parquet. Gone", data={})
    corrupt = DataFileCorrupt("bad", data={"path": "/lake/x.parquet"})
    assert [files.blamed(error) for error in (other, corrupt, QueryFailed("no"))] == [None] * 3
