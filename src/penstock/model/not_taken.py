"""Files below the models directory that make no model, and why: none is passed over in silence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from penstock.errors import Diagnostic, Location
from penstock.model.annotation import Annotations, parse
from penstock.model.header.lines import read_header
from penstock.model.mapping import Source
from penstock.model.nearest import nearest
from penstock.sql.tokens import NAME, STRING, Token, Unclosed, words

HEADER = "-- materialize ducklake://main/table"
FIRST_MODEL = (
    "a model is a .sql file below models/ whose header says `-- materialize ducklake://LAKE/TABLE`"
)
#: scripts in which other runners of annotated scripts have steps, and `.sql` in capitals
SCRIPT_SUFFIXES = (".py", ".ts", ".js", ".sh", ".go", ".sql")
#: findings of a header that matter although it declares no step: it may have been meant to
_MEANT = ("misspelt-keyword", "late-annotation", "block-comment", "dropped-materialize")
_DDL = "MODEL"


def report_script(
    text: str, path: Path, annotations: Annotations, findings: tuple[Diagnostic, ...]
) -> tuple[Diagnostic, ...]:
    """What to say of a ``.sql`` file whose header, with these ``findings``, declares no step."""
    meant = tuple(finding for finding in findings if finding.rule in _MEANT)
    if meant:
        return meant
    if annotations.macros:
        message = "macro libraries are not in this version: this one is not used"
        return (Diagnostic("warning", message, Location(path, 1, 1), None, "macros"),)
    source = Source(path, text)
    start = read_header(text, path).end
    try:
        tokens = words(text, start=start)
    except Unclosed as error:
        where = source.location(error.offset)
        return (_headerless(where),)
    return tuple(_of_code(tokens, source))


def _of_code(tokens: Sequence[Token], source: Source) -> Iterator[Diagnostic]:
    if not tokens:
        return
    where = source.location(tokens[0].start)
    if tokens[0].kind not in {NAME, STRING} and [token.text for token in tokens[1:2]] == ["("]:
        word = tokens[0].text
        if word.upper() == _DDL:
            message = f"`{word} (...)` is not in this version, so the file makes no model"
            yield Diagnostic("error", message, where, f"write `{HEADER}` above", "model-ddl")
            return
        if nearest(word, (_DDL,), cutoff=0.75):
            message = f"`{word} (...)` is not a known statement, so the file makes no model"
            hint = f"a model begins with `{HEADER}`; {_DDL} (...) is not in this version"
            yield Diagnostic("error", message, where, hint, "model-ddl")
            return
    yield _headerless(where)


def _headerless(where: Location) -> Diagnostic:
    message = "the file has no annotation that makes it a model, so nothing runs it"
    hint = f"begin it with `{HEADER}`, or move it out of the models directory"
    return Diagnostic("warning", message, where, hint, "no-header")


def report_other_languages(directory: Path) -> Iterator[Diagnostic]:
    """Scripts below ``directory`` that have a step's header in a file that is not ``.sql``."""
    for path in sorted(directory.rglob("*")):
        if path.suffix.lower() not in SCRIPT_SUFFIXES or path.suffix == ".sql":
            continue
        if not path.is_file():
            continue
        annotations, _ = parse(path.read_text(encoding="utf-8-sig", errors="replace"), path)
        places = annotations.places
        where = places.get("pipeline") or places.get("materialize")
        if where is not None:
            message = f"a {path.suffix} file is not taken: a model is a .sql file"
            hint = f"write the step as a SELECT in {path.with_suffix('.sql').name}"
            yield Diagnostic("warning", message, where, hint, "not-sql")
