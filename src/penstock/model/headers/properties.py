"""Every property of ``MODEL (...)`` by its name: what it does, or why it is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from penstock.model.headers import values
from penstock.model.headers.audits import read_audits
from penstock.model.headers.draft import BlockDraft
from penstock.model.headers.kind import read_kind
from penstock.model.headers.steps import CHANGES, FILES, LATE_RUN
from penstock.model.headers.syntax import Property, Value
from penstock.model.script.script import Setting
from penstock.model.time.interval import UNITS
from penstock.model.time.needs import FORMS as NEED_FORMS
from penstock.model.time.needs import Need, read_need
from penstock.model.values.asset import ColumnType, TableName
from penstock.model.values.names import UnknownName
from penstock.sql.identifiers import dotted, nearest
from penstock.sql.types import spark_type

Handler = Callable[[BlockDraft, Property], None]
_SPARK = "spark."


def _name(draft: BlockDraft, prop: Property) -> None:
    draft.target = _table(draft, prop.value)
    draft.places["target"] = draft.place(prop)


def _table(draft: BlockDraft, value: Value) -> TableName:
    """The table that a query of the project means by the same name."""
    single = value.tokens[0].kind == "string" and len(value.tokens) == 1
    parts = dotted(value.tokens[0].value if single else value.text)
    if not parts:
        raise value.wrong(f"`{value.text}` is not a table's name", "write schema.table")
    try:
        return draft.names.resolve(tuple(parts))
    except UnknownName as error:
        raise value.wrong(str(error), _hint_of(parts, draft, error.hint)) from None


def _hint_of(parts: Sequence[str], draft: BlockDraft, hint: str | None) -> str | None:
    """Of a name with a catalog of SQLMesh's, as ``memory.s.t``, what it is called here."""
    if len(parts) != 3 or nearest(parts[0], draft.names.lakes) is not None:
        return hint
    lakes = ", ".join(draft.names.lakes) or "none"
    return f"the first part names a lake ({lakes}): write {'.'.join(parts[1:])}"


def _dialect(draft: BlockDraft, prop: Property) -> None:
    draft.dialect = values.dialect(prop.value)


def _cadence(name: str, read: Callable[[Value], object]) -> Handler:
    def handle(draft: BlockDraft, prop: Property) -> None:
        draft.cadence[name] = read(prop.value)

    return handle


def _interval_unit(value: Value) -> str:
    return values.choice(value, UNITS)


def _partitioned_by(draft: BlockDraft, prop: Property) -> None:
    values.expressions(prop.value)  # none twice
    keys = [key for item in prop.value.items() for key in values.partition_key(item)]
    draft.layout["partitioned_by"] = tuple(dict.fromkeys(keys))


def _clustered_by(draft: BlockDraft, prop: Property) -> None:
    draft.layout["clustered_by"] = values.names(prop.value)


def _columns(draft: BlockDraft, prop: Property) -> None:
    for name, kind in values.columns(prop.value):
        try:
            spark_type(kind.text, draft.dialect)
        except ValueError as error:
            hint = "write a type such as BIGINT, DECIMAL(10, 2) or TIMESTAMP"
            raise kind.wrong(f"column {name} {error}", hint) from None
        draft.columns.append(ColumnType(name, kind.text, draft.place(kind), draft.dialect))


def _depends_on(draft: BlockDraft, prop: Property) -> None:
    draft.depends_on = tuple(_table(draft, item) for item in prop.value.items())


def _needs(draft: BlockDraft, prop: Property) -> None:
    """``(table = 'lag=7d', other = all)``."""
    found: dict[TableName, Need] = {}
    for key, said in values.pairs(prop.value):
        need = read_need(values.text(said))
        if need is None:
            raise said.wrong(f"`{said.text}` is not what is needed", f"write {NEED_FORMS}")
        try:
            table = draft.names.resolve(tuple(dotted(key) or (key,)))
        except UnknownName as error:
            raise said.wrong(str(error), error.hint) from None
        if table in found:
            raise said.wrong(f"{table} is given twice", "keep one")
        draft.places[f"needs:{len(found)}"] = draft.place(prop)
        found[table] = need
    draft.needs = tuple(found.items())


def _session_properties(draft: BlockDraft, prop: Property) -> None:
    found = []
    for key, said in values.pairs(prop.value):
        if not key.startswith(_SPARK):
            message = f"`{key}` is not a setting of Spark"
            raise said.wrong(message, "name it in full, as 'spark.sql.shuffle.partitions'")
        found.append(Setting(key, values.text(said)))
    draft.settings = tuple(found)


def _tags(draft: BlockDraft, prop: Property) -> None:
    draft.tags = values.texts(prop.value)


def _about(name: str, read: Callable[[Value], object]) -> Handler:
    def handle(draft: BlockDraft, prop: Property) -> None:
        draft.about[name] = read(prop.value)

    return handle


def _grain(draft: BlockDraft, prop: Property) -> None:
    if "grains" in draft.about:
        hint = "write grains (a, (b, c)) for several"
        raise prop.value.wrong("both `grain` and `grains` are given", hint)
    found = values.nested(prop.value)
    alone = prop.name == "grain"
    draft.about["grains"] = (tuple(e for each in found for e in each),) if alone else found


def _enabled(draft: BlockDraft, prop: Property) -> None:
    draft.enabled = values.boolean(prop.value)


def _formatting(draft: BlockDraft, prop: Property) -> None:
    draft.formatted = values.boolean(prop.value)


def _incremental(draft: BlockDraft, prop: Property) -> None:
    chosen = values.choice(prop.value, (CHANGES, FILES))
    draft.reads_changes, draft.reads_files = chosen == CHANGES, chosen == FILES
    draft.places["incremental"] = draft.place(prop)


def _late(draft: BlockDraft, prop: Property) -> None:
    values.choice(prop.value, (LATE_RUN,))
    draft.late_run = True


def _storage_format(_: BlockDraft, prop: Property) -> None:
    if values.text(prop.value).casefold() != "parquet":
        message = f"`{prop.value.text}` is not the format of a lake's files"
        raise prop.value.wrong(message, "write parquet, or take the property away")


def _table_format(_: BlockDraft, prop: Property) -> None:
    if values.text(prop.value).casefold() != "ducklake":
        message = f"`{prop.value.text}` is not the format of a lake's tables"
        raise prop.value.wrong(message, "write ducklake, or take the property away")


def _validate_query(_: BlockDraft, prop: Property) -> None:
    if not values.boolean(prop.value):
        raise prop.value.wrong("every query is validated", "take `validate_query` away")


def _without_effect(why: str, read: Callable[[Value], object]) -> Handler:
    def handle(draft: BlockDraft, prop: Property) -> None:
        read(prop.value)
        message = f"`{prop.name}` has no effect: {why}"
        draft.warn(prop.start, message, "take it away", "model-idle")

    return handle


def _refused(why: str, hint: str) -> Handler:
    def handle(_: BlockDraft, prop: Property) -> None:
        error = prop.value.wrong(f"`{prop.name}` cannot be given: {why}", hint)
        error.at, error.rule = prop.start, "model-property"
        raise error

    return handle


_AWAY = "take it away"
_NO_VIRTUAL = _refused("there is no layer of views in front of tables", _AWAY)
_BY_NAME = _refused("a lake is the first part of a model's name", "write name lake.schema.table")
PROPERTIES: Mapping[str, Handler] = {
    "dialect": _dialect,
    "name": _name,
    "kind": read_kind,
    "cron": _cadence("cron", values.cron),
    "cron_tz": _cadence("cron_tz", values.zone),
    "interval_unit": _cadence("interval_unit", _interval_unit),
    "start": _cadence("start", values.moment),
    "end": _cadence("end", values.moment),
    "allow_partials": _cadence("allow_partials", values.boolean),
    "partitioned_by": _partitioned_by,
    "clustered_by": _clustered_by,
    "columns": _columns,
    "audits": read_audits,
    "depends_on": _depends_on,
    "needs": _needs,
    "session_properties": _session_properties,
    "tags": _tags,
    "description": _about("description", values.text),
    "column_descriptions": _about("column_descriptions", values.text_pairs),
    "owner": _about("owner", values.text),
    "stamp": _about("stamp", values.text),
    "project": _about("project", values.text),
    "references": _about("references", values.nested),
    "grain": _grain,
    "grains": _grain,
    "enabled": _enabled,
    "formatting": _formatting,
    "incremental": _incremental,
    "late": _late,
    "storage_format": _storage_format,
    "table_format": _table_format,
    "validate_query": _validate_query,
    "optimize_query": _without_effect("queries go to Spark as they are written", values.boolean),
    "ignored_rules": _without_effect("there are no rules to be left out", values.texts),
    "gateway": _BY_NAME,
    "default_catalog": _BY_NAME,
    "physical_properties": _refused(
        "options of a table are set in the lake",
        "write lake.sql(\"CALL lake.set_option('parquet_compression', 'zstd', ...)\")",
    ),
    "table_properties": _refused("options of a table are set in the lake", _AWAY),
    "virtual_properties": _NO_VIRTUAL,
    "virtual_environment_mode": _NO_VIRTUAL,
    "physical_version": _refused("a table has the snapshots of its lake", _AWAY),
    "signals": _refused("nothing waits for signals in this version", "use depends_on for tables"),
    "blueprints": _refused(
        "a script makes one model",
        "write a script for each blueprint; a macro may say what they share",
    ),
    "grants": _refused("a lake has no rights of its own", "grant them in the catalog's database"),
    "grants_target_layer": _NO_VIRTUAL,
    "retention": _refused(
        "nothing removes rows by their age", "filter them in the query, or use penstock maintain"
    ),
}
