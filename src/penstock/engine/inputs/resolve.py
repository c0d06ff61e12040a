"""A script's query as a DataFrame: its sources as views, its values bound, its errors placed."""

from __future__ import annotations

import contextlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

from penstock.destinations.values import Rows
from penstock.engine.inputs.asof import AsofNotice, with_asof
from penstock.engine.inputs.file_reader import existing, files, without_option
from penstock.engine.inputs.pinned_tables import Beginning, Pins
from penstock.engine.inputs.seed_file import seed_file
from penstock.errors import (
    ArgumentError,
    LakeError,
    Location,
    PenstockError,
    QueryFailed,
    UnsupportedFeature,
)
from penstock.lakes.queries.resolver import Resolver
from penstock.lakes.queries.running import rewritten
from penstock.lazy import exp
from penstock.model.asof.asof import ASOF_SETTING, plain
from penstock.model.query.query import Query
from penstock.model.query.render import RenderedQuery, UnsupportedSql
from penstock.model.script.constants import Bindings
from penstock.model.script.file_uris import path_of
from penstock.model.script.sources import (
    FileSource,
    FunctionSource,
    QuerySource,
    TableSource,
    TimeTravel,
)
from penstock.model.slicing.slice_condition import NotJoint
from penstock.model.values.seed import FUNCTION
from penstock.spark.failures import explained, innermost
from penstock.spark.functions import run_sql
from penstock.spark.session import is_connect, session_zone
from penstock.sql.dialect import name_hint
from penstock.sql.identifiers import quote_identifier
from penstock.sql.predicate import of_query
from penstock.sql.tables import Analysis, analyse
from penstock.sql.text import Or, Predicate, Unreadable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


BY_HASH = "shuffle_hash"  # Spark's hint; without effect on a table that is not joined
# Sources of rows that are not in any table, perhaps many.
_MORE = (exp.Explode, exp.Posexplode, exp.Inline, exp.Lateral, exp.Unnest)
_HALVES = frozenset({"SEMI", "ANTI", "CROSS"})
_CONDITIONS = re.compile(r"\b(WHERE|ON)\b", re.IGNORECASE)


def query_start(query: Query) -> Location:
    """Return where the SELECT begins: for what no nearer place is known."""
    return query.source.location(query.parts[-1].statement.start)


class Read(Protocol):
    """Files of one source of a query."""

    def read(self, session: SparkSession) -> DataFrame: ...

    def notices(self) -> Iterable[str]: ...

    def blamed(self, error: PenstockError) -> QueryFailed | None:
        """Return Spark's error about one of the files in the user's words; None for others."""
        ...


FilesRead = Mapping[FileSource, Read]
Shape = Callable[[RenderedQuery, Mapping[QuerySource, str]], str]


class Views:
    """The temporary views of one step, under names that no other step uses.

    As a context it drops them at its end, or has ``later`` drop them: Spark looks through its cache
    for each view that it drops, some 4 ms, and no step needs to wait for that. What outlives the
    context may ``keep`` them: DataFrames of Spark Connect, whose views are gone with their session.
    """

    def __init__(
        self, session: SparkSession, later: Executor | None = None, *, keep: bool = False
    ) -> None:
        self._keep = keep
        self._session = session
        self._later = later
        self._prefix = f"penstock_{uuid4().hex[:12]}"
        self._names: list[str] = []

    def name(self) -> str:
        """A name for a view that `put` makes later."""
        self._names.append(f"{self._prefix}_{len(self._names)}")
        return self._names[-1]

    def put(self, name: str, df: DataFrame) -> None:
        """Make the view of a name from `name`."""
        df.createOrReplaceTempView(name)

    def __enter__(self) -> Views:
        return self

    def __exit__(self, *_: object) -> None:
        names, self._names = self._names, []
        if self._keep:
            return
        if self._later is None:
            self._drop(names)
        else:
            self._later.submit(self._drop, names)

    def _drop(self, names: Sequence[str]) -> None:
        # A view that stays does no harm, and an error on the way out would hide the one before it.
        with contextlib.suppress(Exception):
            for name in names:
                self._session.catalog.dropTempView(name)


@dataclass(frozen=True, slots=True)
class Resolved:
    """A query's DataFrame, and what is needed to place its later errors.

    ``one_task``: each table that it reads is read in one. ``asof`` says what is worth knowing of
    its ASOF JOINs.
    """

    df: DataFrame
    rendered: RenderedQuery
    names: Mapping[str, str]  # view -> what the user calls it
    start: Location
    one_task: bool = False
    files: FilesRead = field(default_factory=dict)
    asof: tuple[AsofNotice, ...] = ()

    def notices(self) -> Iterator[str]:
        """Yield what is worth knowing of its ASOF JOINs, and of the files that it reads."""
        for said in self.asof:
            yield f"line {said.location.line}: {said.message}"
        for read in self.files.values():
            yield from read.notices()

    def placed(self, error: PenstockError) -> PenstockError:
        """The error at its place in the script, in the user's names; of a bad input file, its."""
        for source, read in self.files.items():
            blamed = read.blamed(error)
            if blamed is not None:
                blamed.location = source.location
                return blamed
        return place(error, self.rendered, self.names) if isinstance(error, QueryFailed) else error


@dataclass(frozen=True, slots=True)
class Reader:
    """Settings for reading the sources of queries: tables are as ``pins`` have them, files below
    ``root``.
    """

    pins: Pins
    session: SparkSession
    views: Views
    root: Path


def resolve(
    query: Query,
    bindings: Bindings,
    reader: Reader,
    *,
    args: Mapping[str, Any] = MappingProxyType({}),
    beginning: Beginning | None = None,
    given: Mapping[QuerySource, DataFrame] = MappingProxyType({}),
    own_files: FilesRead = MappingProxyType({}),
    shape: Shape | None = None,
) -> Resolved:
    """Analyse the query; nothing runs yet (but the inference of a file's types).

    ``args`` are values of ``:name`` markers besides those of ``bindings``, ``beginning`` is a table
    that reads as empty, ``given`` are rows to read in place of sources, ``own_files`` files to read
    in place of those that a call names. ``shape`` makes the text of a query for many slices.

    Raises QueryFailed, NotFound, ArgumentError, each placed; NotJoint for macros in such a text.
    """
    session, views = reader.session, reader.views
    view_names = {source: views.name() for source in query.sources}
    rendered, macros = render(query, quoted(view_names), reader.pins)
    if shape is not None:
        rendered = _shaped(rendered, shape, view_names, calls=macros is not None)
    values = {**args, **rendered.args(bindings)}
    analysis = analysed(rendered) if query.tables else None
    filters = predicates(analysis, view_names, values, session_zone(session)) if analysis else {}
    empty = beginning.source_in(query.sources) if beginning else None
    inputs: dict[FileSource, Read] = {
        source: own_files.get(source) or files_of(source, query, bindings, reader.root)
        for source in query.files
        if source not in given
    }
    rows = {
        source: _read(source, inputs, bindings, reader, given, file_filter=filters.get(source))
        for source in query.sources
        if source != empty
    }
    one_task = all(read.one_task for read in rows.values())
    by_hash = one_task and analysis is not None and are_by_equality(analysis.tree)
    _put_views(rows, view_names, views, by_hash=by_hash)
    names = {view: called(source, bindings) for source, view in view_names.items()}
    in_spark = _SparkAnalysis(session, rendered, names, macros, values)
    if beginning is None or empty is None:
        df = in_spark.run()
    else:
        with _located(empty.location):
            df = beginning.query(rendered.sql, view_names[empty], session, views.put, in_spark.run)
    start, one_task = query_start(query), one_task and macros is None
    return Resolved(df, in_spark.rendered, names, start, one_task, inputs, in_spark.asof)


def _shaped(
    rendered: RenderedQuery, shape: Shape, names: Mapping[QuerySource, str], *, calls: bool
) -> RenderedQuery:
    if calls:
        raise NotJoint("it calls macros")
    return replace(rendered, sql=shape(rendered, names))


@contextlib.contextmanager
def _located(location: Location | None) -> Iterator[None]:
    """Failed queries inside are placed there unless they say more."""
    try:
        yield
    except QueryFailed as error:
        error.location = error.location or location
        raise


def _put_views(
    rows: Mapping[QuerySource, Rows],
    names: Mapping[QuerySource, str],
    views: Views,
    *,
    by_hash: bool,
) -> None:
    """Have each source's rows under its name; those that are joined, with the hint for it."""
    for number, (source, read) in enumerate(rows.items()):
        # A hint on one side of a join will do, and the first table is joined with another.
        views.put(names[source], read.df.hint(BY_HASH) if by_hash and number else read.df)


@dataclass(slots=True)
class _SparkAnalysis:
    """The query over its views, the keys of ``names``, as Spark reads it.

    ``rendered`` and ``asof`` are of the last `run`: a table that begins is analysed several times.
    """

    session: SparkSession
    rendered: RenderedQuery
    names: Mapping[str, str]
    macros: Resolver | None
    values: Mapping[str, Any]
    asof: tuple[AsofNotice, ...] = ()
    _as_written: RenderedQuery | None = None

    def run(self) -> DataFrame:
        """The rows; errors are placed in the script."""
        written = self._as_written = self._as_written or self.rendered
        self.rendered, self.asof = written, ()
        if ASOF_SETTING in written.settings:
            macros = self.macros is not None
            self.rendered, self.asof = with_asof(
                self.session, written, self.values, calls_macros=macros
            )
        try:
            with explained():
                rows = self._rows()
                if is_connect(self.session):
                    rows.schema  # noqa: B018 - analysed here, as in a session of the process
                return rows
        except (QueryFailed, UnsupportedFeature) as error:
            raise place(error, self.rendered, self.names) from error.__cause__

    def _rows(self) -> DataFrame:
        values, sql = dict(self.values), self.rendered.sql
        if self.macros is None:
            return run_sql(self.session, sql, args=values)
        frames = {view: self.session.table(view) for view in self.names}
        whole = rewritten(self.session, sql, self.macros, views=frames)
        return run_sql(self.session, whole.text, values, whole.frames)


def render(
    query: Query, names: Mapping[QuerySource, str], pins: Pins
) -> tuple[RenderedQuery, Resolver | None]:
    """The query's text, and the resolver of names in the macros that it calls; ``None`` where it
    calls none. Those of DuckDB's dialect are expanded in the text.

    Macros without a lake's name are those of the lake that tables without one belong to. Raises
    UnsupportedFeature, at its place, for a call that is of no macro any more.
    """
    home = query.home
    if home is None or home.lake not in pins.versions:
        return query.render(names), None
    resolver = pins.names(home.lake, home.schema, query.names.called(home.lake))
    if query.dialect == "spark":
        rendered = query.render(names)
        return rendered, resolver if resolver.book(rendered.sql).macros else None
    try:
        rendered = query.render(names, lambda sql: resolver.book(sql, query.dialect))
    except UnsupportedSql as error:
        place_ = query.source.location(error.offset)
        raise UnsupportedFeature(str(error), location=place_) from None
    return rendered, replace(resolver, has_no_calls=True) if rendered.calls_macros else None


def analysed(rendered: RenderedQuery) -> Analysis | None:
    """The query parsed again, where it may have conditions and can be parsed."""
    if _CONDITIONS.search(rendered.sql) is None:
        return None
    try:
        return analyse(plain(rendered.sql))
    except (Unreadable, PenstockError):
        return None


def predicates(
    analysis: Analysis | None,
    views: Mapping[QuerySource, str],
    args: Mapping[str, Any],
    zone: str,
) -> dict[QuerySource, Predicate]:
    """The file filter of each source that has one; ``views`` are the names of sources in the query.

    ``args`` are the values of the text's markers, ``zone`` the session's time zone. A source that
    the query names more than once is read once, for all its places. Never fails.
    """
    if analysis is None:
        return {}
    text = analysis.text
    nodes = defaultdict(list)
    for table in analysis.tables:
        nodes[table.name].append(table.node)
    filters: dict[QuerySource, Predicate] = {}
    for source, view in views.items():
        if text.count(f"`{view}`") == len(nodes[view]):  # no place was overlooked
            filters[source] = _any_of(
                [of_query(text, node, zone=zone, args=args) for node in nodes[view]], zone
            )
    return filters


def _any_of(places: list[Predicate], zone: str) -> Predicate:
    """The predicate of rows that match at one of the places, or more."""
    if len(places) == 1:
        return places[0]
    known = [place.condition for place in places if place.condition is not None]
    parts = tuple(dict.fromkeys(part for place in places for part in (*place.used, *place.unused)))
    if not known or len(known) < len(places):
        return Predicate(None, zone, unused=parts)
    used = tuple(" AND ".join(place.used) for place in places)
    unused = tuple(part for place in places for part in place.unused)
    return Predicate(Or(tuple(known)), zone, (" OR ".join(f"({part})" for part in used),), unused)


def are_by_equality(tree: exp.Expr) -> bool:
    """Return whether all joins of a query, one or more, are explicit equi-joins of tables and
    subqueries.

    Spark broadcasts the smaller side of a join: a job, and another plan after it. Where each side
    is one task there is nothing to broadcast, and a hash join needs neither; it has to be requested
    by a hint, as Spark decides by sizes alone. Spark warns of a hint that it cannot follow, so what
    is not certain has none.
    """
    joins = list(tree.find_all(exp.Join))
    return bool(joins) and all(map(_is_by_equality, joins)) and not any(map(_is_other, tree.walk()))


def _is_by_equality(join: exp.Join) -> bool:
    if (
        join.kind in _HALVES
        or join.method == "ASOF"
        or not isinstance(join.this, exp.Table | exp.Subquery)
    ):
        return False
    on = join.args.get("on")
    whole = None if on is None else on.unnest()
    parts = whole.flatten() if isinstance(whole, exp.And) else (whole,)
    return bool(join.args.get("using")) or any(isinstance(part, exp.EQ) for part in parts)


def _is_other(node: Any) -> bool:
    """A join in another form, rows from elsewhere than a table, or a hint of the user."""
    if isinstance(node, exp.In):
        return node.args.get("query") is not None
    if isinstance(node, exp.Table):
        return not isinstance(node.this, exp.Identifier)
    if isinstance(node, exp.With):
        return bool(node.args.get("recursive"))
    return isinstance(node, (*_MORE, exp.Exists, exp.Hint))


def quoted(named: Mapping[QuerySource, str]) -> dict[QuerySource, str]:
    """Names as they are written in the query."""
    return {source: quote_identifier(view, mark="`") for source, view in named.items()}


def read_source(
    source: QuerySource,
    query: Query,
    bindings: Bindings,
    pins: Pins,
    *,
    session: SparkSession,
    root: Path,
) -> Rows:
    """The rows of one source of a query, on its own."""
    inputs: dict[FileSource, Read] = {}
    if isinstance(source, FileSource):
        inputs[source] = files_of(source, query, bindings, root)
    return _read(source, inputs, bindings, Reader(pins, session, Views(session), root))


def _read(
    source: QuerySource,
    inputs: FilesRead,
    bindings: Bindings,
    reader: Reader,
    given: Mapping[QuerySource, DataFrame] = MappingProxyType({}),
    *,
    file_filter: Predicate | None = None,
) -> Rows:
    if source in given:
        return Rows(given[source])
    session, pins = reader.session, reader.pins
    try:
        with explained():
            if isinstance(source, FileSource):
                return Rows(inputs[source].read(session))
            if isinstance(source, FunctionSource):
                return pins.call(source, bindings)
            if source.at is None:
                return pins.read(source.table, file_filter)
            return pins.read_at(source.table, moment(source.at, bindings), file_filter)
    except (ArgumentError, LakeError, QueryFailed) as error:
        blamed = inputs[source].blamed(error) if isinstance(source, FileSource) else None
        if blamed is not None:
            blamed.location = source.location
            raise blamed from error.__cause__
        error.location = error.location or source.location
        raise


def files_of(source: FileSource, query: Query, bindings: Bindings, root: Path) -> Read:
    """Find the files that a query reads. Raises what is wrong with the call, or its files."""
    options = {name: value.evaluate(bindings) for name, value in source.options}
    path = path_of(source, bindings, query.arguments)
    if source.function == FUNCTION:
        return seed_file(str(path), options, root=root, location=source.location)
    options, may_miss = without_option(options, source.location)
    if may_miss:
        present = existing(source, path, options, root)
        if not isinstance(present, list):
            return present
        path = present
    return call_files(source, path, options, root)


def call_files(source: FileSource, path: object, options: Mapping[str, Any], root: Path) -> Read:
    """Find the files of a call at another path than it says, as it reads them."""
    return files(source.function, path, options, root=root, location=source.location)


def moment(at: TimeTravel, bindings: Bindings) -> dict[str, Any]:
    """A version, or a time; one without a zone is in UTC, as the session is."""
    value = at.value.evaluate(bindings)
    try:
        if at.kind == "version":
            return {"version": int(str(value))}
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        raise ArgumentError(f"{value!r} is not a {at.kind} to read a table at") from None
    return {"timestamp": moment if moment.tzinfo else moment.replace(tzinfo=UTC)}


def called(source: QuerySource, bindings: Bindings) -> str:
    if isinstance(source, TableSource):
        return str(source.table)
    if isinstance(source, FunctionSource):
        return f"{source.lake}.{source.function}"
    return f"{source.function}({source.path.evaluate(bindings)!r})"


def place(error: PenstockError, rendered: RenderedQuery, names: Mapping[str, str]) -> QueryFailed:
    """The error at its place in the user's file, in the user's names."""
    message = error.message
    if str(error.data.get("condition")).startswith("FAILED_READ_FILE") and innermost(error):
        message += f": {innermost(error)}"
    for view, name in names.items():
        message = message.replace(f"`{view}`", name).replace(view, name)
    line, position = _position(error.data, rendered.sql)
    location = error.location or rendered.locate(line, position)
    hint = name_hint(error, rendered.source.quoted) or error.hint
    return QueryFailed(message, hint=hint, location=location, data=error.data)


def _position(data: Mapping[str, Any], sql: str) -> tuple[int, int]:
    """Line (from 1) and position (from 0) in ``sql``; its start when Spark does not say."""
    start, fragment = data.get("start"), data.get("fragment") or ""
    if start is not None and sql.startswith(fragment, start):
        before = sql[:start]
        return before.count("\n") + 1, start - (before.rfind("\n") + 1)
    if "line" in data and "start" not in data:
        return data["line"], data["column"] - 1
    return 1, 0
