"""What a statement of dbt's is, found in its text before it is run: pure functions.

dbt puts a comment before each statement, and stages rows in temporary tables; here a temporary
relation is a DataFrame of the connection, so that nothing is written twice.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from penstock.lakes.statements.dispatch import first_word, is_statement

_COMMENTS = re.compile(r"(?:\s+|--[^\n]*(?:\n|\Z)|/\*.*?\*/)*", re.S)
_NAME = r'(?:"(?:[^"]|"")+"|`(?:[^`]|``)+`|\w+)'
_TEMPORARY = re.compile(
    rf"create\s+(?:or\s+replace\s+)?temp(?:orary)?\s+view\s+(?P<name>{_NAME})\s+as\s+(?P<query>.*)",
    re.I | re.S,
)
_BOUNDARY = re.compile(r"(?P<word>begin|commit|rollback)(?:\s+(?:transaction|work))?\s*;?\s*", re.I)
_WRITES = frozenset(
    {"ALTER", "COMMENT", "CREATE", "DELETE", "DROP", "INSERT", "MERGE", "TRUNCATE", "UPDATE"}
)


@dataclass(frozen=True, slots=True)
class TemporaryView:
    """``create temporary view NAME as QUERY``."""

    name: str
    query: str


def without_comments(text: str) -> str:
    """The text from its first word on, without blanks and a semicolon at its end."""
    start = _COMMENTS.match(text)
    return text[start.end() if start else 0 :].strip().removesuffix(";").rstrip()


def temporary_view(text: str) -> TemporaryView | None:
    """The temporary view that a statement makes, or None."""
    match = _TEMPORARY.fullmatch(text)
    return TemporaryView(unquoted(match["name"]), match["query"]) if match else None


def boundary(text: str) -> str | None:
    """``begin``, ``commit`` or ``rollback``, where the text is nothing else."""
    match = _BOUNDARY.fullmatch(text)
    return match["word"].lower() if match else None


def writes(text: str) -> bool:
    """Return whether a statement changes a lake, so that its snapshot is to say who made it."""
    word = first_word(text)
    return word in _WRITES or (word == "WITH" and is_statement(text))


def unquoted(name: str) -> str:
    """A name without its quotes."""
    if name[:1] in {'"', "`"}:
        return name[1:-1].replace(name[0] * 2, name[0])
    return name


_CHAINS = re.compile(
    rf"(?P<skipped>'(?:[^'\\]|\\.|'')*'|--[^\n]*|/\*.*?\*/)"
    rf"|(?P<chain>{_NAME}(?:\s*\.\s*{_NAME}){{1,2}})(?P<travel>\s+at\s*\(\s*\w+\s*=>[^()]*\))?",
    re.S | re.I,
)


@dataclass(frozen=True, slots=True)
class LakeName:
    """A name of two or three parts that begins with a lake's, and where it stands in the text.

    ``rest`` is the name without the lake's, with the ``AT (...)`` that follows it.
    """

    lake: str
    rest: str
    start: int
    end: int


def lake_names(text: str, lakes: Collection[str]) -> list[LakeName]:
    """The names in a text that begin with one of these lakes (in lower case), in order."""
    found = []
    for match in _CHAINS.finditer(text):
        if match["chain"] is None:
            continue
        first = re.match(_NAME, match["chain"])
        if first is None or (lake := unquoted(first[0]).lower()) not in lakes:
            continue
        rest = match["chain"][first.end() :].strip().removeprefix(".").strip()
        rest += match["travel"] or ""
        found.append(LakeName(lake, rest, match.start(), match.end()))
    return found


_INFORMATION = "information_schema"


def information_names(text: str) -> list[LakeName]:
    """Return the names of tables of an information schema, of any lake or of none, in order.

    ``lake`` is empty where the name has none; ``rest`` is the table.
    """
    names = []
    for match in _CHAINS.finditer(text):
        parts = [unquoted(part) for part in re.findall(_NAME, match["chain"] or "")]
        if len(parts) > 1 and parts[-2].lower() == _INFORMATION:
            lake = parts[0] if len(parts) > 2 else ""
            names.append(LakeName(lake, parts[-1].lower(), match.start(), match.end()))
    return names


_VIEW = re.compile(r"create\s+(?:or\s+replace\s+)?view\b", re.I)


def is_view(text: str) -> bool:
    """Return whether a statement creates a view of a lake."""
    return _VIEW.match(text) is not None


_FILE_READS = re.compile(
    r"(?P<skipped>'(?:[^'\\]|\\.|'')*'|--[^\n]*|/\*.*?\*/)"
    r"|\b(?P<reads>\w+\.`[^`]+`\s+with\s*\((?:[^()']|'(?:[^'\\]|\\.|'')*')*\))",
    re.S | re.I,
)


@dataclass(frozen=True, slots=True)
class FileRead:
    """``csv.`path` WITH (...)``, which Spark reads, and where it stands in the text."""

    rest: str
    start: int
    end: int


def file_reads(text: str) -> list[FileRead]:
    """What reads files with options, in order."""
    return [
        FileRead(match["reads"], match.start(), match.end())
        for match in _FILE_READS.finditer(text)
        if match["reads"]
    ]


def replaced(text: str, names: Iterable[tuple[LakeName | FileRead, str]]) -> str:
    """The text with other names in the place of these, which are in order."""
    parts, at = [], 0
    for name, other in names:
        parts += [text[at : name.start], other]
        at = name.end
    return "".join([*parts, text[at:]])
