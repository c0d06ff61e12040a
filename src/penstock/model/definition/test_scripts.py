"""Shared tests: a script in ``tests/`` with arguments, given by ``data_test`` lines.

A script declares what it needs as a model does, ``-- $limit (int) = 3``; the type ``name`` is that
of a column, which becomes part of the query, quoted. Other values are bound.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from penstock.errors import ArgumentError, Diagnostic, Location
from penstock.model.definition.model import TestScript
from penstock.model.files.header_lines import read_header
from penstock.model.headers.audit_blocks import AuditBlock
from penstock.model.macros.at_macros import expand, expanded
from penstock.model.macros.script_macros import ScriptMacros
from penstock.model.query.query import ScriptKind, read_query
from penstock.model.script.arguments import OF_SLICE, Argument, bind
from penstock.model.script.at_text import MacroError
from penstock.model.time.partition import PartitionSpec
from penstock.model.time.time_macros import TYPES
from penstock.model.values.asset import TableName
from penstock.model.values.data_test import CustomTest
from penstock.model.values.names import Names
from penstock.sql.dialect import SPARK
from penstock.sql.identifiers import nearest, quote_identifier
from penstock.sql.query.edits import Edit, edited
from penstock.sql.tokens import ARGUMENT, Unclosed, words

_NAME = re.compile(
    r"^[ \t]*(?:--|//|#)[ \t]*(?P<declared>\$(?P<name>\w+)[ \t]*\([ \t]*name[ \t]*\)"
    r"[ \t]*(?:=[ \t]*(?P<default>\S+))?)[ \t\r]*$",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Asking:
    """The origin of a test: ``where`` is its line, ``own`` are the arguments of its script."""

    where: Location
    names: Names
    own: Collection[str] = ()
    partition: PartitionSpec | None = None
    macros: ScriptMacros = field(default_factory=ScriptMacros)

    def refuse(self, message: str, hint: str) -> Diagnostic:
        return Diagnostic("error", message, self.where, hint, "test-argument")


def test_script(
    test: CustomTest, text: str, path: Path, dialect: str, asking: Asking
) -> tuple[TestScript | None, tuple[Diagnostic, ...]]:
    """The script's query with its arguments; ``None`` when a finding is an error."""
    given = dict(test.options)
    named = {match["name"]: given.get(match["name"], match["default"]) for match in _names(text)}
    findings = [
        asking.refuse(f"{test.path} needs {name}", f"write {test.path} {name}=column")
        for name, value in named.items()
        if not value
    ]
    if findings:
        return None, tuple(findings)
    query, found = read_query(
        _with_names(text, named, dialect),
        path,
        names=asking.names,
        dialect=dialect,
        kind=ScriptKind(read_header(text, path).end, asking.partition),
        macros=asking.macros,
    )
    if query is None:
        return None, found
    given = {name: value for name, value in given.items() if name not in named}
    arguments, findings = _bound(test, given, query.arguments, [*named], asking)
    script = TestScript(test, query, text[read_header(text, path).end :].strip(), arguments)
    return (None if findings else script), (*found, *findings)


def audit_script(
    test: CustomTest, block: AuditBlock, target: TableName, asking: Asking
) -> tuple[TestScript | None, tuple[Diagnostic, ...]]:
    """The query of an audit that the project writes, over the table that is tested."""
    mark = "`" if block.dialect == SPARK else '"'
    parts = (target.lake, target.schema, target.table)
    table = ".".join(quote_identifier(part, mark=mark) for part in parts)
    macros = asking.macros.saying(this_model=table, runtime_stage="'auditing'")
    try:
        given = {
            name: expanded(value, block.dialect, macros.at)
            for name, value in block.given(dict(test.options)).items()
        }
        macros = macros.saying(**given)
        expand(block.query, 0, block.dialect, macros.at)
    except MacroError as error:
        if error.missing:
            message = f"the audit {block.name} needs `{error.missing}`"
            hint = f"write {block.name}({error.missing} := ...)"
            return None, (asking.refuse(message, hint),)
    path = Path(block.location.path)
    query, found = read_query(
        block.query,
        path,
        names=asking.names,
        dialect=block.dialect,
        kind=ScriptKind(partition=asking.partition),
        macros=macros,
    )
    if query is None:
        return None, found
    return TestScript(test, query, query.source.text.strip()), found


def _names(text: str) -> list[re.Match[str]]:
    return list(_NAME.finditer(text))


def _with_names(text: str, named: Mapping[str, str | None], dialect: str) -> str:
    """The script with its names filled in and their declarations left out."""
    edits = [
        Edit(match.start("declared"), match.end("declared"), " " * len(match["declared"]))
        for match in _names(text)
    ]
    mark = "`" if dialect == SPARK else '"'
    try:
        tokens = words(text, dialect) if named else []
    except Unclosed:
        return text  # which reading the query reports
    edits += [
        Edit(token.start, token.end, quote_identifier(named[token.value] or "", mark=mark))
        for token in tokens
        if token.kind == ARGUMENT and token.value in named
    ]
    return edited(text, edits).text


def _bound(
    test: CustomTest,
    given: Mapping[str, str],
    declared: Collection[Argument],
    named: Collection[str],
    asking: Asking,
) -> tuple[dict[str, object], list[Diagnostic]]:
    """Values of the arguments; those that the model's script has too are left to a run."""
    wanted = {
        arg.name: arg for arg in declared if arg.name not in OF_SLICE and arg.name not in TYPES
    }
    for name in given:
        if name not in wanted:
            known = (*named, *wanted)
            guess = nearest(name, known)
            hint = f"its arguments are {', '.join(known)}" if known else "it takes no arguments"
            message = f"{test.path} has no argument {name!r}"
            return {}, [asking.refuse(message, f"did you mean {guess}=?" if guess else hint)]
    left = [arg for name, arg in wanted.items() if name in given or name not in asking.own]
    try:
        return bind(left, given), []
    except ArgumentError as error:
        name = str(error.data.get("argument", "value"))
        hint = error.hint or ""
        if name not in given:
            return {}, [asking.refuse(f"{test.path} needs {name}", f"write {name}=VALUE after it")]
        return {}, [asking.refuse(f"{test.path}: {error.message}", hint)]
