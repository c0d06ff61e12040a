"""Hints about files: what they name to write is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.engine.inputs.file_reader import files
from penstock.errors import PenstockError

CSV, JSON = "read_csv", "read_json"
#: the call, the files' content, part of the hint, and the options that it leads to
CALLS: tuple[tuple[str, tuple[bytes, ...], dict[str, Any], str, dict[str, Any]], ...] = (
    (CSV, (b"a,b\n1,\x80\n",), {}, "encoding = 'windows-1252'", {"encoding": "windows-1252"}),
    (CSV, (b"a,b\n1,\xe9\n",), {}, "encoding = 'ISO-8859-1'", {"encoding": "ISO-8859-1"}),
    (CSV, ("a,b\n1,2\n".encode("utf-16"),), {}, "encoding = 'UTF-16'", {"encoding": "UTF-16"}),
    (CSV, (b"a,b;c\n1,2;3\n",), {}, "delim = ';'", {"delim": ";"}),
    (CSV, (b"a,b\n1,2\n", b"a,c\n1,2\n"), {}, "union_by_name = true", {"union_by_name": True}),
    (CSV, (b"a,b,c\n1,2\n3,4,5\n",), {}, "null_padding", {"null_padding": True}),
    (
        CSV,
        (b'a,b\n1,"x"y\n',),
        {"quote": '"', "delim": ","},
        "quote = ''",
        {"quote": "", "delim": ","},
    ),
    (
        CSV,
        (b"",),
        {},
        "columns = {'id': 'INTEGER', 'name': 'VARCHAR'}",
        {"columns": {"id": "INTEGER", "name": "VARCHAR"}},
    ),
    (CSV, (b"a\n1\n",), {"union_by_name": True, "header": False}, "header = false away", {}),
    (JSON, (b'{"a": 1}\n{"a": 2}\n',), {"format": "array"}, "leave out format = 'array'", {}),
    (CSV, (b"a\n[1]\n",), {"columns": {"a": "INT[]"}}, "as VARCHAR", {"columns": {"a": "VARCHAR"}}),
)


@pytest.mark.parametrize("call", CALLS)
def test_the_call_as_hinted_is_read(tmp_path: Path, call: tuple[Any, ...]) -> None:
    function, contents, options, hint, hinted = call
    paths = [f"{letter}.file" for letter in "ab"[: len(contents)]]
    for path, content in zip(paths, contents, strict=True):
        (tmp_path / path).write_bytes(content)
    with pytest.raises(PenstockError) as raised:
        files(function, paths, options, root=tmp_path, location=None)
    assert hint in (raised.value.hint or "")
    assert files(function, paths, hinted, root=tmp_path, location=None).paths is not None
