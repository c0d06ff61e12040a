"""The properties of a model, in one table: how each form of a header reads and writes them.

A row names the field of `Declaration` that has the property, the keyword of its header lines, and
its name in ``MODEL (...)``; either form may lack it. The readers of both forms and their writers
walk this table. Its order is that of header lines, and of what a message lists.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any

from penstock.model.files.header_lines import CommentLine
from penstock.model.headers import steps, tests, values
from penstock.model.headers.audits import read_audits, write_audit
from penstock.model.headers.draft import BlockDraft, LineDraft
from penstock.model.headers.materialization import materialize, read_kind, write_target
from penstock.model.headers.steps import LATE_RUN
from penstock.model.headers.syntax import NamedValue, Value
from penstock.model.script.declaration import CHANGES, FILES, Declaration
from penstock.model.script.script import Setting
from penstock.model.time.interval import UNITS
from penstock.model.time.needs import FORMS as NEED_FORMS
from penstock.model.time.needs import Need, read_need
from penstock.model.time.partition import KINDS as PARTITIONS
from penstock.model.time.partition import PartitionSpec
from penstock.model.values.asset import ColumnLineage, ColumnType, TableName, UnknownName
from penstock.model.values.schedule import CATCHUP_MODES, EVENTS, CatchupLine, Trigger, read_catchup
from penstock.settings.keys import DIALECTS
from penstock.sql.dialect import SPARK
from penstock.sql.identifiers import dotted, nearest
from penstock.sql.literals import plain_text_literal
from penstock.sql.types import spark_type

_Reader = Callable[[NamedValue, BlockDraft], object]
_SPARK = "spark."
_ASSET = r"(ducklake(://\S*)?|(delta|s3|res|datatable|volume)://\S+|\$res:\S+)"
_TARGET = rf"((manual|scd2) )?{_ASSET}.*"
_SLICES = rf"({'|'.join(PARTITIONS)})( .*)?"
_TESTS = r"(unique|not_null|accepted_values|relationships) .*|\S+/\S+"
_TRIGGER = rf"{_ASSET}.*|({'|'.join(EVENTS)})( \w+=.*)?"
_CATCHUP = rf"({'|'.join(CATCHUP_MODES)})( \w+=.*)?"
_DURATION = r"\d+[smhd]?"
_NOTHING = re.compile("")
_AWAY = "take it away"


# The values of properties are Any: each row reads and writes a type of its own.
@dataclass(frozen=True, slots=True)
class LineForm:
    """A property in header lines.

    Attributes:
        keyword: The first word of its lines.
        field: The field of `Annotations` that has it.
        reader: Reads a line; None where another property has it.
        writer: Writes what follows the keyword, of each item of a tuple; None writes no line.
        looks: A pattern of what follows the keyword where a line is meant as this property.
        is_serious: Whether a model without the line would write other data.
        limits: What of a value no line can say.
        label: What messages call its lines, by default the keyword.
    """

    keyword: str
    field: str
    reader: Callable[[CommentLine, LineDraft], None] | None
    writer: Callable[[Any], str | None] = str
    looks: str | None = None
    is_serious: bool = False
    limits: Callable[[Any], Iterable[str]] = lambda _: ()
    label: str = ""


@dataclass(frozen=True, slots=True)
class BlockForm:
    """A property in ``MODEL (...)``.

    Attributes:
        key: Its name.
        reader: Reads its value.
        writer: Writes it; None of what is not written, or elsewhere.
        limits: What of a value no property can say.
    """

    key: str
    reader: _Reader
    writer: Callable[[Any], str] | None = None
    limits: Callable[[Any], Iterable[str]] = lambda _: ()


@dataclass(frozen=True, slots=True)
class Property:
    """A property of a model.

    Attributes:
        field: The field of `Declaration` that has it, as ``cadence.start``; "" where none has.
        line: Its form in header lines, if it has one.
        block: Its form in ``MODEL (...)``, if it has one.
        default: Whether it is true without being written, of a property that is true or false.
    """

    field: str = ""
    line: LineForm | None = None
    block: BlockForm | None = None
    default: bool = False

    def value_in(self, declaration: Declaration) -> Any:
        """Return the value of the property.

        Args:
            declaration: A declaration, in whatever form.

        Returns:
            What its field has.
        """
        return attrgetter(self.field)(declaration)


_serious = partial(LineForm, is_serious=True)


def _simple(read: Callable[[Value], object]) -> _Reader:
    return lambda prop, _: read(prop.value)


def _read_name(prop: NamedValue, draft: BlockDraft) -> TableName:
    draft.places["target"] = draft.place(prop)
    return _read_table(prop.value, draft)


def _read_table(value: Value, draft: BlockDraft) -> TableName:
    """The table that a query of the project means by the same name."""
    is_text = value.tokens[0].kind == "string" and len(value.tokens) == 1
    parts = dotted(value.tokens[0].value if is_text else value.text)
    if not parts:
        raise value.wrong(f"`{value.text}` is not a table's name", "write schema.table")
    try:
        return draft.names.resolve(tuple(parts))
    except UnknownName as error:
        hint = error.hint
        if len(parts) == 3 and nearest(parts[0], draft.names.lakes) is None:
            # A catalog of SQLMesh's, as `memory.s.t`: what it is called here.
            lakes = ", ".join(draft.names.lakes) or "none"
            hint = f"the first part names a lake ({lakes}): write {'.'.join(parts[1:])}"
        raise value.wrong(str(error), hint) from None


def _read_columns(prop: NamedValue, draft: BlockDraft) -> tuple[ColumnType, ...]:
    columns = []
    for name, type_ in values.columns(prop.value):
        try:
            spark_type(type_.text, draft.dialect)
        except ValueError as error:
            hint = "write a type such as BIGINT, DECIMAL(10, 2) or TIMESTAMP"
            raise type_.wrong(f"column {name} {error}", hint) from None
        columns.append(ColumnType(name, type_.text, draft.place(type_), draft.dialect))
    return tuple(columns)


def _read_needs(prop: NamedValue, draft: BlockDraft) -> tuple[tuple[TableName, Need], ...]:
    """``(table = 'lag=7d', other = all)``."""
    needs: dict[TableName, Need] = {}
    for key, value in values.pairs(prop.value):
        need = read_need(values.text(value))
        if need is None:
            raise value.wrong(f"`{value.text}` is not what is needed", f"write {NEED_FORMS}")
        try:
            table = draft.names.resolve(tuple(dotted(key) or (key,)))
        except UnknownName as error:
            raise value.wrong(str(error), error.hint) from None
        if table in needs:
            raise value.wrong(f"{table} is given twice", "keep one")
        draft.places[f"needs:{len(needs)}"] = draft.place(prop)
        needs[table] = need
    return tuple(needs.items())


def _read_catchup(prop: NamedValue, _: BlockDraft) -> CatchupLine:
    try:
        return read_catchup(values.text(prop.value))
    except ValueError as error:
        hint = "write none, latest or all, with options in quotes: 'all max=10 window=30d'"
        raise prop.value.wrong(str(error), hint) from None


def _read_settings(prop: NamedValue, _: BlockDraft) -> tuple[Setting, ...]:
    settings = []
    for key, value in values.pairs(prop.value):
        if not key.startswith(_SPARK):
            message = f"`{key}` is not a setting of Spark"
            raise value.wrong(message, "name it in full, as 'spark.sql.shuffle.partitions'")
        settings.append(Setting(key, values.text(value)))
    return tuple(settings)


def _read_grain(prop: NamedValue, draft: BlockDraft) -> tuple[tuple[str, ...], ...]:
    if "about.grains" in draft.values:
        hint = "write grains (a, (b, c)) for several"
        raise prop.value.wrong("both `grain` and `grains` are given", hint)
    grains = values.nested(prop.value)
    return grains if prop.name == "grains" else (tuple(key for keys in grains for key in keys),)


def _only(word: str, what: str) -> _Reader:
    def read(prop: NamedValue, _: BlockDraft) -> None:
        if values.text(prop.value).casefold() != word:
            message = f"`{prop.value.text}` is not the format of a lake's {what}"
            raise prop.value.wrong(message, f"write {word}, or take the property away")

    return read


def _validate(prop: NamedValue, _: BlockDraft) -> None:
    if not values.boolean(prop.value):
        raise prop.value.wrong("every query is validated", "take `validate_query` away")


def _idle(key: str, why: str, read: Callable[[Value], object]) -> Property:
    def warn(prop: NamedValue, draft: BlockDraft) -> None:
        read(prop.value)
        draft.warn(prop.start, f"`{key}` has no effect: {why}", _AWAY, "model-idle")

    return Property(block=BlockForm(key, warn))


def _refused(key: str, why: str, hint: str = _AWAY) -> Property:
    def refuse(prop: NamedValue, _: BlockDraft) -> None:
        error = prop.value.wrong(f"`{key}` cannot be given: {why}", hint)
        error.at, error.rule = prop.start, "model-property"
        raise error

    return Property(block=BlockForm(key, refuse))


def _value(
    field: str,
    read: Callable[[Value], object] = values.text,
    write: Callable[[Any], str] | None = values.write_text,
) -> Property:
    """A property of ``MODEL (...)`` alone, that has the name of its field; by default a text."""
    return Property(field, block=BlockForm(field.rpartition(".")[2], _simple(read), write))


def _duration(keyword: str, field: str) -> LineForm:
    return LineForm(keyword, field, steps.duration(field), looks=_DURATION)


def _list_of(
    write: Callable[[Any], str], *, by_lines: bool = False
) -> Callable[[Iterable[Any]], str]:
    return lambda items: values.write_list(map(write, items), by_lines=by_lines)


def _pair(
    write_key: Callable[[Any], str], write_value: Callable[[Any], str]
) -> Callable[[tuple[Any, Any]], str]:
    return lambda pair: f"{write_key(pair[0])} = {write_value(pair[1])}"


def _write_grain(keys: Sequence[str]) -> str:
    return values.write_list(keys) if len(keys) > 1 else keys[0]


def _write_partition(spec: PartitionSpec) -> str:
    options = ((name, getattr(spec, name)) for name in steps.PARTITION_OPTIONS)
    written = (f"{name}={values.quoted(text, _NOTHING)}" for name, text in options if text)
    return " ".join((spec.kind, *written))


def _write_trigger(trigger: Trigger) -> str:
    if trigger.asset is not None:
        debounce = f" debounce={trigger.debounce}" if trigger.debounce else ""
        return f"{trigger.asset}{debounce}"
    always = frozenset({"cron", "tz"})  # in quotes
    options = (
        f"{name}={values.quoted(text, _NOTHING) if name in always else text}"
        for name, text in trigger.options
    )
    return " ".join((trigger.kind, *options))


def _write_lineage(lineage: ColumnLineage) -> str:
    inputs = (f"{item.asset}.{item.column}" for item in lineage.inputs)
    return f"{lineage.column} <- {', '.join(inputs)}"


def _no_tag(tags: Sequence[str]) -> Iterator[str]:
    yield from ["several tags"] if len(tags) > 1 else []
    yield from ["a tag of several words"] if any(" " in tag for tag in tags) else []


_BY_NAME = ("a lake is the first part of a model's name", "write name lake.schema.table")
_NO_VIRTUAL = "there is no layer of views in front of tables"
_IN_LAKE = "options of a table are set in the lake"
PROPERTIES: tuple[Property, ...] = (
    Property(line=LineForm("pipeline", "in_pipeline", steps.flag("in_pipeline"), lambda _: "", "")),
    Property(line=LineForm("macros", "macros", steps.flag("macros"), lambda _: "", "")),
    Property(line=LineForm("use", "use_libs", steps.use, looks=r"\S+/\S+")),
    Property(line=_serious("materialize", "materialize", materialize, write_target, _TARGET)),
    Property("target", block=BlockForm("name", _read_name)),
    Property("strategy", block=BlockForm("kind", read_kind)),
    Property(
        "partition",
        _serious("partitioned", "partition", steps.partitioned, _write_partition, _SLICES),
    ),
    Property(
        "incremental",
        LineForm("incremental", "incremental", steps.incremental),
        BlockForm("incremental", _simple(values.choice(CHANGES, FILES)), str),
    ),
    Property(
        "late_run",
        LineForm("late", "late_run", steps.late, lambda _: LATE_RUN),
        BlockForm(
            "late", lambda prop, _: bool(values.choice(LATE_RUN)(prop.value)), lambda _: LATE_RUN
        ),
    ),
    Property(
        "input_needs",
        LineForm("needs", "needs", steps.needs, lambda need: f"{need.asset} {need.text}"),
        BlockForm(
            "needs",
            _read_needs,
            _list_of(_pair(values.write_table, lambda need: values.write_text(need.said))),
        ),
    ),
    Property(
        "schedule.triggers",
        LineForm("on", "triggers", steps.on, _write_trigger, _TRIGGER),
    ),
    Property("schedule.join", LineForm("trigger", "join_mode", steps.trigger, looks="all|any")),
    Property("schedule.freshness", _duration("freshness", "freshness")),
    Property("schedule.debounce", _duration("debounce", "debounce_default")),
    Property(
        "schedule.catchup",
        LineForm("catchup", "catchup", steps.catchup, looks=_CATCHUP),
        BlockForm("catchup", _read_catchup, lambda line: values.write_text(str(line))),
    ),
    Property(
        "retry",
        LineForm(
            "retry",
            "retry",
            steps.retry,
            lambda retry: f"{retry.count} {retry.delay or ''}".rstrip(),
            r"\d+( .*)?",
        ),
    ),
    Property("timeout", LineForm("timeout", "timeout", steps.timeout, looks=_DURATION)),
    _value(
        "layout.partitioned_by",
        values.partition_keys,
        _list_of(lambda key: key if key.endswith(")") else values.write_name(key)),
    ),
    _value("layout.clustered_by", values.names, _list_of(values.write_name)),
    Property(
        "columns",
        block=BlockForm(
            "columns",
            _read_columns,
            _list_of(lambda item: f"{values.write_name(item.name)} {item.type}", by_lines=True),
        ),
    ),
    Property(
        "depends_on",
        block=BlockForm(
            "depends_on",
            lambda prop, draft: tuple(_read_table(item, draft) for item in prop.value.items()),
            _list_of(values.write_table),
        ),
    ),
    Property(
        "settings",
        block=BlockForm(
            "session_properties",
            _read_settings,
            _list_of(
                lambda item: f"{values.write_text(item.name)} = {values.write_text(item.value)}"
            ),
        ),
    ),
    Property(
        "formatted",
        block=BlockForm("formatting", _simple(values.boolean), lambda _: "false"),
        default=True,
    ),
    Property(
        "tags",
        LineForm("tag", "tag", steps.tag, looks=r"\S+", limits=_no_tag),
        BlockForm("tags", _simple(values.texts), _list_of(values.write_text)),
    ),
    _value("cadence.cron", values.cron),
    _value("cadence.cron_tz", values.zone),
    _value("cadence.interval_unit", values.choice(*UNITS)),
    _value("cadence.start", values.moment),
    _value("cadence.end", values.moment),
    _value("cadence.allow_partials", values.boolean, lambda _: "true"),
    _value("about.description"),
    _value(
        "about.column_descriptions",
        values.text_pairs,
        _list_of(_pair(values.write_name, plain_text_literal), by_lines=True),
    ),
    _value("about.owner"),
    _value("about.stamp"),
    _value("about.project"),
    Property("about.grains", block=BlockForm("grain", _read_grain)),
    Property("about.grains", block=BlockForm("grains", _read_grain, _list_of(_write_grain))),
    _value("about.references", values.nested, _list_of(_write_grain)),
    Property(
        "dialect",
        _serious(
            "dialect",
            "dialect",
            steps.dialect,
            lambda dialect: dialect if dialect != SPARK else None,
            "|".join(DIALECTS),
        ),
        BlockForm("dialect", _simple(values.dialect)),
    ),
    Property(
        "data_tests",
        _serious(
            "data_test",
            "data_tests",
            tests.data_test,
            tests.write_test,
            _TESTS,
            limits=lambda data_tests: (
                f"the audit of {test.name}" for test in data_tests if tests.write_test(test) is None
            ),
        ),
        BlockForm(
            "audits",
            read_audits,
            _list_of(lambda test: write_audit(test) or "", by_lines=True),
            lambda data_tests: (
                f"data_test {test.name}" for test in data_tests if write_audit(test) is None
            ),
        ),
    ),
    Property(
        "column_lineage",
        LineForm(
            "column",
            "column_lineage",
            steps.column,
            _write_lineage,
            "[^<]*<-.*",
            label="column ... <- ...",
        ),
    ),
    Property(
        "column_types",
        LineForm(
            "column",
            "column_types",
            None,
            lambda item: f"{values.quoted(item.name)} {item.type}",
            label="column name TYPE",
        ),
    ),
    _value("enabled", values.boolean, None),
    Property(block=BlockForm("storage_format", _only("parquet", "files"))),
    Property(block=BlockForm("table_format", _only("ducklake", "tables"))),
    Property(block=BlockForm("validate_query", _validate)),
    _idle("optimize_query", "queries go to Spark as they are written", values.boolean),
    _idle("ignored_rules", "there are no rules to be left out", values.texts),
    _refused("gateway", *_BY_NAME),
    _refused("default_catalog", *_BY_NAME),
    _refused(
        "physical_properties",
        _IN_LAKE,
        "write lake.sql(\"CALL lake.set_option('parquet_compression', 'zstd', ...)\")",
    ),
    _refused("table_properties", _IN_LAKE),
    _refused("virtual_properties", _NO_VIRTUAL),
    _refused("virtual_environment_mode", _NO_VIRTUAL),
    _refused("physical_version", "a table has the snapshots of its lake"),
    _refused("signals", "nothing waits for signals in this version", "use depends_on for tables"),
    _refused(
        "blueprints",
        "a script makes one model",
        "write a script for each blueprint; a macro may say what they share",
    ),
    _refused("grants", "a lake has no rights of its own", "grant them in the catalog's database"),
    _refused("grants_target_layer", _NO_VIRTUAL),
    _refused(
        "retention",
        "nothing removes rows by their age",
        "filter them in the query, or use penstock maintain",
    ),
)
#: the forms by the first word of a line, and by the names in ``MODEL (...)`` with their properties
KEYWORDS = {row.line.keyword: row.line for row in PROPERTIES if row.line and row.line.reader}
KEYS = {row.block.key: (row, row.block) for row in PROPERTIES if row.block}
