"""Find faults of a project as a whole, without Spark; EXTERNAL models beside what is really there.

No catalog is made, and one is opened only to look for a table that no model makes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.destinations.capabilities import KINDS, refusals
from penstock.engine.verifying.unit_test_files import check_unit_tests
from penstock.errors import ArgumentError, Diagnostic, LakeError, Location, PenstockError
from penstock.lakes.catalog.database.location import parse_location
from penstock.lakes.format.types import simple_string
from penstock.lakes.storage import Storage, bucket_of, is_remote, refuse_unknown, storage_elsewhere
from penstock.model.definition.external import FILE, External, unlike
from penstock.model.definition.graph import makers_of, table_key
from penstock.model.definition.model import Model
from penstock.model.files.yaml_file import Reading
from penstock.model.project.not_models import FIRST_MODEL
from penstock.model.script.sources import table_read
from penstock.model.time.moments import read_moment
from penstock.model.time.time_macros import TOKEN
from penstock.model.values.asset import DEFAULT_SCHEMA, FileName, TableName, table_of
from penstock.model.values.data_test import RelationshipsTest
from penstock.settings.config import LakeSettings, Settings
from penstock.settings.refused_settings import dbt_hint
from penstock.sql.identifiers import fold, nearest

if TYPE_CHECKING:
    from penstock.lakes.catalog.catalog import Catalogs


@dataclass(frozen=True, slots=True)
class CreatedExternal:
    """``added`` were written to ``path``; those of ``unknown`` have no columns, as no lake has the
    table; no query reads those of ``unread`` any more.
    """

    path: str
    added: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


def columns_in(catalogs: Catalogs) -> Callable[[TableName], Mapping[str, str] | None]:
    """The columns of a table in its lake, with their types; none for a table that is not there,
    ``None`` where the lake cannot tell: it is not there yet, or has a view of that name.
    """

    def columns(table: TableName) -> Mapping[str, str] | None:
        catalog = catalogs(table.lake)
        if catalog is None:
            return None
        latest = catalog.latest()
        known = catalog.known_table(table.schema, table.table, latest)
        if known is not None:
            return {column.name: simple_string(column) for column in known.schema.columns}
        # Late: it loads SQLAlchemy.
        from penstock.lakes.catalog.definitions.stored_sql import view_names

        with catalog.reading() as connection:
            views = view_names(connection, latest.id)
        return None if table.qualified.casefold() in map(str.casefold, views) else {}

    return columns


def read_by(models: Sequence[Model]) -> dict[str, TableName]:
    """The tables that models and their tests read and none makes, by key, in order of name."""
    made = {table_key(model.target) for model in models}
    read = [table for model in models for table in (*model.inputs, *model.test_reads)]
    tables = (table for table in read if not isinstance(table, FileName))
    found = {table_key(table): table for table in sorted(tables, key=str)}
    return {key: table for key, table in found.items() if key not in made}


def create_external(
    root: Path, models: Sequence[Model], externals: Sequence[External], catalogs: Catalogs
) -> CreatedExternal:
    """Add an entry for each table that is read, is not made and has none yet.

    What the file has stays as it is written.
    """
    read, known = read_by(models), {table_key(external.table) for external in externals}
    columns = columns_in(catalogs)
    lacking = {str(table): columns(table) for key, table in read.items() if key not in known}
    path = root / FILE
    if lacking:
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        gap = "" if before.endswith("\n") or not before else "\n"
        after = f"{before}{gap}{_text(lacking)}"
        _require_list(after, path)
        path.write_text(after, encoding="utf-8")
    return CreatedExternal(
        path=str(path),
        added=tuple(lacking),
        unknown=tuple(name for name, types in lacking.items() if not types),
        unread=tuple(str(e.table) for e in externals if table_key(e.table) not in read),
    )


def _require_list(text: str, path: Path) -> None:
    """Raise ArgumentError where entries cannot be added behind what the file has."""
    from yaml.nodes import SequenceNode

    if not isinstance(Reading(path, "external").root(text), SequenceNode):
        raise ArgumentError(
            f"no entry can be added to {path}: it is not a list with a dash for each",
            hint="write `- name: schema.table` for each entry, or move the file away",
        )


def _text(tables: Mapping[str, Mapping[str, str] | None]) -> str:
    import yaml

    entries = [
        {"name": name, **({"columns": dict(types)} if types else {})}
        for name, types in tables.items()
    ]
    return str(yaml.safe_dump(entries, sort_keys=False, allow_unicode=True, width=1000))


def check_project(
    settings: Settings,
    models: Sequence[Model],
    externals: Sequence[External],
    catalogs: Catalogs,
) -> tuple[Diagnostic, ...]:
    """Findings that no script has on its own."""
    broken = [finding for lake in settings.lakes.values() for finding in _lake(lake)]
    return (
        *broken,
        *_no_models(settings, models),
        *_unable(settings, models),
        *_future_starts(models, datetime.now(UTC)),
        *_referenced(models, externals, catalogs if not broken else None),
        *_seeds(models, settings.root),
        *check_unit_tests(settings.root, models),
        *(unlike(externals, columns_in(catalogs)) if not broken else ()),
    )


def _no_models(settings: Settings, models: Sequence[Model]) -> Iterator[Diagnostic]:
    if not models:
        message = "the project has no model"
        hint = dbt_hint(settings.root) or FIRST_MODEL
        yield Diagnostic("error", message, Location(settings.models), hint, "no-models")


def _unable(settings: Settings, models: Sequence[Model]) -> Iterator[Diagnostic]:
    """Models that the destinations of their tables cannot make."""
    kinds = {name: KINDS[lake.kind] for name, lake in settings.lakes.items()}
    for refusal in refusals(models, kinds):
        place = refusal.location or Location(settings.models)
        yield Diagnostic("error", refusal.message, place, refusal.hint, "destination")


def _future_starts(models: Sequence[Model], now: datetime) -> Iterator[Diagnostic]:
    """Models that no run makes yet: most likely a year is mistyped."""
    for model in models:
        start = model.partition.start if model.partition else model.cadence.start
        if start is not None and read_moment(start, now) > now:
            message = f"it starts at {start}, which is in the future: until then runs skip it"
            hint = "write an earlier start, if that is not meant"
            yield Diagnostic("warning", message, model.place("start"), hint, "future-start")


def _referenced(
    models: Sequence[Model], externals: Sequence[External], catalogs: Catalogs | None
) -> Iterator[Diagnostic]:
    """Tables that models read, wait for or test against, and that neither a model makes nor a lake
    has."""
    makers = makers_of(models)
    described = {table_key(external.table) for external in externals}
    known: dict[str, bool] = {}

    def is_missing(table: TableName) -> bool:
        key = table_key(table)
        if key not in known:
            known[key] = key in makers or _is_there(table, catalogs)
        return not known[key]

    for model in models:
        for reference in _references(model):
            table = reference.table
            if reference.rule == "missing-table" and table_key(table) in described:
                continue  # it is for the description to be right
            # What is meant where an ATTACH was forgotten, which is said already.
            lake_key = table_key(replace(table, schema=DEFAULT_SCHEMA))
            if lake_key not in makers and is_missing(table):
                message = f"no model makes {table}, and its lake does not have it"
                near = nearest(table.table, [each.target.table for each in models])
                hint = f"did you mean {near}?" if near else reference.hint
                yield Diagnostic("warning", message, reference.place, hint, reference.rule)


@dataclass(frozen=True, slots=True)
class _Reference:
    """A table that a model names; ``hint`` says what comes of it where there is none."""

    table: TableName
    place: Location
    hint: str
    rule: str


def _references(model: Model) -> Iterator[_Reference]:
    """Each table once, by what is most telling of it."""
    seen: set[str] = set()
    for reference in (*_waited(model), *_read(model), *_tested(model)):
        if table_key(reference.table) not in seen or reference.rule == "test-table":
            seen.add(table_key(reference.table))
            yield reference


def _waited(model: Model) -> Iterator[_Reference]:
    hint = "nothing runs before the model: is the name right?"
    for table in model.depends_on:
        yield _Reference(table, model.place("depends_on"), hint, "depends-on")
    for number, trigger in enumerate(model.schedule.triggers):
        waited = None if trigger.asset is None else table_of(trigger.asset)
        if waited is not None and TOKEN not in str(waited):
            yield _Reference(waited, model.place(f"on:{number}"), hint, "on-table")


def _read(model: Model) -> Iterator[_Reference]:
    hint = "the model fails until there is such a table: is the name right?"
    # A manual script may make what it reads, and a table may have been there at an older snapshot.
    for source in () if model.query.manual else model.query.sources:
        table = table_read(source)
        if table is not None and getattr(source, "at", None) is None:
            place = source.location or model.place("target")
            yield _Reference(table, place, hint, "missing-table")
    for table in () if model.python is None else model.python.reads:
        if not isinstance(table, FileName):
            yield _Reference(table, model.python_place, hint, "missing-table")


def _tested(model: Model) -> Iterator[_Reference]:
    hint = "the test fails until there is such a table: is the name right?"
    for test, place in model.placed_tests:
        parent = table_of(test.to) if isinstance(test, RelationshipsTest) else None
        if parent is not None:
            yield _Reference(parent, place, hint, "test-table")


def _seeds(models: Sequence[Model], root: Path) -> Iterator[Diagnostic]:
    """Files of SEED models that are not there, or that a run could not read."""
    for model in models:
        if not model.generated:
            continue
        # Late: few projects have seeds.
        from penstock.engine.inputs.seed_file import seeds_of

        try:
            for seed in seeds_of(model.query, root):
                seed.texts()
        except PenstockError as error:
            place = error.location or model.place("kind")
            yield Diagnostic("error", error.message, place, error.hint, "seed")


def _is_there(table: TableName, catalogs: Catalogs | None) -> bool:
    """Return whether the lake has the table; not for ``check`` to say where it cannot be asked."""
    try:
        catalog = catalogs(table.lake) if catalogs else None
        if catalog is None:
            return catalogs is None
        # Late: it loads SQLAlchemy, which check seldom needs.
        from penstock.lakes.catalog.definitions.stored_sql import view_names

        latest = catalog.latest()
        if catalog.known_table(table.schema, table.table, latest) is not None:
            return True
        with catalog.reading() as connection:
            views = view_names(connection, latest.id)
        return fold(table.qualified) in map(fold, views)
    except LakeError:
        return True


def _lake(lake: LakeSettings) -> Iterator[Diagnostic]:
    """Yield what keeps a lake from being attached, as far as its settings show."""
    for key, look in (("catalog", _catalog), ("data_path", _data_path), ("storage", _storage)):
        try:
            look(lake)
        except PenstockError as error:
            place = error.location or lake.places.get(key) or lake.places["catalog"]
            yield Diagnostic("error", error.message, place, error.hint, "lake")


def _catalog(lake: LakeSettings) -> None:
    location = parse_location(lake.catalog)
    if location.kind != "postgres":
        if Path(location.target).is_dir():
            raise LakeError(f"the catalog {location.target} is a directory", hint="name a file")
        _refuse_unwritable(Path(location.target).parent, "catalog")


def _data_path(lake: LakeSettings) -> None:
    if lake.data_path is None:
        return
    if is_remote(lake.data_path):
        refuse_unknown(lake.data_path)
    else:
        _refuse_unwritable(Path(lake.data_path), "data path")


def _storage(lake: LakeSettings) -> None:
    Storage.of(lake.storage or None)
    if lake.storage and lake.data_path is not None and bucket_of(lake.data_path) is None:
        raise storage_elsewhere(lake.data_path)


def _refuse_unwritable(directory: Path, what: str) -> None:
    """Raise LakeError for a directory that can neither be written to nor made."""
    there = next(path for path in (directory, *directory.parents) if path.exists())
    if not there.is_dir():
        raise LakeError(
            f"the {what} cannot be: {there} is not a directory", hint="name another one"
        )
    if not os.access(there, os.W_OK | os.X_OK):
        raise LakeError(f"the {what} cannot be: {there} is not writable", hint="check its rights")
