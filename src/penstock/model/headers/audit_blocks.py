"""``AUDIT (...)`` blocks: audits that a project writes itself, in ``audits/`` or behind a model.

A block has properties and a query of the rows that fail, over ``@this_model``. What an ``audits``
property gives, or ``defaults``, is a macro variable of the query, ``@name``: a column, a value or a
list of these (SQLMesh's audits; kinds.md, MODEL properties). All macros can stand in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from penstock.errors import Diagnostic, Location
from penstock.model.files.source_map import Source
from penstock.model.headers import values
from penstock.model.headers.audit_tests import AUDITS
from penstock.model.headers.syntax import NamedValue, Value, Wrong, properties, suggestion
from penstock.model.script.at_text import mentioned
from penstock.sql.dialect import SPARK
from penstock.sql.text import blank
from penstock.sql.tokens import Unclosed, closing, words

AUDIT = "AUDIT"
DIRECTORY = "audits"
_READERS: Mapping[str, Callable[[Value], Any]] = {
    "name": values.text,
    "dialect": values.dialect,
    "skip": values.boolean,
    "blocking": values.boolean,
    "standalone": values.boolean,
    "defaults": values.pairs,
}


@dataclass(frozen=True, slots=True)
class AuditBlock:
    """``query`` is the file's text with nothing but the block's query at its place."""

    name: str
    location: Location
    query: str = field(repr=False)
    dialect: str = SPARK
    skip: bool = False
    blocking: bool = True
    defaults: Mapping[str, str] = field(default_factory=dict)

    @property
    def options(self) -> tuple[str, ...]:
        """Return what an audits property may give: the variables of its query
        that no macro makes.
        """
        return tuple(dict.fromkeys((*mentioned(self.query, self.dialect), *self.defaults)))

    def given(self, options: Mapping[str, str]) -> dict[str, str]:
        """The values of its options, as written."""
        return {**self.defaults, **options}


def split_audits(text: str, dialect: str) -> tuple[int, tuple[int, ...]]:
    """Return where the text before the blocks ends, and where each begins."""
    try:
        tokens = words(text, dialect)
    except Unclosed:
        return len(text), ()
    starts = tuple(
        token.start
        for number, (token, after) in enumerate(pairwise(tokens))
        if token.upper == AUDIT
        and after.text == "("
        and (number == 0 or tokens[number - 1].text == ";")
    )
    return (starts[0] if starts else len(text)), starts


def read_audit_blocks(
    text: str, path: Path, starts: Sequence[int], dialect: str
) -> tuple[dict[str, AuditBlock], tuple[Diagnostic, ...]]:
    """The blocks of a file by name, and what is wrong with the others."""
    source = Source(path, text)
    found: dict[str, AuditBlock] = {}
    findings: list[Diagnostic] = []
    for start, end in pairwise((*starts, len(text))):
        try:
            block = _block(source, start, end, dialect)
            if block.name in found:
                message = f"there are two audits {block.name}"
                raise Wrong(start, message, "give one another name", "audit")
            found[block.name] = block
        except Wrong as error:
            findings.append(error.diagnostic(source))
    return found, tuple(findings)


def _block(source: Source, start: int, end: int, dialect: str) -> AuditBlock:
    tokens = words(source.text, SPARK, start, end)
    close = closing(tokens, 1)
    if close is None:
        raise Wrong(start, "the bracket of AUDIT ( is never closed", "write );", "audit")
    after = tokens[close + 1] if close + 1 < len(tokens) else None
    if after is None or after.text != ";" or close + 2 >= len(tokens):
        at = tokens[close].end if after is None else after.start
        raise Wrong(at, "AUDIT (...) has no query", "write AUDIT (...); SELECT ...;", "audit")
    given = _given(properties(source, tokens[2:close], tokens[close].start))
    if "name" not in given:
        raise Wrong(start, "the audit has no name", "write name x", "audit")
    if "standalone" in given and values.boolean(given["standalone"].value):
        hint = "give it to a model: audits (x), or write a script in tests/"
        raise Wrong(given["standalone"].start, "an audit is one of a model", hint, "audit")
    read = {key: reader(given[key].value) for key, reader in _READERS.items() if key in given}
    name = str(read["name"]).lower()
    if name in AUDITS:
        message = f"{name} is the name of a built-in audit"
        raise Wrong(given["name"].start, message, "give the audit another name", "audit")
    text = source.text
    return AuditBlock(
        name,
        source.location(start),
        blank(text[: after.end]) + text[after.end : end],
        str(read.get("dialect", dialect)),
        bool(read.get("skip")),
        bool(read.get("blocking", True)),
        {key: default.text for key, default in read.get("defaults", ())},
    )


def _given(found: Sequence[NamedValue]) -> dict[str, NamedValue]:
    by_name: dict[str, NamedValue] = {}
    for prop in found:
        if prop.name not in _READERS:
            hint = suggestion(prop.name, _READERS, f"there are {', '.join(_READERS)}")
            raise Wrong(prop.start, f"`{prop.name}` is not a property of AUDIT", hint, "audit")
        if prop.name in by_name:
            raise Wrong(prop.start, f"`{prop.name}` is given twice", "keep one", "audit")
        by_name[prop.name] = prop
    return by_name
