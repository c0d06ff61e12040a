"""SQL of Spark's dialect as Penstock takes it: names in double quotes, types of casts.

``"name"`` is a name in every text that Penstock takes, as in DuckDB and in the standard; Spark
reads it as a text unless its session is told otherwise. ``CAST(x AS VARCHAR)`` and
``x::TIMESTAMPTZ`` mean what the type means in CREATE TABLE; names that both have keep Spark's
meaning in expressions (``TIMESTAMP`` has a zone). The texts are rewritten once, where they come in,
so that no session's settings matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from penstock.errors import ColumnNotFound, PenstockError
from penstock.sql.checked_casts import checked

T = TypeVar("T")

# Comments, texts and names in backticks are passed over; r"\d" and X"1F" are literals of Spark's.
_QUOTED = re.compile(
    r"""--(?:\\\n|[^\n])*
    | /\*.*?\*/
    | (?<!\w)[rRxX](?:"[^"]*"|'[^']*')
    | '(?:[^'\\]|\\.|'')*'
    | `(?:[^`]|``)*`
    | "(?P<name>(?:[^"]|"")+)" """,
    re.VERBOSE | re.DOTALL,
)


_TOKEN = re.compile(
    r"""--(?:\\\n|[^\n])* | /\*.*?\*/ | (?<!\w)[rRxX](?:"[^"]*"|'[^']*') | '(?:[^'\\]|\\.|'')*'
    | `(?:[^`]|``)*` | "(?:[^"]|"")*" | (?P<word>\w+) | (?P<mark>::|[()])""",
    re.VERBOSE | re.DOTALL,
)
_TYPE = re.compile(
    r"""\s*(?P<type>DOUBLE\s+PRECISION|TIMESTAMP\s+WITH\s+TIME\s+ZONE
    |(?:VARCHAR|NVARCHAR|CHAR|BPCHAR|TEXT)\b(?!\s*\()|TIMESTAMPTZ|DATETIME|INT[248]|FLOAT[48]
    |BLOB|BYTEA)\b""",
    re.VERBOSE | re.IGNORECASE,
)
_SPARK = {
    **dict.fromkeys(("VARCHAR", "NVARCHAR", "CHAR", "BPCHAR", "TEXT"), "STRING"),
    **dict.fromkeys(("TIMESTAMPTZ", "TIMESTAMP WITH TIME ZONE"), "TIMESTAMP_LTZ"),
    **dict.fromkeys(("BLOB", "BYTEA"), "BINARY"),
    "DATETIME": "TIMESTAMP_NTZ", "DOUBLE PRECISION": "DOUBLE",
    "INT2": "SMALLINT", "INT4": "INT", "INT8": "BIGINT", "FLOAT4": "FLOAT", "FLOAT8": "DOUBLE",
}  # fmt: skip


def for_spark(text: str) -> str:
    """SQL of Spark's dialect as Penstock takes it, as Spark takes it: names and types of casts."""
    return cast_types(checked(backticked(text)))


def backticked(text: str) -> str:
    """``text`` for Spark, with names in double quotes in backticks.

    What follows a name stays where it was, unless there is a backtick in the name.
    """
    return _QUOTED.sub(_in_backticks, text)


def _in_backticks(match: re.Match[str]) -> str:
    written = match["name"]
    if written is None:
        return match[0]
    name = written.replace('""', '"').replace("`", "``")
    return f"`{name}`".ljust(len(match[0]))


def cast_types(text: str) -> str:
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


def if_text(value: T) -> T | str:
    """`for_spark` for SQL text; anything else, such as a Column, as it is."""
    return for_spark(value) if isinstance(value, str) else value


def texts_in(values: Mapping[str, object]) -> dict[str, object]:
    """`if_text` of each value."""
    return {name: if_text(value) for name, value in values.items()}


def names_in(text: str) -> frozenset[str]:
    """What stands in double quotes in ``text``."""
    found = (match["name"] for match in _QUOTED.finditer(text))
    return frozenset(name.replace('""', '"') for name in found if name is not None)


def hint(error: PenstockError, names: frozenset[str]) -> str | None:
    """What to write instead, if the error is that a name in double quotes is not a column."""
    missing = str(error.data.get("condition")).startswith("UNRESOLVED_COLUMN")
    if not missing and not isinstance(error, ColumnNotFound):
        return None
    said = error.message.split("cannot be resolved")[0]
    name = next(
        (name for name in sorted(names) if f"`{name}`" in said or f"'{name}'" in said), None
    )
    if name is None:
        return None
    text = name.replace("'", "''")
    return f"\"{name}\" is a name: write '{text}' for the text"


@contextmanager
def hinted(*texts: object) -> Iterator[None]:
    """Errors inside that a text was taken for a name say how a text is written."""
    try:
        yield
    except PenstockError as error:
        names = [names_in(text) for text in texts if isinstance(text, str) and '"' in text]
        error.hint = hint(error, frozenset().union(*names)) or error.hint
        raise
