"""What is seen in the user's own files: how they are written, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.engine.inputs.file_reader import files
from penstock.errors import DataFileCorrupt, QueryFailed

JSON = "read_json"


def read(root: Path, function: str, content: dict[str, str | bytes], **options: Any) -> Any:
    for name, text in content.items():
        (root / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return files(function, list(content), options, root=root, location=None)


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


def blamed(found: Any, cause: str, path: Path | None = None) -> str:
    reading = f"Encountered error while reading file file://{path}. " if path else ""
    condition = "FAILED_READ_FILE.NO_HINT" if path else "MALFORMED_RECORD_IN_PARSING"
    error = found.blamed(QueryFailed(reading + cause, data={"condition": condition}))
    assert error is not None
    return str(error.message)


@pytest.mark.parametrize(
    ("function", "text", "cause", "said"),
    [
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
    files = read(tmp_path, JSON, {"a.json": '{"a": 1}'})
    other = QueryFailed("reading file file:///lake/x.parquet. Gone", data={})
    corrupt = DataFileCorrupt("bad", data={"path": "/lake/x.parquet"})
    assert [files.blamed(error) for error in (other, corrupt, QueryFailed("no"))] == [None] * 3
