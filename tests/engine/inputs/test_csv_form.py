"""Line ends, quotes and encodings of CSV files, as they are found before Spark reads them."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from penstock.engine.inputs.csv_form import (
    UTF8,
    Encoding,
    Quoting,
    TextForm,
    encoding_of,
    java_pattern,
    require_encoded,
    scan,
)
from penstock.engine.inputs.input_files import Unfit

QUOTING = Quoting(",", '"', '"')


def form(root: Path, text: str, quoting: Quoting = QUOTING, columns: int = 2) -> TextForm:
    path = root / "a.csv"
    path.write_bytes(text.encode())
    return scan(path, UTF8, quoting, columns=columns)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b\n1,2\n", TextForm()),
        ("a,b\r\n1,2\r\n", TextForm(returns=True)),
        ("a,b\r1,2\r", TextForm(feeds=False, returns=True)),
        ('a,b\n1,"x\ny"\n', TextForm(breaks=True)),
        ('a,b\n"1\n",""\n', TextForm(breaks=True)),
        ('a,b\r\n1,"x\r\ny"\r\n', TextForm(breaks=True, returns=True)),
        ('a,b\n1,"x ""y"" z"\n', TextForm()),
        ('a,b\n1,"x ""\n"" z"\n', TextForm(breaks=True)),
        ('a,b\n1,5" pipe\n2,x\n', TextForm()),
        ('a,b\n1,5" pipe\n2,"x\ny"\n', TextForm(breaks=True)),
        ('a,b\n1,"x" \n', TextForm()),
        ("a,b\n\n1,2\n", TextForm(blank=True)),
        ("a,b\n \t\n1,2\n", TextForm(spaces=True)),
        ("a,b\n\x0b\n1,2\n", TextForm(spaces=True)),
        ("a,b\n 1,2\n", TextForm()),
        ("a,b\r\n1,2\r\n\r\n", TextForm(returns=True, blank=True)),
        ("a,b\n1,2\n  ", TextForm(spaces=True)),
        ('"a","b"\n"1",","\n"",", "\n', TextForm()),
        ('"a","b"\r\n"",""\r\n"""",",\n"\r\n', TextForm(breaks=True, returns=True)),
    ],
)
def test_lines_and_quotes(tmp_path: Path, text: str, expected: TextForm) -> None:
    assert form(tmp_path, text) == expected


def test_another_escape(tmp_path: Path) -> None:
    backslash = Quoting(",", '"', "\\")
    assert form(tmp_path, 'a,b\n"x\\"y",2\n', backslash) == TextForm()
    assert form(tmp_path, 'a,b\n"x\\"\ny",2\n', backslash) == TextForm(breaks=True)


@pytest.mark.parametrize(
    ("text", "columns", "reason"),
    [
        ('a,b\n1, "x"\n', 2, "line 2: a quote stands beside other text"),
        ('a,b\n1,x\n2,"x"y\n', 2, "line 3: a quote stands beside other text"),
        ('a,b\n1,"x\n', 2, "line 2: a quote stands beside other text"),
        ("a,b\n1,x\ry\n", 2, "line 2: a carriage return stands inside the line"),
        ("a\n1\n\n2\n", 1, "line 3: the line is blank, and the file has one column"),
    ],
)
def test_what_readers_take_differently_is_refused(
    tmp_path: Path, text: str, columns: int, reason: str
) -> None:
    with pytest.raises(Unfit) as raised:
        form(tmp_path, text, columns=columns)
    assert raised.value.fault.text(tmp_path) == f"a.csv, {reason}"


@pytest.mark.parametrize(
    ("text", "columns", "reason"),
    [
        ('a,b\n1,"x\ry\n', 2, "line 2: a carriage return stands inside the line"),
        ("a\n1\n\n2\n", 1, "line 3: the line is blank, and the file has one column"),
    ],
)
def test_refused_where_quotes_are_text(
    tmp_path: Path, text: str, columns: int, reason: str
) -> None:
    with pytest.raises(Unfit) as raised:
        form(tmp_path, text, Quoting(",", "", ""), columns=columns)
    assert raised.value.fault.text(tmp_path) == f"a.csv, {reason}"


def test_large_files_are_scanned_in_blocks(tmp_path: Path) -> None:
    rows = 'x,"y ""z"""\n' * 200_000
    assert form(tmp_path, rows) == TextForm()
    assert form(tmp_path, rows + 'x,"\n"\n' + rows) == TextForm(breaks=True)
    with pytest.raises(Unfit) as raised:
        form(tmp_path, rows + 'x, "y"\n')
    assert raised.value.fault.line == 200_001


def test_wide_and_compressed_files(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes('a,b\n1,"x\ny"\n'.encode("utf-16"))
    assert scan(path, encoding_of("UTF-16"), QUOTING, columns=2) == TextForm(breaks=True)
    packed = tmp_path / "a.csv.gz"
    packed.write_bytes(gzip.compress(b'a,b\n1,5" x\n2,"y\n"\n'))
    assert scan(packed, UTF8, QUOTING, columns=2) == TextForm(breaks=True)


@pytest.mark.parametrize(
    ("content", "encoding", "line", "hint"),
    [
        (b"a,b\n1,\xe9t\xe9\n", "utf-8", 2, "ISO-8859-1"),
        (b"a,b\n1,x\n2,\x80 5\n", "utf-8", 3, "windows-1252"),
        ("a,b\n".encode("utf-16"), "utf-8", 1, "UTF-16"),
        (b"a,b\n1,\x81\n", "cp1252", 2, "give its own encoding"),
    ],
)
def test_bytes_of_another_encoding(
    tmp_path: Path, content: bytes, encoding: str, line: int, hint: str
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    with pytest.raises(Unfit) as raised:
        require_encoded(path, encoding_of(encoding))
    assert raised.value.fault.line == line
    assert hint in raised.value.hint


@pytest.mark.parametrize(
    ("names", "spark"),
    [
        (("utf-8", "UTF8", "utf_8_sig", "ascii"), "UTF-8"),
        (("latin1", "latin-1", "ISO-8859-1", "iso8859_1"), "ISO-8859-1"),
        (("cp1252", "windows-1252", "WINDOWS_1252", "ansi"), "ISO-8859-1"),
        (("utf-16", "UTF16"), "UTF-16"),
        (("utf-16le", "UTF-16-LE"), "UTF-16LE"),
    ],
)
def test_aliases(names: tuple[str, ...], spark: str) -> None:
    assert {encoding_of(name).spark for name in names} == {spark}
    assert len({encoding_of(name) for name in names}) == 1


def test_a_single_byte_has_the_character_of_its_table() -> None:
    table = encoding_of("cp1252").table or ""
    assert (table[0], table[0xE9 - 128]) == ("€", "é")
    assert encoding_of("latin1") == Encoding("iso8859-1", "ISO-8859-1")


@pytest.mark.parametrize("name", ["shift_jis", "gb18030", "big5", "iso2022_jp", "rot13", "zlib"])
def test_unsupported_encodings(name: str) -> None:
    with pytest.raises(ValueError, match="is not supported: convert the file"):
        encoding_of(name)


@pytest.mark.parametrize(
    ("strftime", "java"),
    [
        ("%d/%m/%Y", "d/M/yyyy"),
        ("%Y%m%d", "yyyyMMdd"),
        ("%Y-%m-%dT%H:%M:%S", "yyyy-M-d'T'H:m:s"),
        ("%d. %b %y", "d. MMM yy"),
        ("%I:%M %p", "h:m a"),
    ],
)
def test_patterns(strftime: str, java: str) -> None:
    assert java_pattern(strftime) == java
