"""``MODEL (...)`` as a `Declaration`: every property acts, or is refused by its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from pathlib import Path
from typing import Any

from penstock.errors import Diagnostic, Location
from penstock.model.files.source_map import Source
from penstock.model.headers.audit_blocks import AuditBlock
from penstock.model.headers.draft import Annotations, BlockDraft, build_declaration
from penstock.model.headers.properties import KEYS
from penstock.model.headers.syntax import MODEL, Block, NamedValue, Wrong, read_block, suggestion
from penstock.model.script.declaration import Declaration, Options, SchemaChange
from penstock.model.time.cron import AutoRestatement, Cron
from penstock.model.time.interval import UNITS
from penstock.model.time.moments import fixed_moment
from penstock.model.time.time_range import TimeRange
from penstock.model.values.asset import (
    DEFAULT_SCHEMA,
    Asset,
    Materialize,
    Names,
    TableName,
    UnknownName,
)
from penstock.model.values.custom_strategy import Materialization
from penstock.model.values.history import History, clashes
from penstock.model.values.kinds import DEFAULT_KIND, KINDS, Kind
from penstock.model.values.seed import Seed, seed_path, seed_query


@dataclass(frozen=True, slots=True)
class Script:
    """A file with ``MODEL (...)`` after its header of comments, which ends at ``start``.

    ``parts`` are what names the model where it is inferred: its path below the models directory.
    """

    text: str
    path: Path
    start: int
    annotations: Annotations
    dialect: str = "spark"
    parts: tuple[str, ...] = ()
    root: Path = Path()
    audits: Mapping[str, AuditBlock] = field(default_factory=dict)
    materializations: Mapping[str, Materialization] = field(default_factory=dict)


def declare(script: Script, names: Names) -> tuple[Declaration | None, tuple[Diagnostic, ...]]:
    """Return what the script declares; ``None`` where a finding is an error, and for ``enabled
    false``.
    """
    source = Source(script.path, script.text)
    values: dict[str, Any] = {"dialect": script.dialect}
    draft = BlockDraft(source, names, script.audits, script.materializations, values)
    try:
        block = read_block(draft.source, script.start)
    except Wrong as error:
        draft.refuse(error)
        return None, tuple(draft.findings)
    draft.places[MODEL] = draft.source.location(block.start)
    _refuse_annotations(draft, script.annotations)
    _read(draft, block)
    if not draft.values.pop("enabled", True):
        message = "the model is not enabled, so nothing runs it"
        where = draft.places["enabled"]
        return None, (Diagnostic("warning", message, where, "write enabled true", "disabled"),)
    if draft.target is None and not draft.findings:
        _infer_name(draft, script.parts)
    for rule in _RULES:
        rule(draft)
    by_place = attrgetter("location.line", "location.column")
    findings = tuple(sorted(draft.findings, key=by_place))
    is_wrong = any(finding.severity == "error" for finding in findings)
    if draft.target is None or draft.kind is None or is_wrong:
        return None, findings
    return _declaration(draft, draft.target, draft.kind, script, block), findings


_OF_BOTH_FORMS = ("dialect", "use_libs")


def _refuse_annotations(draft: BlockDraft, annotations: Annotations) -> None:
    given = [name for name in annotations.to_dict() if name not in _OF_BOTH_FORMS]
    if not given:
        return
    names = [name for name in annotations.places if not name.startswith("use:")]
    names.sort(key=lambda name: name.startswith("data_test:"))  # where no other line is placed
    where = annotations.places[names[0]] if names else Location(draft.source.path, 1, 1)
    message = f"the script has both annotations ({', '.join(given)}) and {MODEL} (...)"
    hint = "say it in one form; the other reads as a comment once its keyword is gone"
    draft.findings.append(Diagnostic("error", message, where, hint, "two-forms"))


def _read(draft: BlockDraft, block: Block) -> None:
    """Each property by its reader, in the order of the table; first the dialect, which other values
    depend on.
    """
    by_name: dict[str, NamedValue] = {}
    for prop in block.properties:
        if prop.name in by_name:
            message = f"the property `{prop.name}` is given twice"
            draft.refuse(Wrong(prop.start, message, "keep one", "model-twice"))
        elif prop.name not in KEYS:
            hint = suggestion(prop.name, KEYS, f"there are {', '.join(KEYS)}")
            message = f"`{prop.name}` is not a property of {MODEL}"
            draft.refuse(Wrong(prop.start, message, hint, "model-property"))
        by_name.setdefault(prop.name, prop)
    draft.given = tuple(name for name in by_name if name in KEYS)
    draft.places |= {name: draft.place(prop) for name, prop in by_name.items()}
    for key in sorted(KEYS, key=lambda key: key != "dialect"):
        row, form = KEYS[key]
        if key in by_name:
            try:
                value = form.reader(by_name[key], draft)
            except Wrong as error:
                draft.refuse(error)
                continue
            draft.values |= {row.field: value} if row.field else {}
    if "kind" not in by_name:
        draft.kind = KINDS[DEFAULT_KIND]
        draft.values["strategy"] = draft.kind.strategy
        draft.options = dict(draft.kind.defaults)


def _infer_name(draft: BlockDraft, parts: tuple[str, ...]) -> None:
    if not parts:
        hint = "write name schema.table, or set infer_names in [project] of penstock.toml"
        draft.error_at(MODEL, "the model has no name", hint)
        return
    if len(parts) > 3:
        message = f"no name can be inferred: {'/'.join(parts)} is more than lake/schema/table"
        draft.error_at(MODEL, message, "write name schema.table")
        return
    try:
        draft.values["target"] = draft.names.resolve(parts)
        draft.places["target"] = draft.places[MODEL]
    except UnknownName as error:
        draft.error_at(MODEL, str(error), error.hint)


def _end_is_after_start(draft: BlockDraft) -> None:
    texts = [draft.values.get(f"cadence.{name}") for name in ("start", "end")]
    start, end = (None if text is None else fixed_moment(text) for text in texts)
    if texts[1] is not None and texts[0] is None:
        draft.error_at("end", "`end` needs `start`", "write start, or take end away")
    if start is not None and end is not None and end < start:
        message = f"`end` {texts[1]} is before `start` {texts[0]}"
        draft.error_at("end", message, "write an end that is not before start")


def _unit_fits_cron(draft: BlockDraft) -> None:
    values = draft.values
    unit, cron = values.get("cadence.interval_unit"), values.get("cadence.cron", "@daily")
    if unit is None or values.get("cadence.allow_partials"):
        return
    if UNITS[unit].shortest > Cron(cron).shortest_gap:
        message = f"the interval_unit {unit} is longer than what is between two runs of {cron}"
        hint = "write a shorter unit, or allow_partials true"
        draft.error_at("interval_unit", message, hint)


def _partitions_are_named(draft: BlockDraft) -> None:
    kind, keys = draft.kind, draft.values.get("layout.partitioned_by")
    if kind is None or kind.strategy is None or not kind.strategy.by_partition_keys:
        return
    if keys is None and "partitioned_by" not in draft.given:
        message = f"the kind {kind.name} needs the property `partitioned_by`"
        draft.error_at("kind", message, "write partitioned_by column")
    bucket = next((key for key in keys or () if key.startswith("bucket(")), None)
    if bucket is not None:
        message = f"the kind {kind.name} cannot replace by `{bucket}`: a bucket has unrelated rows"
        draft.error_at("partitioned_by", message, "write a column, or year(column) and the like")


def _does_not_wait_for_itself(draft: BlockDraft) -> None:
    if draft.target is not None and draft.target in draft.values.get("depends_on", ()):
        message = f"`depends_on` names the model's own table {draft.target}"
        draft.error_at("depends_on", message, "take it away: a query may read it as it was")


_OF_SEEDS = (
    *("name", "kind", "columns", "audits", "owner", "stamp", "tags", "description"),
    *("column_descriptions", "dialect", "enabled", "formatting", "project", "start", "cron"),
    *("grain", "grains", "references"),
)


def _seeds_have_few(draft: BlockDraft) -> None:
    if draft.kind is None or not draft.kind.queryless:
        return
    for name in draft.given:
        if name not in _OF_SEEDS:
            message = f"`{name}` cannot be given with the kind {draft.kind.name}"
            draft.error_at(name, message, f"a seed has {', '.join(_OF_SEEDS)}")


def _kept_rows_have_layouts(draft: BlockDraft) -> None:
    """A kind that keeps no rows has nothing that these say how to keep."""
    strategy = draft.kind.strategy if draft.kind else None
    if draft.kind is None or strategy is None or not strategy.by_readers:
        return
    others = () if strategy.runs else ("audits", "columns")
    for name in ("partitioned_by", "clustered_by", *others):
        if name in draft.given:
            message = f"`{name}` cannot be given with the kind {draft.kind.name}"
            why = "it keeps no rows; " if name.endswith("_by") else ""
            draft.error_at(name, message, f"{why}write kind FULL, or take it away")
    if "about.column_descriptions" in draft.values:
        why = f"{draft.kind.name} has no comments of them"
        hint = "write it in `description`, or write kind FULL"
        _say_idle(draft, "column_descriptions", why, hint)


def _views_are_not_materialized(draft: BlockDraft) -> None:
    if draft.options.get("materialized"):
        why, hint = "a lake has no materialized views", "write kind FULL to keep the rows"
        _say_idle(draft, "materialized", why, hint)


def _history_has_its_columns(draft: BlockDraft) -> None:
    history = draft.chosen
    if not isinstance(history, History):
        return
    keys = tuple(draft.options.get("unique_key") or ())
    managed = set(map(str.casefold, history.managed))
    # SQLMesh has the validity columns declared with the others.
    draft.values["columns"] = tuple(
        column
        for column in draft.values.get("columns", ())
        if column.name.casefold() not in managed
    )
    columns = tuple(column.name for column in draft.values["columns"])
    for message in clashes(history, keys):
        draft.error_at("kind", message, "write valid_from_name and valid_to_name, or rename it")
    track, updated = history.track, history.updated_at
    if columns:
        made = set(map(str.casefold, columns))
        for name in (*track, *((updated,) if updated else ())):
            if name.casefold() not in made:
                message = f"the column {name} of the kind is not among `columns`"
                draft.error_at("kind", message, f"there are {', '.join(columns)}")


def _restates_by_itself(draft: BlockDraft) -> None:
    """Refuse what says when a model restates itself, where it never does."""
    cron, disabled = "auto_restatement_cron", draft.options.get("disable_restatement")
    last = "auto_restatement_intervals"
    if draft.options.get(cron) and disabled:
        why = "disable_restatement is true, as this kind has it by default"
        if "disable_restatement" in draft.places:
            why = "disable_restatement is true"
        _say_idle(draft, cron, why, "write disable_restatement false, or take it away")
    if draft.options.get(last) and not draft.options.get(cron):
        _say_idle(
            draft, last, f"the model has no {cron}", f"write {cron} '@weekly', or take it away"
        )


def _say_idle(draft: BlockDraft, name: str, why: str, hint: str) -> None:
    message = f"`{name}` has no effect: {why}"
    draft.findings.append(Diagnostic("warning", message, draft.places[name], hint, "model-idle"))


_RULES: tuple[Callable[[BlockDraft], None], ...] = (
    _history_has_its_columns,
    _end_is_after_start,
    _unit_fits_cron,
    _partitions_are_named,
    _does_not_wait_for_itself,
    _seeds_have_few,
    _kept_rows_have_layouts,
    _views_are_not_materialized,
    _restates_by_itself,
)


def _declaration(
    draft: BlockDraft, target: TableName, kind: Kind, script: Script, block: Block
) -> Declaration:
    strategy, options = kind.strategy, draft.options
    assert strategy is not None, "a kind without one is refused"
    values = draft.values | {
        "path": script.path,
        "target": target,
        "code": block.code,
        "keys": tuple(options.get("unique_key") or ()),
        "key_expressions": draft.key_expressions,
        "options": _options(draft, script, kind),
        "schema_change": SchemaChange(
            options.get("on_additive_change", "allow"),
            options.get("on_destructive_change", "error"),
        ),
        "forward_only": bool(options.get("forward_only")),
        "disable_restatement": options.get("disable_restatement"),
        "auto_restatement": _auto_restatement(draft),
        "takes_statements": not strategy.by_readers and not kind.queryless,
        "places": draft.places,
    }
    declaration = build_declaration(values)
    if strategy.may_have_intervals:  # its query is about an interval, or may be
        names = {item.name for item in fields(TimeRange)}
        given = (option.name for option in kind.options if option.refusal is None)
        by_time = {name: options[name] for name in given if name in names}
        column, cadence = options.get("time_column"), declaration.cadence
        time_range = TimeRange(column=column, cadence=cadence, **by_time)
        declaration = replace(declaration, time_range=time_range)
    return replace(declaration, meaning=dict(_meaning(declaration)))


def _auto_restatement(draft: BlockDraft) -> AutoRestatement | None:
    cron = draft.options.get("auto_restatement_cron")
    if cron is None or draft.options.get("disable_restatement"):
        return None
    zone = draft.values.get("cadence.cron_tz", "UTC")
    return AutoRestatement(cron, zone, draft.options.get("auto_restatement_intervals"))


def _options(draft: BlockDraft, script: Script, kind: Kind) -> Options:
    """Return the options of the kind; one that is queryless gives the query itself."""
    if not kind.queryless:
        return draft.chosen
    path = seed_path(draft.options["path"], script.path, script.root)
    names = [column.name for column in draft.values.get("columns", ())]
    return Seed(seed_query(path, draft.options["csv_settings"] or {}, names, draft.dialect))


def _meaning(declaration: Declaration) -> Iterator[tuple[str, object]]:
    """The same as that of annotations that say the same, so that no slice is stale for its form."""
    target = declaration.target
    table = target.table if target.schema == DEFAULT_SCHEMA else target.qualified
    made = Materialize(
        Asset("ducklake", f"{target.lake}/{table}"),
        append=declaration.strategy.only_adds,
        unique_key=",".join(declaration.keys) or None,
        sequence=declaration.upsert.sequence,
        deletes=declaration.upsert.deletes,
    )
    yield "materialize", made.to_dict()
    yield "partition", None
    layout, columns = declaration.layout, declaration.columns
    if declaration.strategy.by_partition_keys:
        yield "partitions", list(layout.partitioned_by)
    if declaration.time_range is not None and declaration.time_range.column is not None:
        yield "time", list(declaration.time_range.column.texts)
    if declaration.custom is not None:
        yield "custom", list(declaration.custom.texts)
    if declaration.history is not None:
        yield "history", list(declaration.history.texts)
    if declaration.upsert.has_rules or declaration.key_expressions:
        yield "upsert", [list(declaration.key_expressions), *declaration.upsert.texts]
    if columns:
        yield "columns", [[column.name, column.type] for column in columns]
    if declaration.about.stamp:
        yield "stamp", declaration.about.stamp
