"""The format's names of types in casts, as Spark's where Spark has none of that name.

``CAST(x AS VARCHAR)`` and ``x::TIMESTAMPTZ`` mean what the type means in CREATE TABLE. Names that
both have keep Spark's meaning in expressions (``TIMESTAMP`` has a zone).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOKEN = re.compile(
    r"""--(?:\\\n|[^\n])* | /\*.*?\*/ | (?<!\w)[rRxX](?:"[^"]*"|'[^']*') | '(?:[^'\\]|\\.|'')*'
    | `(?:[^`]|``)*` | "(?:[^"]|"")*" | (?P<word>\w+) | (?P<mark>::|[()])""",
    re.VERBOSE | re.DOTALL,
)
_TYPE = re.compile(
    r"""\s*(?P<type>DOUBLE\s+PRECISION|TIMESTAMP\s+WITH\s+TIME\s+ZONE
    |(?:VARCHAR|NVARCHAR|CHAR|BPCHAR|TEXT)\b(?!\s*\()|TIMESTAMPTZ|DATETIME|HUGEINT|INT[248]|FLOAT[48]
    |BLOB|BYTEA)\b""",
    re.VERBOSE | re.IGNORECASE,
)
_SPARK = {
    **dict.fromkeys(("VARCHAR", "NVARCHAR", "CHAR", "BPCHAR", "TEXT"), "STRING"),
    **dict.fromkeys(("TIMESTAMPTZ", "TIMESTAMP WITH TIME ZONE"), "TIMESTAMP_LTZ"),
    **dict.fromkeys(("BLOB", "BYTEA"), "BINARY"),
    "DATETIME": "TIMESTAMP_NTZ", "DOUBLE PRECISION": "DOUBLE", "HUGEINT": "DECIMAL(38, 0)",
    "INT2": "SMALLINT", "INT4": "INT", "INT8": "BIGINT", "FLOAT4": "FLOAT", "FLOAT8": "DOUBLE",
}  # fmt: skip


def in_spark(text: str) -> str:
    """``text`` with those in Spark's words; what follows on the line may move by some columns."""
    parts: list[str] = []
    position = 0
    for at in _places(text):
        match = _TYPE.match(text, at)
        if match is None:
            continue
        written = " ".join(match["type"].upper().split())
        breaks = "\n" * match["type"].count("\n")
        parts += [text[position : match.start("type")], _SPARK[written].ljust(len(written)), breaks]
        position = match.end("type")
    return "".join([*parts, text[position:]])


def _places(text: str) -> Iterator[int]:
    """Where the type of a cast is named: after ``::``, and after the AS of a CAST."""
    casts: list[bool] = []  # for each bracket that is open, whether it is that of a CAST
    before = ""
    for match in _TOKEN.finditer(text):
        word, mark = (match["word"] or "").upper(), match["mark"]
        if mark == "(":
            casts.append(before in {"CAST", "TRY_CAST"})
        elif mark == ")" and casts:
            casts.pop()
        elif mark == "::" or (word == "AS" and casts and casts[-1]):
            yield match.end()
        before = word
