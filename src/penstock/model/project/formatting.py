"""Scripts rewritten in the canonical spelling of a form, or in the other form.

Only what declares the model is rewritten: the query stays letter by letter, and no comment is
lost. What comes out is read again, and has to declare the same.

The files of models written in canonical spelling, or in another form, line endings kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from penstock.errors import ArgumentError, Diagnostic, InputError, Location, ModelError
from penstock.model.definition.model import Model
from penstock.model.files.header_lines import is_unclosed, read_header
from penstock.model.files.source_map import Source
from penstock.model.headers.annotation import CRONS, SCHEMA_CHANGES, lines_of, parse
from penstock.model.headers.draft import Annotations
from penstock.model.headers.properties import KEYS, KEYWORDS, PROPERTIES
from penstock.model.headers.syntax import begins_model, comments, formatted, read_block
from penstock.model.headers.values import quoted, write_list, write_name, write_table, write_text
from penstock.model.project.loader import Place, read_declaration, with_own_audits
from penstock.model.project.python_models import SUFFIX as PYTHON
from penstock.model.script.declaration import Declaration, SchemaChange
from penstock.model.time.needs import NeedLine
from penstock.model.time.partition import PartitionSpec
from penstock.model.time.time_range import TimeRange
from penstock.model.values.asset import DEFAULT_SCHEMA, Asset, Materialize
from penstock.model.values.custom_strategy import Custom
from penstock.model.values.history import History
from penstock.model.values.kinds import KINDS, Kind
from penstock.model.values.strategy import Strategy
from penstock.model.values.upsert import Upsert
from penstock.sql.literals import plain_text_literal

FORMS = ("annotations", "model")
# What becomes of new and of missing columns: `allow` and `warn`, and `keep` and `ignore`, differ in
# a notice alone.
_ADDED = {"allow": "add", "warn": "add", "ignore": "ignore", "error": "error"}
_MISSING = {"allow": "drop", "warn": "drop", "ignore": "leave", "keep": "leave", "error": "error"}
#: the order of properties in MODEL (...); those that all models have come first
ORDER = (
    *("description", "owner", "cron", "cron_tz", "interval_unit", "start", "end"),
    *("catchup", "allow_partials", "stamp", "project", "tags", "partitioned_by", "clustered_by"),
    *("depends_on", "needs", "session_properties", "grains", "references", "columns"),
    *("column_descriptions", "audits", "incremental", "late", "formatting"),
)
# In words that mean the same in every dialect of a model.
_TIMES = {"TIMESTAMP_NTZ": "TIMESTAMP", "TIMESTAMP": "TIMESTAMPTZ", "DATE": "DATE"}
#: the kinds that a strategy with a query may be written as
_KINDS: Mapping[Strategy, Kind] = {
    kind.strategy: kind
    for kind in KINDS.values()
    if kind.strategy is not None and not kind.queryless
}


class CannotSay(Exception):
    """A form lacks words for a declaration; ``things`` are what it cannot say."""

    def __init__(self, form: str, things: tuple[str, ...]) -> None:
        self.form = form
        self.things = things
        super().__init__(f"{form} cannot say {', '.join(things)}")

    @property
    def hint(self) -> str:
        """Return what to do about it."""
        if any(thing.startswith("on_additive_change") for thing in self.things):
            return "leave the script in its form, or write on_additive_change allow in its kind"
        return "leave the script in its form, or remove that"


def annotation_lines(declaration: Declaration, dialect: str = "spark") -> list[str]:
    """The lines of a header, each with ``--``, where ``dialect`` is that of a model that names
    none. Raises CannotSay.
    """
    lacking = tuple(_not_in_annotations(declaration))
    if lacking:
        raise CannotSay("annotations", lacking)
    lines = lines_of(_annotations(declaration))
    if declaration.dialect == "spark" != dialect:  # the only one that has no line
        lines.append("dialect spark")
    return [f"-- {line}" for line in lines]


def model_text(declaration: Declaration, dialect: str = "spark") -> str:
    """``MODEL (...);`` where ``dialect`` is that of a model that names none. Raises CannotSay."""
    lacking = tuple(_not_in_model(declaration))
    if lacking:
        raise CannotSay("MODEL (...)", lacking)
    lines = [f"name {write_table(declaration.target)}", f"kind {_write_kind(declaration)}"]
    lines += [f"dialect {declaration.dialect}"] if declaration.dialect != dialect else []
    for row, form in map(KEYS.__getitem__, ORDER):
        if form.writer is not None and bool(row.value_in(declaration)) != row.default:
            lines.append(f"{form.key} {form.writer(row.value_in(declaration))}")
    properties = ",\n  ".join(lines)
    return f"MODEL (\n  {properties}\n);"


def comparable(declaration: Declaration) -> dict[str, object]:
    """Return what two declarations have in common that say the same, whatever their form is."""
    values = {item.name: getattr(declaration, item.name) for item in fields(Declaration)}
    for name in ("path", "code", "meaning", "places", "takes_statements"):
        del values[name]
    for name in ("columns", "column_types"):
        values[name] = [(column.name, column.type, column.dialect) for column in values[name]]
    if declaration.cadence.cron == "@daily":  # which is the default
        values["cadence"] = replace(declaration.cadence, cron=None)
    if declaration.time_range is not None:
        values["time_range"] = replace(declaration.time_range, cadence=values["cadence"])
    values["schema_change"] = None
    values["disable_restatement"] = bool(declaration.disable_restatement)
    if not declaration.replaces_table:
        values["schema_change"] = _policy(declaration.schema_change)
    return values


def _not_in_annotations(declaration: Declaration) -> Iterator[str]:
    yield from _kind_not_in_annotations(declaration)
    by_time, cadence = declaration.time_range, declaration.cadence
    in_lines: set[str] = set()
    if by_time is not None and by_time.column is not None:
        in_lines.add("cadence.start")
        if (cadence.cron or "@daily") in {cron or "@daily" for cron in CRONS.values()}:
            in_lines.add("cadence.cron")
    for row, form in KEYS.values():
        if form.writer is not None and row.field not in in_lines:
            if row.line is not None:
                yield from row.line.limits(row.value_in(declaration))
            elif bool(row.value_in(declaration)) != row.default:
                yield form.key
    if by_time is not None and by_time.batch_concurrency:
        yield "batch_concurrency"
    if by_time is not None and by_time.column is not None:
        yield from [] if by_time.partition_by_time_column else ["partition_by_time_column"]
        if ("(" in by_time.column.name) != by_time.column.by_expression:
            yield "a time_column with such a name"


def _kind_not_in_annotations(declaration: Declaration) -> Iterator[str]:
    strategy, history = declaration.strategy, declaration.history
    change = declaration.schema_change
    if declaration.generated:
        yield "a kind without a query"
    if history is not None and history.is_current is None:
        yield f"kind {history.kind}"
    elif not strategy.annotated:
        yield f"kind {next(kind.name for kind in KINDS.values() if kind.strategy == strategy)}"
    elif not declaration.replaces_table and _policy(change) not in _words(declaration):
        missing = "ignore" if change.missing == "keep" else change.missing
        yield f"on_additive_change {change.added} with on_destructive_change {missing}"
    options: dict[str, object] = {
        "unique_key with expressions": declaration.key_expressions,
        "when_matched": declaration.upsert.matched,
        "merge_filter": declaration.upsert.merge_filter,
        "forward_only": declaration.forward_only and not strategy.by_partition_keys,
        "disable_restatement": declaration.disable_restatement,
        "auto_restatement_cron": declaration.auto_restatement,
    }
    yield from (name for name, value in options.items() if value)


def _not_in_model(declaration: Declaration) -> Iterator[str]:
    if declaration.history is not None and declaration.history.is_current is not None:
        yield "materialize history"
    elif declaration.strategy not in _KINDS:
        yield f"materialize {declaration.strategy}"
    for row in PROPERTIES:
        if row.line and row.field and not row.block and row.value_in(declaration):
            yield row.line.label or row.line.keyword
    for row, form in KEYS.values():
        if form.writer is not None:
            yield from form.limits(row.value_in(declaration))


def _policy(change: SchemaChange) -> tuple[str, str]:
    return _ADDED[change.added], _MISSING[change.missing]


def _words(declaration: Declaration) -> Mapping[tuple[str, str], str | None]:
    """The values of ``on_schema_change`` by what becomes of new and missing columns."""
    changes = SCHEMA_CHANGES[declaration.history is not None]
    return {_policy(change): word for word, change in reversed(list(changes.items()))}


def _annotations(declaration: Declaration) -> Annotations:
    values: dict[str, Any] = {
        row.line.field: row.value_in(declaration) for row in PROPERTIES if row.line and row.field
    }
    place = declaration.place("target")
    values |= {
        "in_pipeline": True,
        "materialize": _materialize(declaration),
        "partition": declaration.partition or _intervals(declaration),
        "tag": next(iter(declaration.tags), None),
        "needs": tuple(
            NeedLine(str(table), need.said, place) for table, need in declaration.input_needs
        ),
    }
    return Annotations(**values)


def _materialize(declaration: Declaration) -> Materialize:
    target, history, upsert = declaration.target, declaration.history, declaration.upsert
    table = target.table if target.schema == DEFAULT_SCHEMA else target.qualified
    word = _words(declaration).get(_policy(declaration.schema_change))
    made = Materialize(
        Asset("ducklake", f"{target.lake}/{table}"),
        manual=declaration.strategy.by_statements,
        append=declaration.strategy.only_adds,
        history=history is not None,
        track=history.track if history else (),
        sequence=upsert.sequence,
        deletes="close" if history and history.closes else upsert.deletes,
        max_closed=history.limit if history else None,
        unique_key=",".join(map(quoted, declaration.keys)) or None,
        on_schema_change=None if declaration.replaces_table else word,
        **_time_words(declaration),
    )
    assert not is_unclosed(made.unique_key or ""), "each key is in quotes that close"
    return made


def _time_words(declaration: Declaration) -> dict[str, Any]:
    by_time = declaration.time_range
    if by_time is None:
        return {}
    words: dict[str, Any] = {"lookback": by_time.lookback, "batch_size": by_time.batch_size}
    if by_time.column is not None:
        parts = (by_time.column.name, by_time.column.format)
        words["time"] = ",".join(quoted(part) for part in parts if part is not None)
    return words


def _intervals(declaration: Declaration) -> PartitionSpec | None:
    """The line that says the start of a model by time, and how often it is due."""
    cadence, by_time = declaration.cadence, declaration.time_range
    cron = None if cadence.cron == "@daily" else cadence.cron
    if by_time is None or by_time.column is None or not (cadence.start or cron):
        return None
    kind = next(kind for kind, expression in CRONS.items() if expression == cron)
    return PartitionSpec(kind, start=cadence.start)


def _write_kind(declaration: Declaration) -> str:
    """The kind with those of its options that are not the defaults."""
    history, upsert = declaration.history, declaration.upsert
    kind = _KINDS[declaration.strategy] if history is None else KINDS[history.kind]
    change, auto = declaration.schema_change, declaration.auto_restatement
    keys = (
        key if key in declaration.key_expressions else write_name(key) for key in declaration.keys
    )
    values: dict[str, object] = {
        "unique_key": write_list(keys) if declaration.keys else None,
        "when_matched": _write_rules(upsert),
        "merge_filter": upsert.merge_filter and f"({upsert.merge_filter})",
        "sequence": upsert.sequence and write_name(upsert.sequence),
        "deletes": upsert.deletes and f"({upsert.deletes})",
        "forward_only": declaration.forward_only,
        "disable_restatement": bool(declaration.disable_restatement),
        "auto_restatement_cron": auto and write_text(auto.cron),
        "auto_restatement_intervals": auto and auto.intervals,
        "on_additive_change": change.added,
        "on_destructive_change": "ignore" if change.missing == "keep" else change.missing,
        **_custom_options(declaration.custom),
        **_history_options(history),
        **_time_options(declaration.time_range),
    }
    options = [
        f"{option.name} {str(value).lower() if isinstance(value, bool) else value}"
        for option in kind.options
        if option.refusal is None
        and (value := values.get(option.name)) is not None
        and value != option.default
    ]
    return f"{kind.name} {write_list(options, by_lines=True)}" if options else kind.name


def _time_options(by_time: TimeRange | None) -> dict[str, object]:
    if by_time is None:
        return {}
    options = {item.name: getattr(by_time, item.name) for item in fields(TimeRange)}
    if by_time.column is not None:
        column, form = by_time.column, by_time.column.format
        name = column.name if column.by_expression else write_name(column.name)
        options["time_column"] = name if form is None else f"({name}, {plain_text_literal(form)})"
    return options


def _custom_options(custom: Custom | None) -> dict[str, object]:
    if custom is None:
        return {}
    pairs = (f"{write_name(k)} = {plain_text_literal(v)}" for k, v in custom.properties.items())
    return {
        "materialization": plain_text_literal(custom.materialization.name),
        "materialization_properties": write_list(pairs) if custom.properties else None,
    }


def _history_options(history: History | None) -> dict[str, object]:
    if history is None:
        return {}
    columns = write_list(map(write_name, history.track)) if history.track else "*"
    return {
        "valid_from_name": write_name(history.valid_from),
        "valid_to_name": write_name(history.valid_to),
        "invalidate_hard_deletes": history.closes,
        "max_closed": history.limit,
        "time_data_type": _TIMES[history.time_type],
        "updated_at_name": history.updated_at and write_name(history.updated_at),
        "updated_at_as_valid_from": history.by_time and history.start == "updated_at",
        "execution_time_as_valid_from": not history.by_time and history.start == "execution",
        "columns": None if history.by_time else columns,
    }


def _write_rules(upsert: Upsert) -> str | None:
    rules = []
    for rule in upsert.matched:
        when = f"WHEN MATCHED AND {rule.condition}" if rule.condition else "WHEN MATCHED"
        sets = ", ".join(f"target.{write_name(column)} = {value}" for column, value in rule.sets)
        rules.append(f"{when} THEN {f'UPDATE SET {sets}' if sets else 'DELETE'}")
    return f"({' '.join(rules)})" if rules else None


Reads = Callable[[str], Declaration | None]  # a text as a declaration, None where it is wrong
_NOT_READ_AGAIN = "a comment may read as an annotation: move it below the query's first line"


@dataclass(frozen=True, slots=True)
class Script:
    """``dialect`` is that of a script that names none; ``reads`` reads a text as this file's."""

    text: str
    declaration: Declaration
    dialect: str
    reads: Reads

    @property
    def path(self) -> Path:
        return self.declaration.path

    @property
    def form(self) -> str:
        start = read_header(self.text, self.path).end
        return "model" if begins_model(self.text, start) else "annotations"


def rewritten(script: Script, form: str | None = None) -> str:
    """The script in ``form``, its own by default, in canonical spelling.

    Raises InputError, at the script's place, for what the form cannot say.
    """
    wanted = form or script.form
    try:
        text = _WAYS[script.form, wanted](script)
    except CannotSay as error:
        raise InputError(
            f"{error.form} cannot say {', '.join(error.things)}",
            hint=error.hint,
            location=script.declaration.place("target"),
        ) from None
    _check(script, text)
    return text


def _check(script: Script, text: str) -> None:
    """That the text says what the script does."""
    declaration = script.reads(text)
    if declaration is None:
        raise InputError(
            "the script could not be read again",
            hint=_NOT_READ_AGAIN,
            location=Location(script.path),
        )
    before, after = comparable(script.declaration), comparable(declaration)
    differing = [name for name, value in before.items() if after.get(name) != value]
    if differing:
        raise InputError(
            f"the script would not say the same: {', '.join(differing)} would differ",
            hint=_NOT_READ_AGAIN,
            location=Location(script.path),
        )


def _write_annotations(script: Script) -> str:
    """Each annotation where it stands, in its canonical spelling."""
    end = script.declaration.code
    mark = "#" if script.path.suffix == PYTHON else "--"
    lines: list[str] = []
    for raw in script.text[:end].split("\n"):
        annotation = _annotation(raw, script.path)
        lines.append(raw.rstrip() if annotation is None else f"{mark} {annotation}")
    return "\n".join(lines) + script.text[end:]


def _annotation(raw: str, path: Path) -> str | None:
    """The annotation of a line on its own, in canonical spelling; None where it is not one."""
    line = next(iter(read_header(raw, path).lines), None)
    if line is None or line.keyword not in KEYWORDS:
        return None
    annotations, findings = parse(f"-- {line.text}", path)
    lines = lines_of(annotations)
    if len(lines) == 1 and not findings:
        return lines[0]
    return line.text if lines or line.keyword == "dialect" else None


def _to_model(script: Script) -> str:
    """MODEL where the first annotation stands; other comments stay before or after it, and the
    libraries that the script uses before it.
    """
    if script.path.suffix == PYTHON:
        raise CannotSay("MODEL (...)", ("a step in Python",))
    before: list[str] = []
    after: list[str] = []
    lines = before
    for raw in script.text[: script.declaration.code].rstrip().split("\n"):
        annotation = _annotation(raw, script.path)
        if annotation is not None and annotation.startswith("use "):
            before.append(f"-- {annotation}")
        elif annotation is not None:
            lines = after
        else:
            lines.append(raw)
    block = model_text(script.declaration, script.dialect)
    code = script.text[script.declaration.code :]
    return "\n".join([*before, block, *after, code.lstrip("\n")])


def _model(script: Script) -> str:
    source = Source(script.path, script.text)
    block = read_block(source, read_header(script.text, script.path).end)
    return script.text[: block.start] + formatted(source, block) + script.text[block.code :]


def _to_annotations(script: Script) -> str:
    """Comments of the block follow the annotations, a line each."""
    source = Source(script.path, script.text)
    start = read_header(script.text, script.path).end
    block = read_block(source, start)
    lines = annotation_lines(script.declaration, script.dialect)
    for comment in comments(source, block):
        inside = comment.removeprefix("--").removeprefix("/*").removesuffix("*/").strip()
        lines += [f"-- {line.strip()}".rstrip() for line in inside.split("\n")]
    above, between = script.text[:start], script.text[start : block.start].strip()
    parts = [*([above.rstrip()] if above.strip() else []), *lines]
    parts += [between] if between else []
    return "\n".join(parts) + script.text[block.code :]


_WAYS: Mapping[tuple[str, str], Callable[[Script], str]] = {
    ("annotations", "annotations"): _write_annotations,
    ("annotations", "model"): _to_model,
    ("model", "model"): _model,
    ("model", "annotations"): _to_annotations,
}


_BOM = "\ufeff"


@dataclass(frozen=True, slots=True)
class Formatter:
    """``form`` None leaves each script in its own."""

    place: Place
    form: str | None = None

    def run(
        self, models: Sequence[Model], paths: Sequence[Path], *, check: bool
    ) -> tuple[Path, ...]:
        """The files that change; they are written unless ``check``.

        Raises ModelError with the files that cannot be rewritten when the others are, which are
        ``data["changed"]``.
        """
        changed: dict[Path, str] = {}
        refused: list[Diagnostic] = []
        for model in _chosen(models, paths):
            try:
                before, after = self.formatted(model) if model.formatted else ("", "")
            except InputError as error:
                where = error.location or Location(model.path)
                refused.append(Diagnostic("error", error.message, where, error.hint, "format"))
                continue
            if after != before:
                changed[model.path] = after
        for path, text in {} if check else changed.items():
            path.write_text(text, encoding="utf-8", newline="")
        if refused:
            wrong = ModelError(refused)
            wrong.data["changed"] = list(changed)
            raise wrong
        return tuple(changed)

    def formatted(self, model: Model) -> tuple[str, str]:
        """The text of the model's file, and what it is to be."""
        with model.path.open(encoding="utf-8", newline="") as file:
            before = file.read()
        mark = _BOM if before.startswith(_BOM) else ""
        end = "\r\n" if "\r\n" in before else "\n"
        text = before.removeprefix(_BOM).replace("\r\n", "\n")
        script = Script(
            text,
            self._as_written(text, model) if self.place.defaults.folders else model,
            self.place.dialect,
            lambda text: self._declaration(text, model.path),
        )
        return before, mark + rewritten(script, self.form).replace("\n", end)

    def _declaration(self, text: str, path: Path) -> Declaration | None:
        """Return what a text says as this file's, where its own audits stand behind its query."""
        place = self.place
        if path.suffix != PYTHON:
            text, place, _ = with_own_audits(text, path, place)
        return read_declaration(text, path, place)[0]

    def _as_written(self, text: str, model: Model) -> Model:
        """The model without what the project's defaults say for it."""
        said = self._declaration(text, model.path)
        if said is None:
            return model
        # Any: a model has the fields of its declaration.
        own: dict[str, Any] = {each.name: getattr(said, each.name) for each in fields(Declaration)}
        return replace(model, **own)


def _chosen(models: Sequence[Model], paths: Sequence[Path]) -> list[Model]:
    """The models in these files and directories; all without any. Raises ArgumentError."""
    if not paths:
        return list(models)
    wanted = [path.resolve() for path in paths]
    chosen: dict[str, Model] = {}
    for written, path in zip(paths, wanted, strict=True):
        inside = [model for model in models if model.path.resolve().is_relative_to(path)]
        if not inside:
            raise ArgumentError(
                f"{written} has no model", hint="name a model's file, or a directory of some"
            )
        chosen |= {model.name: model for model in inside}
    return list(chosen.values())
