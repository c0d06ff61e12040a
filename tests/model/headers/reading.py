"""MODEL (...) read without a project."""

from __future__ import annotations

from pathlib import Path

from penstock.errors import Diagnostic
from penstock.model.files.header_lines import read_header
from penstock.model.headers.annotation import parse
from penstock.model.headers.read import Script, declare
from penstock.model.script.declaration import Declaration
from penstock.model.values.asset import Names

NAMES = Names(("main", "other"))
PATH = Path("m.sql")


def read(
    text: str, *, parts: tuple[str, ...] = (), dialect: str = "spark"
) -> tuple[Declaration | None, tuple[Diagnostic, ...]]:
    annotations, _ = parse(text, PATH)
    start = read_header(text, PATH).end
    return declare(Script(text, PATH, start, annotations, dialect, parts), NAMES)


def declared(properties: str, kind: str = "FULL") -> Declaration:
    """The declaration of a model with these properties; it has no finding."""
    declaration, findings = read(f"MODEL (name db.t, kind {kind}, {properties});\nSELECT 1 AS a")
    assert declaration is not None, findings
    assert findings == ()
    return declaration


def found(properties: str, kind: str = "FULL") -> list[str]:
    """What is wrong with them, as a user sees it."""
    _, findings = read(f"MODEL (\n  name db.t,\n  kind {kind},\n  {properties}\n);\nSELECT 1 AS a")
    return [str(finding) for finding in findings]
