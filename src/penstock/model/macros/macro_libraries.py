"""Libraries of macros: scripts whose header says ``-- macros``, and their ``CREATE MACRO``.

A library is made of ``CREATE MACRO`` statements and makes no table. Scripts call its macros by
name; ``-- use path/of/library`` says which library is meant where two have the same macro.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from penstock.errors import Diagnostic, Location, QueryFailed, UnsupportedFeature
from penstock.lazy import exp
from penstock.model.files.header_lines import read_header
from penstock.model.files.source_map import Source
from penstock.model.headers.annotation import parse as parse_annotations
from penstock.model.headers.draft import Annotations
from penstock.model.headers.syntax import begins_model
from penstock.model.script.references import is_sparks_own, own_masks
from penstock.model.script.script import MACRO_WORDS, QUERY_WORDS, Statement, is_macro, split
from penstock.sql.dialect import SPARK, normalized, parse
from penstock.sql.identifiers import fold, nearest
from penstock.sql.macros import AS_WRITTEN, Form, Macro, MacroForm, Parameter, read_forms
from penstock.sql.statement import Reader, if_not_exists
from penstock.sql.text import Unreadable, mask, parse_expression, place, wrong
from penstock.sql.time_travel import find_clauses
from penstock.sql.tokens import Token, Unclosed, tokenize, words


@dataclass(frozen=True, slots=True)
class NewMacro:
    """A macro as a statement makes it."""

    macro: Macro
    or_replace: bool
    there_may_be: bool
    text: str
    at: int

    def put(self, macros: dict[tuple[str, str], Macro]) -> None:
        """Add it to those of its script, by name and kind: an expression and a table may share a
        name. Raises QueryFailed where there is one.
        """
        key = fold(self.macro.name), self.macro.kind
        other = macros.get(key)
        if other is not None and self.there_may_be:
            return
        if other is not None and not self.or_replace:
            message = f"the macro {self.macro.name} is made twice, first at {other.where}"
            raise wrong(message, self.text, self.at, "give one another name, or OR REPLACE")
        macros[key] = self.macro


def read_macro(text: str, statement: Statement, dialect: str, schema: str, where: str) -> NewMacro:
    """The macro that a statement of ``text`` makes. Raises QueryFailed, UnsupportedFeature."""
    reader = Reader(
        text, statement.start, statement.end, tokens=list(statement.tokens), dialect=dialect
    )
    reader.expect("CREATE")
    or_replace = reader.accept("OR", "REPLACE")
    reader.accept_any("TEMP", "TEMPORARY")
    reader.accept_any(*MACRO_WORDS)
    there_may_be = if_not_exists(reader, or_replace)
    at = reader.token.start
    name = reader.dotted("a macro")
    if len(name) > 1:
        raise reader.wrong("the macro has a plain name", f"write CREATE MACRO {name[-1]}(...)", at)
    forms = tuple(_checked(form, text, dialect) for form in read_forms(reader, _parameter))
    macro = Macro(0, schema, name[0], forms, 0, where)
    return NewMacro(macro, or_replace, there_may_be, text, at)


def _parameter(reader: Reader) -> Parameter:
    """``a``, ``a INTEGER``, ``a := 1 + 1``: the type and default are kept as written."""
    name = reader.name("a parameter")
    span = reader.until(",", ":=", "=>", "DEFAULT")
    type_ = reader.text[slice(*span)] or None
    if reader.accept_any(":=", "=>", "DEFAULT") is None:
        return Parameter(name, type_)
    at = reader.token.start
    default = reader.expression(",", what="a default")
    try:
        tree = parse_expression(default.text, reader.dialect)
    except Unreadable as error:
        raise reader.wrong(f"the default of {name} cannot be read{error}", at=at) from None
    if tree.find(exp.Column, exp.Select) is not None:
        hint = "write a constant, or an expression of constants"
        raise reader.wrong(f"the default of {name} reads columns or a query", hint, at)
    return Parameter(name, type_, default.text, AS_WRITTEN)


def _checked(form: Form, text: str, dialect: str) -> MacroForm:
    """Raises QueryFailed for a definition that cannot be read, with its place."""
    tokens = tokenize(text, dialect, *form.text.span)
    at = form.text.start
    for token in tokens:
        if token.text == "@":
            hint = "write the macro with parameters, and give it @... in the call"
            raise wrong("a macro's definition has no @ macros", text, token.start, hint)
    if not form.is_table and tokens[0].upper in QUERY_WORDS and tokens[0].text != "(":
        hint = "write AS TABLE SELECT ... for a table, AS (SELECT ...) for one value"
        raise wrong("a scalar macro is one expression", text, at, hint)
    tree = _tree(form, text, tokens, dialect)
    if tree is not None and not form.is_table:
        clauses = ("from_", "where", "group", "order", "limit")
        if len(tree.expressions) != 1 or any(tree.args.get(clause) for clause in clauses):
            raise wrong("a scalar macro is one expression", text, at, "write AS TABLE SELECT ...")
    if tree is not None and form.is_table and not isinstance(tree, exp.Query):
        raise wrong("a table macro is a query", text, at, "write AS TABLE SELECT ...")
    kind = "table" if form.is_table else "scalar"
    return MacroForm(kind, dialect, form.text.text, form.parameters)


def _tree(form: Form, text: str, tokens: Sequence[Token], dialect: str) -> exp.Expr | None:
    """``None`` where Spark alone can read it."""
    clauses = [
        (tokens[clause.first].start, tokens[clause.last].end, "") for clause in find_clauses(tokens)
    ]
    before = "" if form.is_table else "SELECT "
    start, end = form.text.span
    masked = mask(text, [*own_masks(tokens), *clauses])[start:end]
    try:
        return parse(f"{before}{masked}", dialect)[0]
    except Unreadable as error:
        message = f"the macro cannot be read{error}"
        if dialect == SPARK and is_sparks_own(tokens, message):
            return None
        place = start + max(error.at - len(before), 0)
        raise wrong(message, text, place, "correct the SQL") from None


DIRECTORY = "macros"
TEMPORARY = "temp"  # the schema of the macros of a script
FileText = tuple[str | None, tuple[Diagnostic, ...]]  # None where the file cannot be read
_HEADER = re.compile(r"^[ \t]*(?:--|//|#)[ \t]*macros[ \t\r]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Library:
    """``name`` is its path below the project without the suffix; ``uses`` are other libraries."""

    name: str
    path: Path
    macros: tuple[Macro, ...] = ()
    uses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Libraries:
    """The libraries of a project by name, with all their macros, whose ``names`` are folded.

    ``models`` is the name of the models directory; ``digest`` changes with any of the macros.
    """

    by_name: Mapping[str, Library] = field(default_factory=dict)
    models: str = "models"
    macros: tuple[Macro, ...] = ()
    names: frozenset[str] = frozenset()
    digest: str = ""

    @classmethod
    def of(cls, libraries: Iterable[Library], models: str) -> Libraries:
        by_name = {library.name: library for library in libraries}
        macros = tuple(macro for library in by_name.values() for macro in library.macros)
        names = frozenset(fold(macro.name) for macro in macros)
        said = repr(macros).encode("utf-8", "surrogatepass")
        return cls(by_name, models, macros, names, hashlib.sha256(said).hexdigest())

    @property
    def paths(self) -> frozenset[Path]:
        return frozenset(library.path for library in self.by_name.values())

    def tiers(self, own: Sequence[str], uses: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """Return where a script looks for macros: in its own, those that it uses, then all."""
        return (tuple(own), tuple(uses), tuple(self.by_name))

    def named(self, written: str) -> str | None:
        """The library that ``use`` names: its path below the project or the models directory."""
        path = written.strip("/").removesuffix(".sql")
        below = (PurePosixPath(self.models) / path).as_posix()
        return next((name for name in (path, below) if name in self.by_name), None)

    def used(
        self, annotations: Annotations, path: Path
    ) -> tuple[tuple[str, ...], tuple[Diagnostic, ...]]:
        """The libraries that the ``use`` lines of a header name, and those that are not there."""
        found: dict[str, None] = {}
        findings: list[Diagnostic] = []
        for written in annotations.use_libs:
            name = self.named(written)
            if name is not None:
                found[name] = None
                continue
            where = annotations.places.get(f"use:{written}", Location(path, 1, 1))
            guess = nearest(written, self.by_name, cutoff=0.5)
            listed = ", ".join(self.by_name) or "none: a library's header says -- macros"
            hint = f"did you mean `-- use {guess}`?" if guess else f"there are {listed}"
            message = f"macro library {written} does not exist"
            findings.append(Diagnostic("error", message, where, hint, "macro-library"))
        return tuple(found), tuple(findings)


def find_libraries(
    models: Mapping[Path, FileText],
    others: Mapping[Path, FileText],
    root: Path,
    models_dir: Path,
    dialect: str,
) -> tuple[Libraries, tuple[Diagnostic, ...]]:
    """The libraries among the files of the models directory and the others, those below
    ``macros/``; and what is wrong with them. ``dialect`` is that of a library that names none.
    """
    findings = [finding for _, found in others.values() for finding in found]
    texts: dict[Path, str] = {}
    for path, (text, _) in {**models, **others}.items():
        if text is not None and _HEADER.search(text) and parse_annotations(text, path)[0].macros:
            texts[path] = text
        elif text is not None and path in others:
            message = "the file is not a library of macros, so nothing reads it"
            hint = "begin it with -- macros"
            findings.append(Diagnostic("warning", message, Location(path, 1, 1), hint, "macros"))
    read = [_read(text, path, root, dialect) for path, text in texts.items()]
    below = models_dir.relative_to(root).as_posix() if models_dir.is_relative_to(root) else ""
    libraries = Libraries.of((library for library, _, _ in read), below)
    bound: list[Library] = []
    for library, header, found in read:
        uses, unknown = libraries.used(header, library.path)
        findings += (*found, *unknown)
        tiers = libraries.tiers((library.name,), uses)
        macros = tuple(replace(macro, tiers=tiers) for macro in library.macros)
        bound.append(replace(library, macros=macros, uses=uses))
    return Libraries.of(bound, below), tuple(findings)


def _read(
    text: str, path: Path, root: Path, dialect: str
) -> tuple[Library, Annotations, tuple[Diagnostic, ...]]:
    below = path.relative_to(root) if path.is_relative_to(root) else path
    name = below.with_suffix("").as_posix()
    annotations, findings = parse_annotations(text, path, dialect=dialect)
    found = [*findings, *_as_model(text, path, annotations)]
    macros: dict[tuple[str, str], Macro] = {}
    try:
        text = normalized(text, annotations.dialect)
        start = read_header(text, path).end
        statements = split(words(text, annotations.dialect, start))
    except Unclosed as error:
        where = Source(path, text).location(error.offset)
        message = f"`{error.opener}` is opened here and never closed"
        found.append(Diagnostic("error", message, where, "close it", "unclosed"))
        return Library(name, path), annotations, tuple(found)
    for statement in () if found else statements:
        if not is_macro(statement):
            where = Location(path, *place(text, statement.start))
            message = f"`{statement.tokens[0].text}` is not a macro, and a library has nothing else"
            hint = "write CREATE MACRO name(a, b) AS ..., or move the statement to a model"
            found.append(Diagnostic("error", message, where, hint, "macro-library"))
            continue
        at, _ = place(text, statement.start)
        try:
            made = read_macro(
                text, statement, annotations.dialect, name, f"{below.as_posix()}:{at}"
            )
            made.put(macros)
        except (QueryFailed, UnsupportedFeature) as error:
            found.append(_placed(error, path, at))
    if not macros and not found:
        message = "the library has no macro"
        hint = "write CREATE MACRO name(a, b) AS ..."
        found.append(Diagnostic("warning", message, Location(path, 1, 1), hint, "macro-library"))
    return Library(name, path, tuple(macros.values())), annotations, tuple(found)


def _as_model(text: str, path: Path, annotations: Annotations) -> Iterator[Diagnostic]:
    """A script is a library or makes a table."""
    where = annotations.places.get("materialize") or annotations.places.get("pipeline")
    if where is None and begins_model(text, read_header(text, path).end):
        where = Source(path, text).location(read_header(text, path).end)
    if where is not None:
        message = "a library of macros makes no table"
        hint = "remove `macros`, or write the model in a file of its own"
        yield Diagnostic("error", message, where, hint, "macro-library")


def _placed(error: QueryFailed | UnsupportedFeature, path: Path, line: int) -> Diagnostic:
    where = Location(path, error.data.get("line", line), error.data.get("column", 1))
    hint = error.hint or "write CREATE MACRO name(a, b) AS expression"
    return Diagnostic("error", error.cause, where, hint, "macro-library")
