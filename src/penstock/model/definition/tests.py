"""Tests that a project writes: scripts with arguments for ``data_test`` lines, and unit tests.

Shared tests: a script in ``tests/`` with arguments, given by ``data_test`` lines.

A script declares what it needs as a model does, ``-- $limit (int) = 3``; the type ``name`` is that
of a column, which becomes part of the query, quoted. Other values are bound.

Unit tests of models: YAML files of rows that a query is given and of rows that it has to make.

Two spellings make the same value: SQLMesh's (a test by its name: ``model``, ``inputs``,
``outputs``, ``vars``) and dbt's (``unit_tests``, a list: ``model``, ``given``, ``expect``,
``overrides``). ``partition``, ``start`` and ``end`` beside them are Penstock's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.errors import ArgumentError, Diagnostic, Location
from penstock.model.definition.model import TestScript
from penstock.model.files.header_lines import read_header
from penstock.model.files.yaml_file import Entries, Reading, pairs
from penstock.model.headers.audit_blocks import AuditBlock
from penstock.model.macros.at_macros import expand, expanded
from penstock.model.macros.script_macros import ScriptMacros
from penstock.model.query.query import ScriptKind, read_query
from penstock.model.script.arguments import OF_SLICE, Argument, bind
from penstock.model.script.at_text import MacroError
from penstock.model.time.partition import PartitionSpec
from penstock.model.time.time_macros import TYPES
from penstock.model.values.asset import Names, TableName
from penstock.model.values.data_test import CustomTest
from penstock.sql.dialect import SPARK
from penstock.sql.identifiers import nearest, quote_identifier
from penstock.sql.query.edits import Edit, edited
from penstock.sql.tokens import ARGUMENT, Unclosed, words

if TYPE_CHECKING:
    from yaml.nodes import Node


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


THIS = "this"  # dbt's name for the table that the model makes


@dataclass(frozen=True, slots=True)
class TestRows:
    """Rows in one of four forms: as written, as CSV, in a ``file`` of either, or of a ``query``.

    ``columns`` are declared types, by DuckDB's names.
    """

    __test__ = False  # not a test class, whatever pytest thinks of the name

    location: Location
    rows: tuple[Mapping[str, object], ...] | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    csv: str | None = None
    file: str | None = None
    query: str | None = None


@dataclass(frozen=True, slots=True)
class Given:
    """``name`` is a table, a model, or a file's path as the query has it."""

    name: str
    rows: TestRows


@dataclass(frozen=True, slots=True)
class Expected:
    """What the query returns, or its ``cte``. ``partial`` looks at the named columns only."""

    rows: TestRows
    cte: str | None = None
    partial: bool = False


@dataclass(frozen=True, slots=True)
class UnitTest:
    """``values`` are those of arguments; ``partition`` is that of a partitioned model. ``start``
    and ``end`` are the first and last moments of a model by time, of which a date is all its day.
    """

    name: str
    model: str
    given: tuple[Given, ...]
    expected: tuple[Expected, ...]
    location: Location
    description: str | None = None
    partition: str | None = None
    start: str | None = None
    end: str | None = None
    values: Mapping[str, object] = field(default_factory=dict)
    enabled: bool = True


def read_unit_tests(text: str, path: Path) -> tuple[tuple[UnitTest, ...], tuple[Diagnostic, ...]]:
    """The tests of a YAML file in its order, and what is wrong with the others."""
    import yaml

    reading = Reading(path, "unit-test")
    root = reading.root(text)
    if root is None:
        return (), tuple(reading.findings)
    try:
        entries = reading.mapping(root, "the file")
        read = _dbt if _UNIT_TESTS in entries else _sqlmesh
        tests = list(read(reading, entries))
    except yaml.constructor.ConstructorError as error:
        reading.refuse_tag(error)
        return (), tuple(reading.findings)
    return tuple(test for test in tests if test is not None), tuple(reading.findings)


_UNIT_TESTS = "unit_tests"


_TEST = (
    *("model", "description", "inputs", "outputs", "vars", "partition", "start", "end"),
    *("schema", "gateway", "default_catalog"),
)


def _sqlmesh(reading: Reading, entries: Entries) -> Iterator[UnitTest | None]:
    for name, node in entries.items():
        test = reading.mapping(node, f"the test {name}", _TEST)
        outputs = test.get("outputs")
        expected: tuple[Expected, ...] = ()
        if outputs is None:
            reading.error(node, f"the test {name} says no outputs", "add outputs: query: rows:")
        else:
            expected = tuple(_outputs(reading, outputs))
        inputs = test.get("inputs")
        given = reading.mapping(inputs, "inputs") if inputs is not None else {}
        tables = tuple(Given(table, _rows(reading, rows)) for table, rows in given.items())
        yield _test(
            reading,
            node,
            name=name,
            entries=test,
            given=tables,
            expected=expected,
            variables=test.get("vars"),
        )


def _outputs(reading: Reading, node: Node) -> Iterator[Expected]:
    outputs = reading.mapping(node, "outputs", ("query", "ctes", "partial"))
    partial = "partial" in outputs and bool(reading.value(outputs["partial"]))
    if "query" not in outputs and "ctes" not in outputs:
        reading.error(node, "outputs has neither query nor ctes", "add query: rows:")
    if "query" in outputs:
        yield _output(reading, outputs["query"], None, partial)
    if "ctes" in outputs:
        for name, rows in reading.mapping(outputs["ctes"], "ctes").items():
            yield _output(reading, rows, name, partial)


def _output(reading: Reading, node: Node, cte: str | None, partial: bool) -> Expected:
    from yaml.nodes import MappingNode

    own = False
    if isinstance(node, MappingNode):
        flag = next((value for key, value in pairs(node) if key.value == "partial"), None)
        own = flag is not None and bool(reading.value(flag))
    return Expected(_rows(reading, node), cte, partial or own)


_DBT = (
    *("name", "description", "model", "given", "expect", "overrides", "config", "partition"),
    *("tags", "versions", "start", "end"),
)


def _dbt(reading: Reading, entries: Entries) -> Iterator[UnitTest | None]:
    for node in reading.items(entries[_UNIT_TESTS], _UNIT_TESTS):
        test = reading.mapping(node, "a unit test", _DBT)
        name = reading.text(test.get("name")) or "unit test"
        expect = test.get("expect")
        if expect is None:
            reading.error(node, f"the test {name} expects nothing", "add expect: rows:")
            continue
        given = (
            tuple(_given(reading, item) for item in reading.items(test["given"], "given"))
            if "given" in test
            else ()
        )
        overrides = (
            reading.mapping(test["overrides"], "overrides", ("vars",))
            if "overrides" in test
            else {}
        )
        expected = (Expected(_rows(reading, expect), partial=True),)
        yield _test(
            reading,
            node,
            name=name,
            entries=test,
            given=given,
            expected=expected,
            variables=overrides.get("vars"),
        )


def _given(reading: Reading, node: Node) -> Given:
    entries = reading.mapping(node, "an input", ("input", *_ROWS))
    written = reading.text(entries.get("input"))
    if written is None:
        reading.error(node, "an input has no name", "add input: ref('model')")
    call = _CALL.fullmatch((written or "").strip())
    names = re.findall(r"['\"]([^'\"]+)['\"]", call[2]) if call else [written or ""]
    if call and call[1] == "ref":
        names = names[-1:]  # a package before the model says nothing
    return Given(".".join(names), _rows(reading, node))


_CALL = re.compile(r"(ref|source)\s*\((.*)\)")
_ROWS = ("rows", "columns", "format", "path", "fixture", "query", "partial")


def _test(
    reading: Reading,
    node: Node,
    *,
    name: str,
    entries: Entries,
    given: tuple[Given, ...],
    expected: tuple[Expected, ...],
    variables: Node | None,
) -> UnitTest | None:
    model = reading.text(entries.get("model"))
    if model is None:
        reading.error(node, f"the test {name} names no model", "add model: NAME")
        return None
    values = {} if variables is None else reading.mapping(variables, "vars")
    config = reading.mapping(entries["config"], "config") if "config" in entries else {}
    return UnitTest(
        name,
        model,
        given,
        expected,
        reading.where(node),
        reading.text(entries.get("description")),
        reading.text(entries.get("partition") or values.pop("partition", None)),
        reading.text(entries.get("start")),
        reading.text(entries.get("end")),
        {name: reading.value(value) for name, value in values.items()},
        "enabled" not in config or bool(reading.value(config["enabled"])),
    )


def _rows(reading: Reading, node: Node) -> TestRows:
    """``rows: [...]`` with what may stand beside it, or the list of rows alone."""
    from yaml.nodes import SequenceNode

    where = reading.where(node)
    if isinstance(node, SequenceNode):
        return TestRows(where, _listed(reading, node))
    entries = reading.mapping(node, "the rows", ("input", *_ROWS))
    form = reading.text(entries.get("format")) or "dict"
    if form not in _FORMS:
        known = ", ".join(_FORMS)
        reading.error(entries["format"], f"{form} is not a format of rows", f"known: {known}")
        return TestRows(where)
    columns = (
        {
            name: reading.text(kind) or ""
            for name, kind in reading.mapping(entries["columns"], "columns").items()
        }
        if "columns" in entries
        else {}
    )
    file = reading.text(entries.get("path") or entries.get("fixture"))
    if file is not None or "query" in entries:
        return TestRows(where, None, columns, file=file, query=reading.text(entries.get("query")))
    if "rows" not in entries:
        reading.error(node, "there are no rows", "add rows: [] where the table is empty")
        return TestRows(where, (), columns)
    return _FORMS[form](reading, entries["rows"], where, columns)


def _listed(reading: Reading, node: Node) -> tuple[Mapping[str, object], ...]:
    found: list[Mapping[str, object]] = []
    for item in reading.items(node, "rows"):
        entries = reading.mapping(item, "a row")
        found.append({name: reading.value(value) for name, value in entries.items()})
    return tuple(found)


_Form = Callable[["Reading", "Node", Location, Mapping[str, str]], TestRows]
_FORMS: Mapping[str, _Form] = {
    **dict.fromkeys(
        ("dict", "yaml"),
        lambda reading, node, at, columns: TestRows(at, _listed(reading, node), columns),
    ),
    "csv": lambda reading, node, at, columns: TestRows(at, None, columns, csv=reading.text(node)),
    "sql": lambda reading, node, at, columns: TestRows(at, None, columns, query=reading.text(node)),
}
