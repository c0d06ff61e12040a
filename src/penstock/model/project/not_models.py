"""Files below the models directory that make no model: what to say of each, and what to write."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

from penstock.errors import Diagnostic, Location
from penstock.model.files.header_lines import read_header
from penstock.model.files.python_code import PythonCode
from penstock.model.files.source_map import Source
from penstock.model.headers.annotation import parse
from penstock.model.headers.draft import Annotations
from penstock.model.headers.syntax import MODEL
from penstock.model.values.asset import Names
from penstock.sql.identifiers import nearest
from penstock.sql.tokens import NAME, STRING, Token, Unclosed, words

HEADER = "-- materialize ducklake://main/table"
FIRST_MODEL = (
    "a model is a .sql file below models/ whose header says `-- materialize ducklake://LAKE/TABLE`"
    ", or that begins with MODEL (name SCHEMA.TABLE, kind FULL);"
)
#: scripts in which other runners of annotated scripts have steps, and `.sql` in capitals
PYTHON = ".py"
SCRIPT_SUFFIXES = (".ts", ".js", ".sh", ".go", ".sql", ".py")
_TYPESCRIPT = (".ts", ".js")
#: findings of a header that matter although it declares no step: it may have been meant to
_MEANT = ("misspelt-keyword", "late-annotation", "block-comment", "dropped-materialize")


def report_script(
    text: str, path: Path, findings: tuple[Diagnostic, ...]
) -> tuple[Diagnostic, ...]:
    """Return what to say of a ``.sql`` file whose header, with these ``findings``, declares no
    step.
    """
    meant = tuple(finding for finding in findings if finding.rule in _MEANT)
    if meant:
        return meant
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
        if nearest(word, (MODEL,), cutoff=0.75):
            message = f"`{word} (...)` is not a known statement, so the file makes no model"
            hint = f"did you mean {MODEL} (...)?"
            yield Diagnostic("error", message, where, hint, "model-ddl")
            return
    yield _headerless(where)


def _headerless(where: Location) -> Diagnostic:
    message = "the file has no annotation that makes it a model, so nothing runs it"
    hint = f"begin it with `{HEADER}` or MODEL (...), or move it out of the models directory"
    return Diagnostic("warning", message, where, hint, "no-header")


def report_other_languages(scripts: Sequence[Path]) -> Iterator[Diagnostic]:
    """Report those of ``scripts``, which are neither SQL nor Python, that have a step's header."""
    for path in scripts:
        if not path.is_file():
            continue
        annotations, _ = parse(path.read_text(encoding="utf-8-sig", errors="replace"), path)
        places = annotations.places
        where = places.get("pipeline") or places.get("materialize")
        if where is not None:
            message = f"a {path.suffix} file is not taken: a step is a .sql or .py file"
            severity = "warning"
            if path.suffix.lower() in _TYPESCRIPT:
                message, severity = (
                    f"steps in TypeScript ({path.suffix}) are not supported",
                    "error",
                )
            sql, python = (path.with_suffix(suffix).name for suffix in (".sql", PYTHON))
            hint = f"write the step as a SELECT in {sql}, or def main(...) in {python}"
            yield Diagnostic(severity, message, where, hint, "not-sql")


def report_python(
    code: PythonCode | None,
    annotations: Annotations,
    findings: Sequence[Diagnostic],
    names: Names,
) -> tuple[Diagnostic, ...]:
    """Return what to say of a ``.py`` file whose header declares no step: it may be a module of
    steps, and is None where it is not Python at all.
    """
    body = () if code is None else code.tree.body
    functions = (node for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    main = next((function for function in functions if function.name == "main"), None)
    rules = _MEANT if main is not None else _MEANT_IN_MODULES
    meant = tuple(finding for finding in findings if finding.rule in rules)
    if code is None or meant:
        return meant
    of_sqlmesh = tuple(_sqlmesh_models(code, names))
    if of_sqlmesh or main is None:
        return of_sqlmesh
    declared = [place for what, place in annotations.places.items() if what.startswith(_OF_STEPS)]
    hint = f"add `# materialize ducklake://{_lake(names)}/{code.path.stem}` to its header"
    if declared:
        first = min(declared, key=lambda place: place.line or 0)
        message = "the header does not say what the file makes, so nothing runs it"
        return (Diagnostic("error", message, first, hint, "no-header"),)
    if any(isinstance(node, ast.If) and "__main__" in ast.dump(node.test) for node in body):
        return ()  # it is a program
    message = "the file has a function main and no header that makes it a step, so nothing runs it"
    hint += ", or move the file out of the models directory"
    return (Diagnostic("warning", message, code.where(main), hint, "no-header"),)


#: of a module without `main`, where comments below the first line are about its code
_MEANT_IN_MODULES = ("misspelt-keyword", "dropped-materialize")
#: lines that only a step has
_OF_STEPS = ("partitioned", "on", "data_test", "incremental", "column")


def _lake(names: Names) -> str:
    return "main" if "main" in names.lakes else names.lakes[0]


def _sqlmesh_models(code: PythonCode, names: Names) -> Iterator[Diagnostic]:
    """Functions that SQLMesh's ``@model`` makes models."""
    for node in code.tree.body:
        decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
        for call in decorators:
            if not isinstance(call, ast.Call) or code.dotted(call.func) not in _DECORATORS:
                continue
            name = code.text_of(call.args[0]) if call.args else None
            table = ".".join((name or code.path.stem).split(".")[-2:])
            message = (
                f"{name or 'the file'} is a Python model of SQLMesh, which is not taken as it is"
            )
            hint = (
                f"write `# materialize ducklake://{_lake(names)}/{table}` at its top and "
                "def main(...) that returns the rows: start and end are partition_start and "
                "partition_end, context.fetchdf(...) is penstock.lake().query(...)"
            )
            if any(each.arg == "is_sql" for each in call.keywords):
                hint = (
                    f"write its query in a .sql file: MODEL (name {table}, kind FULL); SELECT ..."
                )
            yield Diagnostic("error", message, code.where(call), hint, "sqlmesh-model")


_DECORATORS = ("sqlmesh.model", "sqlmesh.core.model.model", "sqlmesh.core.model.decorator.model")
