"""Encodings and formats of ``read_csv``."""

from __future__ import annotations

import pytest

from penstock.engine.inputs.csv_options import Encoding, encoding_of, java_pattern


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
