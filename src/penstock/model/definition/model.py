"""Define a model: a strategy over a slice, a query, tests, and what triggers it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import chain

from penstock.errors import Diagnostic, Location
from penstock.model.macros.at_macros import BUILTINS, LIBRARY
from penstock.model.python_steps import PythonStep
from penstock.model.query.query import Query
from penstock.model.script.arguments import Argument
from penstock.model.script.declaration import Declaration
from penstock.model.script.sources import is_earlier, table_read
from penstock.model.time.time_macros import TYPES
from penstock.model.time.time_range import TimeRange
from penstock.model.values.asset import TableName, table_of
from penstock.model.values.data_test import QUARANTINE, CustomTest, RelationshipsTest
from penstock.model.values.strategy import Capability, Output
from penstock.model.values.upsert import columns_in

SCRIPT = "script"  # in `Model.definition_parts`
EXPANDED = "query with its macros"  # there, too


def part_of_embedded(table: TableName) -> str:
    """The name of the part of a definition that has the query of an EMBEDDED model."""
    return f"query of {table}"


@dataclass(frozen=True, slots=True)
class TestScript:
    """The query of a `CustomTest`: the rows it returns are failures.

    ``arguments`` are the values that the test gives to the arguments of the query, ``text`` is the
    query as written.
    """

    __test__ = False  # not a test class, whatever pytest thinks of the name

    test: CustomTest
    query: Query
    text: str = ""
    arguments: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Model(Declaration):
    """One script of a project, in whatever form it says what it makes.

    ``name`` is the script's path below the models directory without its suffix, ``/`` kept
    (``clean/flights``). ``reads`` are the managed tables its query refers to, in the order of first
    mention; ``test_reads`` those that only its data tests look at, its own not among them.
    ``definition_hash`` changes when the meaning of the script may have changed. ``python`` makes
    the rows where the query has no parts. ``files_read`` and ``files_written`` are paths and URIs
    in the spelling of `penstock.model.script.file_uris`, patterns among them; those of ``on``
    lines are read, and those ``files_tested`` only by data tests. ``own``: the environment makes
    its table; otherwise it only reads the one that another environment made.
    """

    name: str
    query: Query
    reads: tuple[TableName, ...]
    definition_hash: str
    python: PythonStep | None = None
    test_scripts: tuple[TestScript, ...] = ()
    test_reads: tuple[TableName, ...] = ()
    files_read: tuple[str, ...] = ()
    files_tested: tuple[str, ...] = ()
    files_written: tuple[str, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    own: bool = True

    @property
    def python_place(self) -> Location:
        """Return where its ``main`` is."""
        return Location(self.path) if self.python is None else self.python.place

    @property
    def quarantines(self) -> bool:
        """Return whether a data test sets rows aside."""
        return any(test.severity == QUARANTINE for test in self.data_tests)

    @property
    def by_time(self) -> TimeRange | None:
        """Its intervals, where it has some: by its kind, or as its query reads by them."""
        known = self.time_range
        return known if known and (known.column or self.query.uses_interval) else None

    @property
    def definition_parts(self) -> dict[str, str]:
        """The parts of its definition, as texts by their names, for people to compare.

        Each macro is a part with all that it made of calls, in what is embedded, too; so is what
        all of them make of its query, and each argument. Of the values of settings, which may be
        secret, there are hashes. SCRIPT is the whole file, from which the model can be built again.
        """
        query = self.query
        whole = query.source if query.source.written is None else query.source.written
        parts = {SCRIPT: whole.text, "query": query.text}
        if query.source.written is not None:
            statements = (part.statement for part in (*query.parts, *query.after))
            texts = (query.source.text[each.start : each.end].strip() for each in statements)
            parts[EXPANDED] = ";\n".join(texts)
        parts |= _macros(query)
        parts |= {part_of_embedded(table): inner.text for table, inner in query.embeds.items()}
        parts |= {f"argument {a.name}": f"{a.type} = {a.default}" for a in query.arguments}
        for each in query.settings:
            parts[f"setting {each.name}"] = sha256(each.value.encode()).hexdigest()
        if self.python is not None:
            parts["Python code"] = self.python.digest
        said = {name: value for name, value in self.meaning.items() if value not in (None, {}, [])}
        return parts | {name: json.dumps(value, default=str) for name, value in said.items()}

    @property
    def run_arguments(self) -> tuple[Argument, ...]:
        """Return what a run gives values to: its query's arguments, and the times that its tests
        read.
        """
        scripts = (script.query.arguments for script in self.test_scripts)
        times = {argument.name: argument for argument in chain(*scripts) if argument.name in TYPES}
        own = {argument.name: argument for argument in self.query.arguments}
        return tuple({**times, **own}.values())

    def given(self, args: Mapping[str, str | None]) -> dict[str, str | None]:
        """Return what a run gives to its arguments, of all texts that it gives."""
        names = {argument.name for argument in self.run_arguments} if args else set[str]()
        return {name: text for name, text in args.items() if name in names}

    @property
    def in_order(self) -> bool:
        """Return whether an interval can only be made after those before it: versions follow upon
        each other.
        """
        return self.history is not None and self.by_time is not None

    @property
    def needs(self) -> tuple[tuple[str, Capability], ...]:
        """Everything that destinations have to be able to do, each with the name of its lake."""
        strategy, history = self.strategy, self.history
        by_rules = strategy.merges and bool(self.upsert or self.key_expressions)
        needs = {
            Capability.SLICES: self.partition is not None and strategy.counts_rows,
            Capability.STATEMENTS: by_rules or bool(self.query.after),
            Capability.VIEWS: history is not None and history.is_current is not None,
            Capability.RECORDS: strategy.builds_on_slices,
        }
        own = [need for need in Capability if need in strategy.needs or needs.get(need)]
        changes = self.lakes if self.reads_changes else ()
        return (
            *((self.target.lake, need) for need in own),
            *((lake, Capability.CHANGES) for lake in changes),
        )

    @property
    def terms(self) -> str:
        """The terms on which rows are published, which the definition leaves out, as a hash: the
        data tests, the comments on the table and its columns, its layout, and what becomes of
        columns that only one of the table and the SELECT has.
        """
        about, layout, change = self.about, self.layout, self.schema_change
        terms = {
            "tests": [test.to_dict() for test in self.data_tests],
            "scripts": [[script.text, dict(script.arguments)] for script in self.test_scripts],
            "comments": [about.description, about.column_descriptions],
            "layout": [layout.partitioned_by, layout.clustered_by],
            "columns": [change.added, change.missing],
        }
        text = json.dumps(terms, sort_keys=True, default=str)
        return sha256(text.encode()).hexdigest()

    @property
    def test_parts(self) -> dict[str, str]:
        """Its data tests as texts by their names, for people to compare."""
        parts = {f"data test {test.name}": json.dumps(test.to_dict()) for test in self.data_tests}
        scripts = {f"data test {script.test.name}": script for script in self.test_scripts}
        return parts | {
            name: f"{json.dumps(dict(script.arguments), default=str)} {script.text}"
            for name, script in scripts.items()
        }

    @property
    def looks_at_rows(self) -> bool:
        """Return whether a run of it depends on rows: of a view by its data tests only."""
        return self.strategy.output is not Output.VIEW or bool(self.data_tests)

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The columns that its keys are, or are made of."""
        found: dict[str, None] = {}
        for key in self.keys:
            whole = key not in self.key_expressions
            found |= dict.fromkeys([key] if whole else columns_in(key, self.query.dialect))
        return tuple(found)

    @property
    def only_warned(self) -> tuple[TableName, ...]:
        """The tables that only tests with ``severity=warn`` look at: no slice waits for them."""
        tests = (test for test in self.data_tests if test.severity != "warn")
        scripts = (script for script in self.test_scripts if script.test.severity != "warn")
        tables = [table_of(test.to) for test in tests if isinstance(test, RelationshipsTest)]
        needed = {*tables, *self.inputs, *(t for script in scripts for t in script.query.reads)}
        return tuple(table for table in self.test_reads if table not in needed)

    @property
    def names_tables(self) -> bool:
        """Return whether its query, or a test of it, names columns of other tables."""
        tests = (test for test, _ in self.placed_tests)
        reads = self.python is None and not self.query.manual and bool(self.query.mentioned)
        return reads or any(isinstance(test, RelationshipsTest) for test in tests)

    @property
    def lakes(self) -> tuple[str, ...]:
        """The lakes that it and its data tests read, each once."""
        tests = [lake for script in self.test_scripts for lake in script.query.lakes]
        tables = [table.lake for table in (*self.reads, *self.test_reads)]
        return tuple(dict.fromkeys([*tables, *self.query.lakes, *tests]))

    @property
    def inputs(self) -> tuple[TableName, ...]:
        """Everything upstream, each once, in order."""
        return tuple(dict.fromkeys((*self.reads, *self.on, *self.depends_on)))

    @property
    def changing_inputs(self) -> tuple[TableName, ...]:
        """Return its inputs without those that its query reads at an earlier snapshot only."""
        read = [(table_read(source), is_earlier(source)) for source in self.query.sources]
        now = {table for table, earlier in read if not earlier}
        then = {table for table, earlier in read if earlier}
        return tuple(table for table in self.inputs if table in now or table not in then)


def _macros(query: Query) -> dict[str, str]:
    """Return what each macro made of its calls in a query and what that embeds, as JSON by ``macro
    name``. Of a call with others in it all that begin with ``@`` are named.
    """
    found: dict[str, dict[str, str]] = {}
    for origin, call, made in _expansions(query):
        own = (name for name in _CALLED.findall(call) if name.lower() not in _EVERYWHERE)
        names = dict.fromkeys(own)
        if origin or names:
            name = origin.removeprefix("the ").partition(",")[0] or f"macro {', '.join(names)}"
            found.setdefault(name, {})[" ".join(call.split())] = made
    return {name: json.dumps(calls, sort_keys=True) for name, calls in found.items()}


def _expansions(query: Query) -> Iterator[tuple[str, str, str]]:
    if query.source.written is not None:
        yield from query.source.written.expansions
    for inner in query.embeds.values():
        yield from _expansions(inner)


_CALLED = re.compile(r"@(\w+)\(")
_EVERYWHERE = frozenset({*BUILTINS, *LIBRARY})  # macros that every project has
