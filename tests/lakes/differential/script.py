"""Scripts: statements of DuckDB, with directives in comments at the head.

    -- catalogs: sqlite, postgres, duckdb     where it runs; all three unless it says
    -- writers: 1.5.5, 1.4.4                  which DuckDB writes; 1.5.5 unless it says
    -- inline: 0                              DATA_INLINING_ROW_LIMIT; DuckDB's own unless it says
    -- attach: ENCRYPTED false                more options of the ATTACH
    -- errors: allowed                        statements may fail (and then do nothing)
    -- xfail: reason                          known not to work yet

The lake is attached as ``lk`` and in use. ``{dir}`` is a folder for files of the script's own.
A comment ``-- check`` between statements compares everything there; that happens anyway before each
statement that removes history, and at the end. A comment ``-- query: SELECT ...`` there is asked of
both, as the lake is at the end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

CATALOGS = ("sqlite", "postgres", "duckdb")
WRITERS = ("1.5.5", "1.4.4")

_DIRECTIVE = re.compile(r"^--\s*(catalogs|writers?|inline|attach|errors|xfail):\s*(.*?)\s*$", re.M)
_PART = re.compile(
    r"""(?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*"|\$\$.*?\$\$)|(?P<comment>--[^\n]*|/\*.*?\*/)"""
    r"|(?P<end>;)",
    re.S,
)
_MARK = re.compile(r"--\s*(?:(check)\s*$|query:\s*(.*?)\s*$)")
# What takes history away, or puts rows elsewhere.
_DESTROYS = re.compile(
    r"merge_adjacent|rewrite_data|flush_inlined|expire_snap|cleanup_old|delete_orphan|"
    r"\bcheckpoint\b",
    re.I,
)
_OPENS = re.compile(r"\s*(begin|start\s+transaction)\b", re.I)
_CLOSES = re.compile(r"\s*(commit|end|rollback|abort)\b", re.I)
_OWN_ATTACH = re.compile(
    r"""(?is)\s*ATTACH\s+(?:IF\s+NOT\s+EXISTS\s+)?'ducklake:[^']*'\s*(?:AS\s+"?(\w+)"?)?\s*(?:\((.*)\))?\s*"""
)


@dataclass(frozen=True)
class Statement:
    """``kind`` is "sql", "check" or "query"."""

    text: str
    kind: str = "sql"

    @property
    def destroys(self) -> bool:
        return self.kind == "sql" and _DESTROYS.search(self.text) is not None

    @property
    def opens(self) -> bool:
        return _OPENS.match(self.text) is not None

    @property
    def closes(self) -> bool:
        return _CLOSES.match(self.text) is not None

    @property
    def own_attach(self) -> re.Match[str] | None:
        """Alias and options of an ATTACH of a lake, in scripts that are not of this repository."""
        return _OWN_ATTACH.fullmatch(self.text)


@dataclass(frozen=True)
class Script:
    name: str
    text: str
    catalogs: tuple[str, ...] = CATALOGS
    writers: tuple[str, ...] = WRITERS[:1]
    inline: int | None = None
    attach: str = ""
    errors_allowed: bool = False
    xfail: str | None = None
    statements: tuple[Statement, ...] = field(default=(), repr=False)


def load(path: Path) -> Script:
    return parse(path.read_text(), path.stem)


def parse(text: str, name: str) -> Script:
    """Raises ValueError for a directive that says nothing."""
    said = {key.rstrip("s"): value for key, value in _DIRECTIVE.findall(text)}
    return Script(
        name,
        text,
        catalogs=_listed(said.get("catalog"), CATALOGS, CATALOGS),
        writers=_listed(said.get("writer"), WRITERS, WRITERS[:1]),
        inline=int(said["inline"]) if "inline" in said else None,
        attach=said.get("attach", ""),
        errors_allowed=said.get("error") == "allowed",
        xfail=said.get("xfail"),
        statements=tuple(split(text)),
    )


def _listed(text: str | None, known: tuple[str, ...], default: tuple[str, ...]) -> tuple[str, ...]:
    if text is None:
        return default
    named = tuple(part for part in re.split(r"[,|\s]+", text) if part)
    if not named or not set(named) <= set(known):
        raise ValueError(f"{text!r} is not of {', '.join(known)}")
    return named


def split(text: str) -> Iterator[Statement]:
    """The statements, without comments; marks in comments as statements of their own."""
    parts: list[str] = []
    at = 0

    def rest() -> Iterator[Statement]:
        statement = "".join(parts).strip()
        parts.clear()
        if statement:
            yield Statement(statement)

    for match in _PART.finditer(text):
        parts.append(text[at : match.start()])
        at = match.end()
        if match["text"]:
            parts.append(match["text"])
        elif match["end"]:
            yield from rest()
        elif (mark := _MARK.fullmatch(match["comment"])) is not None:
            if mark[1]:
                yield Statement("", "check")
            else:
                yield Statement(mark[2], "query")
        else:
            parts.append(" ")
    parts.append(text[at:])
    yield from rest()
