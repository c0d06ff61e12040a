"""A script's query: what it reads and needs, and its text made ready for Spark."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from penstock.errors import Diagnostic, Location
from penstock.model.files.source_map import Source, Written
from penstock.model.macros.at_macros import expand
from penstock.model.macros.script_macros import ScriptMacros, expand_calls
from penstock.model.query.analysis import Part, Scope, read_part
from penstock.model.query.render import (
    Calls,
    RenderedQuery,
    UnsupportedSql,
    render_parts,
    render_statement,
    trial_names,
    whole_text,
)
from penstock.model.script.arguments import OF_SLICE, Argument, declared
from penstock.model.script.at_text import MacroError
from penstock.model.script.file_uris import text_of
from penstock.model.script.script import Script, Setting, Statement, read_script
from penstock.model.script.sources import FUNCTIONS as FILE_FUNCTIONS
from penstock.model.script.sources import (
    FileSource,
    FunctionSource,
    QuerySource,
    TableSource,
    table_read,
)
from penstock.model.time.partition import PartitionSpec
from penstock.model.time.time_macros import TOKEN, TYPES, is_of_interval
from penstock.model.values.asset import Names, TableName, UnknownName
from penstock.model.values.seed import FUNCTION as SEED_FUNCTION
from penstock.sql.dialect import DUCKDB, SPARK
from penstock.sql.identifiers import NAMES as LAKE_FUNCTIONS
from penstock.sql.identifiers import fold, quote_identifier
from penstock.sql.lexer import Lexer
from penstock.sql.macros import Book
from penstock.sql.query.edits import Edit, Mapped, edited
from penstock.sql.query.reading import leading_heads
from penstock.sql.tokens import ARGUMENT, NAME, NOT_CALLED, STRING, WORD, Unclosed, words
from penstock.sql.trust import FUNCTIONS

_FORMS = frozenset({"table", "unnest"})  # that are written like calls in a FROM
_BEFORE_ALIASES = frozenset({"AS", ")", "WITH", "RECURSIVE"})  # ``AS t (a, b)`` calls nothing


@dataclass(frozen=True, slots=True)
class Query:
    """``parts`` are the temporary tables of the setup, then the query (manual: all statements).

    ``sources`` are what it reads, each once, in order of first mention. ``settings`` are
    ``SET spark...`` lines. ``start`` is where the code begins, after what declares the model.
    ``embeds`` are the queries that stand in it under the names of tables: those of EMBEDDED models.
    ``libraries`` are those whose macros it calls.
    """

    source: Source = field(repr=False)
    dialect: str
    names: Names = field(repr=False)
    parts: tuple[Part, ...]
    arguments: tuple[Argument, ...] = ()
    settings: tuple[Setting, ...] = ()
    manual: bool = False
    start: int = 0
    after: tuple[Part, ...] = ()
    embeds: Mapping[TableName, Query] = field(default_factory=dict, repr=False)
    libraries: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The script's code as written: setup statements and query."""
        written = self.source.written
        return (self.source.text if written is None else written.text)[self.start :].strip()

    @property
    def path(self) -> Path:
        return self.source.path

    @property
    def statements(self) -> Query:
        """The statements that follow it, as those of a manual script."""
        return replace(self, parts=self.after, after=(), manual=True)

    @property
    def mentioned(self) -> tuple[QuerySource, ...]:
        """Return what its own text names, each once."""
        return tuple(dict.fromkeys(edit.source for part in self.parts for edit in part.sources))

    @property
    def sources(self) -> tuple[QuerySource, ...]:
        """Return what has to be read: for what it embeds that is what this reads."""
        found: dict[QuerySource, None] = {}
        for source in self.mentioned:
            inner = self.embedded(source)
            found |= dict.fromkeys([source] if inner is None else inner.sources)
        return tuple(found)

    def embedded(self, source: QuerySource) -> Query | None:
        """The query that stands for a source."""
        if isinstance(source, TableSource) and source.at is None:
            return self.embeds.get(source.table)
        return None

    def without_embedded(self, tables: Collection[str]) -> Query:
        """The query that reads these tables themselves; they are full names, folded."""
        kept = {
            table: inner.without_embedded(tables)
            for table, inner in self.embeds.items()
            if str(table).casefold() not in tables
        }
        return replace(self, embeds=kept) if self.embeds else self

    @property
    def tables(self) -> tuple[TableSource, ...]:
        return tuple(source for source in self.sources if isinstance(source, TableSource))

    @property
    def files(self) -> tuple[FileSource, ...]:
        return tuple(source for source in self.sources if isinstance(source, FileSource))

    @property
    def reads(self) -> tuple[TableName, ...]:
        """The managed tables, each once; those whose changes or files it reads are among them."""
        tables = map(table_read, self.sources)
        return tuple(dict.fromkeys(table for table in tables if table is not None))

    @property
    def home(self) -> TableName | None:
        """The lake and the schema of names without one, as a table's; ``None`` if there is none."""
        try:
            return self.names.resolve(("",))
        except UnknownName:
            return None

    @property
    def calls_others(self) -> bool:
        """Return whether it calls functions that Spark does not have: possibly macros."""
        known = (
            FUNCTIONS
            | NOT_CALLED
            | _FORMS
            | LAKE_FUNCTIONS
            | {name.lower() for name in FILE_FUNCTIONS}
        )
        return any(
            after.text == "("
            and name.kind in {NAME, WORD}
            and fold(name.value) not in known
            and before.upper not in _BEFORE_ALIASES
            for tokens in (part.statement.tokens for part in self.parts)
            for before, name, after in zip((*tokens[:1], *tokens), tokens, tokens[1:], strict=False)
        )

    @property
    def lakes(self) -> tuple[str, ...]:
        """The lakes that it needs, each once."""
        functions = [source.lake for source in self.sources if isinstance(source, FunctionSource)]
        macros = [self.home.lake] if self.calls_others and self.home is not None else []
        return tuple(dict.fromkeys([*(table.lake for table in self.reads), *functions, *macros]))

    @property
    def uses_partition(self) -> bool:
        """Return whether ``'{partition}'`` or an argument of the slice stands anywhere in it."""
        tokens = [token for part in self.parts for token in part.statement.tokens]
        return self.uses_interval or any(
            (token.kind == STRING and TOKEN in token.value)
            or (token.kind == ARGUMENT and token.value in OF_SLICE)
            for token in tokens
        )

    @property
    def uses_interval(self) -> bool:
        """Return whether ``@start_...`` or ``@end_...`` stands anywhere in it, or in what it
        embeds.
        """
        inner = (self.embedded(source) for source in self.mentioned)
        return any(is_of_interval(argument.name) for argument in self.arguments) or any(
            query.uses_interval for query in inner if query is not None
        )

    def render(
        self, names: Mapping[QuerySource, str], macros: Callable[[str], Book] | None = None
    ) -> RenderedQuery:
        """The query as text for Spark; ``names`` gives each of ``sources`` a quoted view name.

        In DuckDB's dialect ``macros``, those that a text calls, are expanded; without them the
        catalog is asked where a function is not known. Raises `UnsupportedSql`, and ``KeyError``
        for a source without a name.
        """
        calls = Calls(macros, always=True) if macros else Calls(self._macros)
        named = {source: names[source] for source in self.mentioned if source in names}
        calls_macros = False
        for source in self.mentioned:
            inner = self.embedded(source)
            if inner is not None:
                rendered = inner.render(names, macros)
                named[source] = f"({rendered.sql})"
                calls_macros = calls_macros or rendered.calls_macros
        rendered = render_parts(
            self.source, self.dialect, self.parts, named, self.settings, calls=calls
        )
        return replace(rendered, calls_macros=True) if calls_macros else rendered

    def written(self, names: Mapping[QuerySource, str]) -> RenderedQuery:
        """The query in its own dialect, its macros expanded. Raises `UnsupportedSql`."""
        named = {source: self._written(source, names) for source in self.mentioned}
        step = whole_text(self.source, self.parts, named)
        placed = {name: value for part in self.parts for name, value in part.placeholders.items()}
        return RenderedQuery(step.text, placed, {}, self.source, (step,))

    def _macros(self, text: str) -> Book:
        home = self.home
        if home is None or self.names.macros is None:
            return Book(())
        return self.names.macros(home, self.names.called(home.lake), text)

    def render_statements(self, names: Mapping[QuerySource, str]) -> tuple[RenderedQuery, ...]:
        """Each statement on its own, in order and in the script's dialect.

        Raises `UnsupportedSql` where it embeds a query that cannot be had in that.
        """
        named = {source: self._written(source, names) for source in self.mentioned}
        return tuple(
            render_statement(self.source, part, named, self.settings) for part in self.parts
        )

    def _written(self, source: QuerySource, names: Mapping[QuerySource, str]) -> str:
        """Return what stands for a source in the script's own dialect."""
        inner = self.embedded(source)
        if inner is None:
            return names[source]
        if self.dialect == SPARK:
            return f"({inner.render(names).sql})"
        if inner.dialect == self.dialect:
            return f"({inner.render_statements(names)[-1].sql})"
        edits = (edit for part in self.parts for edit in part.sources)
        at = next(edit.start for edit in edits if edit.source == source)
        raise UnsupportedSql(f"{inner.path.name} is in another dialect than what embeds it", at)


@dataclass(frozen=True, slots=True)
class ScriptKind:
    """Facts of a declaration about the script behind it.

    ``start`` is where its code begins, ``partition`` what its slices are, if it has some;
    ``by_time``: it has the times of an interval. ``manual``: all of it are statements, else the
    query is the last one unless it ``takes_statements`` behind that. ``settings`` are those that it
    has besides its own. ``placed`` is where the kind SEED is said, whose query is made of that.
    ``names_casts``: a cast of a column without an alias is a column of that name, as in SQLMesh.
    """

    start: int = 0
    partition: PartitionSpec | None = None
    by_time: bool = False
    manual: bool = False
    takes_statements: bool = False
    settings: tuple[Setting, ...] = ()
    placed: Location | None = None
    names_casts: bool = False


_ANY = ScriptKind()


def read_query(
    text: str,
    path: Path,
    *,
    names: Names,
    dialect: str = SPARK,
    kind: ScriptKind = _ANY,
    translates: bool = True,
    macros: ScriptMacros | None = None,
    lexer: Lexer | None = None,
) -> tuple[Query | None, tuple[Diagnostic, ...]]:
    """The query of the script ``text``, with all findings.

    ``None`` when a finding is an error: with ``translates`` also what Spark has no form of.
    """
    arguments, findings = declared(text, path, partition=kind.partition, by_time=kind.by_time)
    written = Source(path, text)
    try:
        source, libraries, commas = _expanded(written, kind, dialect, macros or ScriptMacros())
    except _Misused as error:
        return None, (*findings, error.finding)
    source = replace(source, placed=kind.placed)
    script = read_script(
        source,
        names,
        start=kind.start,
        dialect=dialect,
        manual=kind.manual,
        takes_statements=kind.takes_statements,
    )
    times = [Argument(name, of, automatic=True) for name, of in TYPES.items()]
    by_name = {argument.name: argument for argument in (*arguments, *times)}
    dated = kind.partition is not None
    scope = Scope(source, script.names, dialect, by_name, dated, lexer=lexer or Lexer())
    parts, found = _read_parts(script, scope)
    query = _query(script, scope, parts, (*arguments, *_used(times, parts)), kind)
    query = replace(query, libraries=libraries)
    findings = (*findings, *commas)
    found = [*findings, *script.findings, *found, *(() if kind.placed else _seeds(query))]
    if translates and not _has_error(found):
        found += [*_without_bucket(query), *_try(query)]
    return (None if _has_error(found) else query), tuple(found)


def _query(
    script: Script,
    scope: Scope,
    parts: tuple[Part, ...],
    arguments: tuple[Argument, ...],
    kind: ScriptKind,
) -> Query:
    """The query of a script that was read in parts."""
    count = len(parts) - len(script.after)
    return Query(
        scope.source,
        scope.dialect,
        script.names,
        parts[:count],
        arguments,
        (*kind.settings, *script.settings),
        kind.manual,
        kind.start,
        parts[count:],
    )


def _read_parts(script: Script, scope: Scope) -> tuple[tuple[Part, ...], list[Diagnostic]]:
    """The temporary tables, the query, and the statements behind it, in their order."""
    parts: list[Part] = []
    found: list[Diagnostic] = []
    named: list[tuple[str | None, Statement]] = [(t.name, t.query) for t in script.temporaries]
    named += [(None, statement) for statement in (*script.statements, *script.after)]
    for name, statement in named:
        part, findings = read_part(statement, scope, name)
        parts.append(part)
        found += findings
        if name is not None:
            scope = replace(scope, hidden=scope.hidden | {name.casefold()})
    return tuple(parts), found


def _seeds(query: Query) -> Iterator[Diagnostic]:
    """Calls of the function that the kind SEED alone has."""
    for source in query.files:
        if source.function == SEED_FUNCTION:
            message = f"{SEED_FUNCTION} is what a model of the kind SEED makes of its file"
            where = source.location or query.source.location(query.start)
            hint = "write read_csv('path'), or a MODEL of the kind SEED and read its table"
            yield Diagnostic("error", message, where, hint, "file")


def _without_bucket(query: Query) -> Iterator[Diagnostic]:
    """Files in S3 whose text has nothing where the bucket stands."""
    for source in query.files:
        path = text_of(source.path)
        if path.startswith(("s3:///", "s3a:///")):
            where = source.location or query.source.location(query.start)
            hint = f"write s3://bucket/{path.partition(':///')[2]}"
            yield Diagnostic("error", f"{path} names no bucket", where, hint, "file")


class _Misused(Exception):
    """A macro or a variable that cannot be expanded."""

    def __init__(self, error: MacroError, source: Source) -> None:
        where = source.location(error.at)
        self.finding = Diagnostic("error", str(error), where, error.hint, "macro")


def _expanded(
    script: Source, kind: ScriptKind, dialect: str, macros: ScriptMacros
) -> tuple[Source, tuple[str, ...], tuple[Diagnostic, ...]]:
    """The script with nothing left of its macros and variables, the libraries it calls, and what
    was left out of its text.
    """
    source, text, start = script, script.text, kind.start
    steps: tuple[Mapped, ...] = ()
    commas: tuple[Diagnostic, ...] = ()
    try:
        at = expand(text, start, dialect, macros.at)
        if at is not None:
            steps, text = (at,), at.text
        source = _source(script, text, dialect, steps)
        if edits := list(_trailing_commas(text, start, dialect)):
            commas = (_left_out(source, edits[0].start),)
        elif kind.names_casts and dialect == DUCKDB:
            edits = list(_cast_aliases(text, start))
        if edits:
            steps = (*steps, edited(text, edits))
            source = _source(script, steps[-1].text, dialect, steps)
        calls = expand_calls(source.text, start, dialect, macros, manual=kind.manual)
    except MacroError as error:
        raise _Misused(error, source) from None
    if calls is None:
        return source, (), commas
    written = Written(script.text, (*steps, calls.mapped), calls.bodies)
    return replace(source, text=calls.mapped.text, written=written), calls.libraries, commas


def _source(script: Source, text: str, dialect: str, steps: tuple[Mapped, ...]) -> Source:
    if not steps:
        return Source.of(script.path, text, dialect)
    return Source.of(script.path, text, dialect, Written(script.text, steps))


def _cast_aliases(text: str, start: int) -> Iterator[Edit]:
    if "::" not in text and "cast" not in text.lower():
        return
    # Late: a script without casts needs no parser here.
    from penstock.sql.duckdb.text import cast_aliases

    with suppress(Unclosed):  # which reading the query reports
        yield from cast_aliases(text, start)


_COMMA_FROM = re.compile(r",(?:\s|--[^\n]*\n|/\*.*?\*/)*from\b", re.IGNORECASE | re.DOTALL)


def _trailing_commas(text: str, start: int, dialect: str) -> Iterator[Edit]:
    """Commas between the last column and FROM, which SQLMesh and DuckDB allow, and Spark does not.

    A comma before a column that is called from stays: what follows that is no table.
    """
    if dialect != SPARK or not _COMMA_FROM.search(text, start):
        return
    try:
        tokens = words(text, dialect, start)
    except Unclosed:  # which reading the query reports
        return
    for comma, word, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        is_table = after.kind in (WORD, NAME) and after.upper not in ("AS", "FROM")
        if comma.text == "," and word.upper == "FROM" and (is_table or after.text == "("):
            yield Edit(comma.start, comma.end, "")


def _left_out(source: Source, at: int) -> Diagnostic:
    message = "Spark allows no comma before FROM; Penstock leaves it out"
    hint = "remove the comma behind the last column"
    return Diagnostic("warning", message, source.location(at), hint, "trailing-comma")


def _used(arguments: Sequence[Argument], parts: Sequence[Part]) -> Iterator[Argument]:
    """Return those that stand in the statements."""
    tokens = (token for part in parts for token in part.statement.tokens)
    names = {token.value for token in tokens if token.kind == ARGUMENT}
    return (argument for argument in arguments if argument.name in names)


def _has_error(findings: list[Diagnostic]) -> bool:
    return any(finding.severity == "error" for finding in findings)


def _try(query: Query) -> list[Diagnostic]:
    """Report what cannot be translated from another dialect, before anything runs."""
    if query.dialect == SPARK or query.manual or not query.parts:
        return []
    try:
        query.render(trial_names(query.sources))
    except UnsupportedSql as error:
        where = query.source.location(error.offset)
        hint = "write that part in another way, or the query in Spark's SQL"
        return [Diagnostic("error", str(error), where, hint, "unsupported-sql")]
    return []


def of_cte(query: Query, name: str) -> Query | None:
    """Return the query that stops at one of its common table expressions.

    Args:
        query: The query of a script.
        name: A temporary table of the script, or a table that its WITH names.

    Returns:
        The query of those rows alone; None where it has none of that name.
    """
    body = query.parts[-1]
    tokens = body.statement.tokens
    start = tokens[0].start
    if fold(name) not in {fold(part.name or "") for part in query.parts[:-1]}:
        heads = leading_heads(tokens)
        if fold(name) not in {head.name for head in heads}:
            return None
        start = tokens[heads[-1].closing + 1].start
    mark = "`" if query.dialect == SPARK else '"'
    select = Edit(start, tokens[-1].end, f"SELECT * FROM {quote_identifier(name, mark=mark)}")
    sources = tuple(source for source in body.sources if source.end <= start)
    edits = (*(edit for edit in body.edits if edit.end <= start), select)
    return replace(query, parts=(*query.parts[:-1], replace(body, sources=sources, edits=edits)))
