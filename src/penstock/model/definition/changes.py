"""Models that read what is new in their input, and those whose input is a change feed.

The former have ``incremental changes`` or ``incremental files``.

A merge or an append whose query is row by row over one table (`sql.determinism`) makes the same
table from the rows that changed as from all of them. Other queries run whole, and it is said why.

A merge or an append that reads files by one call reads those that it has not seen, and its query is
of their rows alone. A merge of a change feed has ``sequence`` and ``deletes``.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.errors import Diagnostic, PenstockError
from penstock.model.query.query import Query
from penstock.model.query.render import UnsupportedSql, trial_names
from penstock.model.script.constants import misread_condition
from penstock.model.script.declaration import Declaration
from penstock.model.script.file_uris import text_of
from penstock.model.script.sources import TableSource
from penstock.model.values.asset import Names
from penstock.sql.determinism import why_not
from penstock.sql.identifiers import fold
from penstock.sql.tables import analyse
from penstock.sql.text import Unreadable


def check_incremental(declaration: Declaration, query: Query | None) -> Iterator[Diagnostic]:
    """Check what ``incremental changes`` and ``incremental files`` go with.

    Args:
        declaration: What the script declares.
        query: Its query, if it has one that can be read.

    Yields:
        Diagnostic: What cannot go with them, and a warning where every run is whole.
    """
    if declaration.reads_files:
        yield from _of_files(declaration, query)
    if not declaration.reads_changes:
        return
    where = declaration.place("incremental")
    hint = "take `incremental changes` away"
    if not declaration.strategy.reads_changes:
        message = f"only a merge or an append can read changes, and this is {declaration.strategy}"
        yield Diagnostic("error", message, where, hint, "incremental-strategy")
    elif declaration.partition is not None:
        message = "a slice is made of all rows of its partition, so it cannot read changes"
        yield Diagnostic("error", message, where, hint, "incremental-partitioned")
    elif declaration.upsert.has_rules:
        message = "what when_matched and merge_filter do may depend on rows that did not change"
        yield Diagnostic("error", message, where, hint, "incremental-rules")
    elif query is not None:
        why = why_whole(query, declaration)
        if why is not None:
            message = f"every run reads its input whole: {why}"
            yield Diagnostic("warning", message, where, hint, "incremental-whole")


def _of_files(declaration: Declaration, query: Query | None) -> Iterator[Diagnostic]:
    """Yield what cannot go with ``incremental files``."""
    message, rule = None, "incremental-files"
    by_time = declaration.time_range is not None and query is not None and query.uses_interval
    if not declaration.strategy.reads_changes:
        message = (
            f"only a merge or an append can read new files, and this is {declaration.strategy}"
        )
        rule = "incremental-strategy"
    elif declaration.partition is not None or by_time:
        message, rule = "a slice is made of all files of it, new or not", "incremental-partitioned"
    elif query is not None and len(query.files) != 1:
        message = f"its query reads files by {len(query.files)} calls, and it takes one"
    elif query is not None and "://" in text_of(query.files[0].path):
        message = "only files of this machine are known by name, size and time"
    if message is not None:
        hint = "take `incremental files` away"
        yield Diagnostic("error", message, declaration.place("incremental"), hint, rule)


def changing_source(query: Query) -> TableSource | None:
    """The one table that it reads as it is now."""
    if len(query.sources) != 1:
        return None
    (source,) = query.sources
    return source if isinstance(source, TableSource) and source.at is None else None


def why_whole(query: Query, declaration: Declaration) -> str | None:
    """Return why it cannot be run over changed rows alone; ``None`` where it can."""
    source = changing_source(query)
    if source is None:
        read = len(query.sources)
        return f"it reads {read} tables or files" if read != 1 else "it reads no table as it is now"
    if source.table == declaration.target:
        return "it reads the table that it makes"
    try:
        rendered = query.render(trial_names(query.sources))
        return why_not(analyse(rendered.sql))
    except (UnsupportedSql, Unreadable, PenstockError) as error:
        return f"its query is not understood ({error})"


def check_change_feed(declaration: Declaration, names: Names) -> Iterator[Diagnostic]:
    """Check whether the rows can be merged as the events of a change feed.

    Args:
        declaration: What the script declares.
        names: The lakes and roots of the project.

    Yields:
        Diagnostic: Why they cannot.
    """
    upsert = declaration.upsert
    place = declaration.place("sequence" if upsert.sequence is not None else "deletes")
    for message, hint in _problems_of_feed(declaration, names):
        yield Diagnostic("error", message, place, hint, "sequence")


def _problems_of_feed(declaration: Declaration, names: Names) -> Iterator[tuple[str, str]]:
    upsert = declaration.upsert
    if upsert.sequence is None:
        yield (
            "`deletes` needs `sequence`, the column that orders the events of a key",
            ("write sequence with the name of the column"),
        )
        return
    if fold(upsert.sequence) in map(fold, declaration.keys):
        yield (
            f"`sequence` orders the events of a key, and {upsert.sequence} is one",
            ("name another column"),
        )
    if upsert.has_rules:
        yield (
            "`sequence` says which rows match, so `when_matched` and `merge_filter` cannot",
            ("leave one of them"),
        )
    if declaration.key_expressions:
        yield (
            "`sequence` needs keys that are columns: tombstones have these columns",
            ("compute the key in the query, and name its column"),
        )
    if declaration.partition is not None:
        yield (
            "a change feed makes one table of its events, and `partitioned` one of each slice",
            ("take `partitioned` away; filter the feed by @start_dt and @end_dt for slices of it"),
        )
    if declaration.target.lake in names.roots:
        yield (
            "a commit of Delta changes one table, and not that of the tombstones",
            ("make the table in a lake"),
        )
    problem = upsert.deletes and misread_condition(upsert.deletes, declaration.dialect)
    if problem:
        yield f"`deletes`: {problem.message}", "write a condition of columns, such as op = 'D'"
