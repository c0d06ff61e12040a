"""Choose what a step reads of its input: all of it, or what is new since the slice was made.

Choose what a step reads of its input: all rows, or those that changed since the slice was made.

Where a model says ``incremental changes``, the slice's record has the snapshot up to which changes
of the input are in it, recorded in the transaction of the data. The rows that changed since are
read by the table's change feed, each once, as it is now. Rows that were removed stay in the model's
table, as they do when a merge or an append reads everything.

A merge whose input has a key twice is refused, in a run over everything and in one over changes: of
the keys that changed, the second looks up whether rows that did not change have them too.

Choose the files that a run reads where the model says ``incremental files``: those not seen yet.

The slice's record names all files that are in the table's rows, with size, time and, of small ones,
a hash of the content; it is written in the transaction of the rows. A file is seen when it is as
that says, or has the same content. One that has changed since is read again by a merge; an append
would have its rows twice, so it leaves the file, and says so. Rows of files that are gone stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.destinations.values import Table
from penstock.engine.inputs.file_reader import NoFiles, no_files
from penstock.engine.inputs.pinned_tables import Pins, table_name
from penstock.engine.inputs.resolve import FilesRead, Read, call_files
from penstock.engine.planning.files_read import file_read, hash_of, paths_of
from penstock.engine.state.reading import read
from penstock.engine.state.records import InputRead, ReadRecord, SliceRecord
from penstock.engine.strategies.upsert import keys_of
from penstock.errors import DefinitionChanged, NotFound, QueryFailed
from penstock.lakes.limits import Limits
from penstock.lakes.reading.conversions.spark_types import schema_of
from penstock.lakes.rows.merge_source import Source, check_keys, count
from penstock.model.definition.changes import changing_source, why_whole
from penstock.model.definition.model import Model
from penstock.model.script.sources import QuerySource, TableSource
from penstock.spark.failures import explained

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.destinations.catalog import Catalog
    from penstock.engine.running.attempt import Attempt
    from penstock.model.script.constants import Bindings
    from penstock.model.script.sources import FileSource


@dataclass(frozen=True, slots=True)
class Reading:
    """``given`` are the rows to read in place of the input's; none where all are read.

    ``inputs`` is what to record with the slice; ``said`` is worth a notice.
    """

    given: Mapping[QuerySource, DataFrame] = field(default_factory=dict)
    inputs: Mapping[str, int] | None = None
    said: str | None = None


def reading_of(model: Model, known: SliceRecord | None, pins: Pins) -> Reading:
    """Of a model that reads changes; ``known`` is the record of the slice that is there.
    Raises DefinitionChanged.

    An append that has run before cannot read everything: its rows would be there twice.
    """
    why = why_whole(model.query, model)
    source = changing_source(model.query)
    if why is not None or source is None:
        return Reading(said=f"reads its input whole: {why}")
    table = pins.require(source.table, {})
    if table is None:
        return Reading(said=f"reads its input whole: {source.table} is a view")
    now, name = pins.versions[source.table.lake], str(source.table)
    inputs = {name: now}
    if known is None:
        return Reading(inputs=inputs)
    catalog = pins.lakes[source.table.lake].catalog
    since = (known.inputs or {}).get(name)
    why = _why_not(model, known, catalog, table, since)
    if known.rolled_back is not None:
        why = f"{model.target} was rolled back since it was read"
    if why is None and since is not None:
        try:
            return _changes(model, source, pins, (since, now), inputs)
        except NotFound:
            why = f"snapshot {since + 1} of {name} has expired"
    if model.strategy.only_adds:
        raise DefinitionChanged(
            f"{model.target} cannot tell which rows of {name} are new: {why}",
            hint=f"rebuild it from all of them: `penstock run {model.name} --full-refresh`; or "
            "take `incremental changes` away",
            location=model.place("incremental"),
            data={"table": model.target.qualified},
        )
    return Reading(inputs=inputs, said=f"reads {name} whole: {why}")


def _changes(
    model: Model,
    source: TableSource,
    pins: Pins,
    between: tuple[int, int],
    inputs: Mapping[str, int],
) -> Reading:
    """The rows that changed after the first snapshot, up to the second."""
    since, now = between
    table = pins.lakes[source.table.lake].table(table_name(source.table))
    only_new, said = model.strategy.only_adds, None
    rows = table.changed_rows(since, now, only_new=only_new)
    if rows.lost and only_new:
        said = f"rows of {source.table} were updated or removed: what was appended of them stays"
    return Reading({source: rows.df}, inputs, said)


def _why_not(
    model: Model, known: SliceRecord, catalog: Catalog, table: Table, since: int | None
) -> str | None:
    """Why the rows that changed since then do not make the table that all rows make."""
    if since is None:
        return "no run has recorded how far it read"
    before = catalog.find_table(table.schema_name, table.name, since)
    if before is None or before.id != table.id:
        return "the input is another table than the one that was read"
    reasons = {
        "the model has changed": known.definition_hash != model.definition_hash,
        f"its rows were made by {known.strategy}": known.strategy != model.strategy.name,
        "the columns of the input have changed": before.schema != table.schema,
    }
    if model.strategy.only_adds:  # what was appended before stays as it is
        return None
    return next((reason for reason, holds in reasons.items() if holds), None)


def refuse_doubled(model: Model, changed: DataFrame, whole: DataFrame, limits: Limits) -> None:
    """``changed`` are rows that the query makes of what changed, which are kept, as this reads them
    several times; ``whole`` are those of all its input.

    Raises MergeKeyError for keys of the first that the second has more than once, or that are NULL.
    """
    from pyspark.sql import functions as fn

    table = model.target.qualified
    keys = keys_of(changed, model)
    with explained(table=table):
        source = count(Source(keys, schema_of(keys), model.keys), table=table)
        if source.rows:
            few = limits.broadcasts(source.rows, source.key_width)
            wanted = fn.broadcast(keys) if few else keys
            found = keys_of(whole, model).join(wanted, list(model.keys), "left_semi")
            check_keys(replace(source, frame=found), table=table)


_HASHED = 4 * 1024 * 1024  # bytes of a file whose content is hashed
_NAMED = 3  # files that a notice names


@dataclass(frozen=True, slots=True)
class NewFiles:
    """``files`` to read in place of all, which are ``new``; ``seen`` are those in the table's rows
    when they are read. ``said`` is worth a notice.
    """

    files: FilesRead
    new: tuple[InputRead, ...]
    seen: tuple[InputRead, ...]
    said: str | None = None

    def recorded(self, read_: ReadRecord) -> ReadRecord:
        """Return the record of an attempt with all files whose rows are in the table."""
        others = (each for each in read_.inputs if each.kind != "file")
        return replace(read_, inputs=(*others, *self.seen))

    def require_unchanged(self, root: Path) -> None:
        """Raise QueryFailed for a file that changed while it was read."""
        for file in self.new:
            path = root / file.name
            now = file_read(path, root) if path.exists() else None
            if now is None or (now.size, now.time) != (file.size, file.time):
                raise QueryFailed(
                    f"{file.name} changed while it was read",
                    hint="write files under another name, and rename them when they are whole",
                )


@dataclass(frozen=True, slots=True)
class Choice:
    """Files as they are now: ``new`` ones, ``changed`` since they were read, and all ``seen``, as
    they were read or under the time that they have now.
    """

    new: tuple[InputRead, ...]
    changed: tuple[InputRead, ...]
    seen: tuple[InputRead, ...]


def choose(now: Sequence[InputRead], before: Mapping[str, InputRead], root: Path) -> Choice:
    """Compare files with those that were read ``before``, by name."""
    new, changed, seen = list[InputRead](), list[InputRead](), dict(before)
    for file in now:
        known = before.get(file.name)
        if known is None:
            new.append(file)
        elif (file.size, file.time) != (known.size, known.time):
            same = file.size == known.size and known.hash == _hash(file, root)
            if same and known.hash is not None:
                seen[file.name] = replace(file, hash=known.hash)
            else:
                changed.append(file)
    return Choice(tuple(new), tuple(changed), tuple(seen.values()))


def _hash(file: InputRead, root: Path) -> str | None:
    small = file.size is not None and file.size <= _HASHED
    return hash_of(root / file.name) if small else None


def new_files(attempt: Attempt, known: SliceRecord | None) -> NewFiles:
    """The files that a run reads; ``known`` is the record of the table. Raises QueryFailed where
    there are none at all and no columns are declared, and DefinitionChanged where an append cannot
    tell which are new.
    """
    model, root = attempt.model, attempt.context.settings.root
    (source,) = model.query.files
    bindings = attempt.planned.bindings
    paths = [path for path in paths_of(model, bindings, root) if isinstance(path, Path)]
    before, why = _before(attempt, known)
    appends = model.strategy.only_adds
    if why is not None and appends:
        raise DefinitionChanged(
            f"{model.target} cannot tell which files are new: {why}",
            hint=f"rebuild it from all of them: `penstock run {model.name} --full-refresh`",
            location=model.place("incremental"),
            data={"table": model.target.qualified},
        )
    choice = choose([file_read(path, root) for path in paths], before, root)
    wanted = choice.new if appends else (*choice.new, *choice.changed)
    wanted = tuple(replace(file, hash=_hash(file, root)) for file in wanted)
    options = {name: value.evaluate(bindings) for name, value in source.options}
    rows: Read
    if wanted or paths:  # without new ones, any says the columns
        texts = [file.name for file in wanted] or [str(paths[0])]
        rows = call_files(source, texts, options, root)
        rows = rows if wanted else NoRows(rows)
    else:
        rows = _nothing(source, bindings, options)
    read_ = {file.name: file for file in (*choice.seen, *wanted)}
    said = f"reads all files: {why}" if why else None
    if appends and choice.changed:
        said = _changed(choice.changed, model.name)
    return NewFiles({source: rows}, wanted, tuple(read_.values()), said)


def _nothing(source: FileSource, bindings: Bindings, options: Mapping[str, Any]) -> NoFiles:
    """Return the rows of a directory that has no file yet: none, in the columns that are declared.

    Raises QueryFailed where none are.
    """
    found = no_files(source.function, options, source.location)
    if found is None:
        raise QueryFailed(
            f"there is no file {source.path.evaluate(bindings)} yet, which would say the columns",
            hint="declare them, so that the table begins empty: columns = {'id': 'BIGINT', ...}",
            location=source.location,
        )
    return found


def _before(attempt: Attempt, known: SliceRecord | None) -> tuple[dict[str, InputRead], str | None]:
    """The files in the table's rows, and why all are read although it is there."""
    model = attempt.model
    if known is None:
        return {}, None
    if known.rolled_back is not None:
        return {}, f"{model.target} was rolled back since they were read"
    with attempt.state.reading() as connection:
        found = connection and known.read_id and read(connection, known.read_id)
    if not found:
        return {}, "no run has recorded which it read"
    if not model.strategy.only_adds and known.definition_hash != model.definition_hash:
        return {}, "the model has changed"
    return {each.name: each for each in found.inputs if each.kind == "file"}, None


def _changed(changed: Sequence[InputRead], name: str) -> str:
    """Say which files an append leaves."""
    names = ", ".join(file.name for file in changed[:_NAMED])
    more = f" and {len(changed) - _NAMED} more" if len(changed) > _NAMED else ""
    has = "has" if len(changed) == 1 else "have"
    return (
        f"{names}{more} {has} changed since the rows were appended, and stays as it was read: "
        f"`penstock run {name} --full-refresh` reads all files again"
    )


@dataclass(frozen=True, slots=True)
class NoRows:
    """No rows of ``files``, in their columns."""

    files: Read

    def read(self, session: SparkSession) -> DataFrame:
        return self.files.read(session).limit(0)

    def notices(self) -> tuple[str, ...]:
        return ()

    def blamed(self, _error: object) -> None:
        """Say nothing of files that are not read."""
