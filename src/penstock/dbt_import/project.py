"""A dbt project as files of a Penstock project, and what was not taken, with the reason."""

from __future__ import annotations

import csv
import io
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

import yaml

from penstock.dbt_import.kinds import Kind, kind_of
from penstock.dbt_import.manifest import Fields, Manifest, config_of, table_of
from penstock.dbt_import.tests import Audit, audit_of, unit_test_of
from penstock.dbt_import.text import literal, name, renamed, table
from penstock.errors import ArgumentError

_WHOLE = re.compile(r"[+-]?\d+")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def path_of(seed: Fields, root: Path) -> Path:
    """The seed's file. Raises ArgumentError where it is not there."""
    path = root / str(seed["original_file_path"])
    if not path.is_file():
        raise ArgumentError(
            f"the seed {seed['name']} has no file: {path} does not exist",
            hint="import from the directory of the dbt project",
        )
    return path


def text_of(path: Path) -> str:
    """The content of a seed's file. Raises ArgumentError where it is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ArgumentError(
            f"{path} cannot be read as UTF-8: {error}", hint="save the file as UTF-8"
        ) from None


def columns_of(seed: Fields, path: Path) -> list[tuple[str, str]]:
    """The columns of a seed with their types: those that it says, others by their values."""
    config = config_of(seed)
    given = {str(k): str(v) for k, v in dict(config.get("column_types") or {}).items()}
    rows = list(
        csv.reader(io.StringIO(text_of(path)), delimiter=str(config.get("delimiter") or ","))
    )
    if not rows:
        raise ArgumentError(f"{path} has no header", hint="write the names of its columns there")
    header, body = rows[0], [row for row in rows[1:] if row]
    ragged = next((row for row in body if len(row) != len(header)), None)
    if ragged is not None:
        raise ArgumentError(
            f"{path} has a row of {len(ragged)} values below {len(header)} names: {ragged}",
            hint="correct the row, or the seed's delimiter",
        )
    by_column = zip(*body, strict=True) if body else [()] * len(header)
    return [
        (column, given.get(column) or type_of([value for value in values if value]))
        for column, values in zip(header, by_column, strict=True)
    ]


def type_of(values: Sequence[str]) -> str:
    """The type of a column by all its values that are not empty; TEXT where it has none."""
    for kind, fits in _TYPES.items():
        if values and all(map(fits, values)):
            return kind
    return "TEXT"


def _is_moment(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is None
    except ValueError:
        return False


def _is_date(text: str) -> bool:
    try:
        return len(text) == len("2026-01-01") and bool(date.fromisoformat(text))
    except ValueError:
        return False


_TYPES: dict[str, Callable[[str], object]] = {
    "BOOLEAN": lambda text: text.lower() in {"true", "false"},
    "BIGINT": _WHOLE.fullmatch,
    "DOUBLE": _NUMBER.fullmatch,
    "DATE": _is_date,
    "TIMESTAMP_NTZ": _is_moment,
}


_IN_PYTHON = "a model in Python is to be written as a step in Python: def main(...)"
_HOOKS = ("pre-hook", "post-hook")
_VARIABLE = re.compile(r"\bvar\s*\(")
# Options that a kind, a property or another note is made of.
_TAKEN = frozenset(
    {
        *("materialized", "incremental_strategy", "unique_key", "on_schema_change", "strategy"),
        *("partition_by", "partitioned_by", "event_time", "batch_size", "begin", "lookback"),
        *("merge_update_columns", "merge_exclude_columns", "incremental_predicates", "predicates"),
        *("matched_condition", "merge_update_condition", "source_alias", "target_alias"),
        *("updated_at", "check_cols", "hard_deletes", "invalidate_hard_deletes"),
        *("snapshot_table_column_names", "dbt_valid_to_current", "contract", "tags", "grants"),
        *_HOOKS,
    }
)
# Options that change no rows, or that a compiled query has in it.
_WITHOUT_EFFECT = frozenset(
    {
        *("enabled", "alias", "schema", "database", "target_schema", "target_database", "meta"),
        *("group", "persist_docs", "quoting", "column_types", "full_refresh", "access", "docs"),
        *("packages", "on_configuration_change", "concurrent_batches", "freshness", "file_format"),
        *("static_analysis", "build_after", "penstock_stage", "quote_columns", "delimiter"),
        *("limit", "materialization", "latest_version", "description"),
    }
)


@dataclass(frozen=True, slots=True)
class Left:
    """A part of dbt's project that is not in the files, or means something else there."""

    what: str
    reason: str


@dataclass(frozen=True, slots=True)
class Imported:
    """``files`` are contents by path below the project; ``left`` was not taken; ``notes`` were, but
    do not mean quite the same.
    """

    files: Mapping[str, str]
    left: tuple[Left, ...] = ()
    notes: tuple[Left, ...] = ()


def imported(manifest: Manifest) -> Imported:
    """The files of a project that makes the tables of a dbt project.

    Raises ArgumentError where the file of a seed is not there.
    """
    left: list[Left] = []
    notes: list[Left] = []
    files = {"penstock.toml": _settings(manifest)}
    audits = _audits(manifest, files, left)
    for node in (*manifest.of_type("model"), *manifest.of_type("snapshot")):
        in_python = node.get("language") == "python"
        kind = _IN_PYTHON if in_python else kind_of(node, manifest.dialect)
        if not isinstance(kind, Kind):
            is_inside = config_of(node).get("materialized") == "ephemeral"
            (notes if is_inside else left).append(Left(_called(node), kind))
            continue
        notes += [Left(_called(node), note) for note in (*kind.notes, *_noted(node))]
        files[_path(node)] = _model(node, kind, manifest, audits[node["unique_id"]])
    for seed in manifest.of_type("seed"):
        path = path_of(seed, manifest.root)
        files[f"seeds/{path.name}"] = text_of(path)
        files[_path(seed)] = _seed(seed, path, audits[seed["unique_id"]])
    _unit_tests(manifest, files, left)
    if sources := _sources(manifest):
        files["external_models.yaml"] = yaml.safe_dump(sources, sort_keys=False, allow_unicode=True)
    return Imported(files, tuple(left), tuple(notes))


def _called(node: Fields) -> str:
    return f"{node['resource_type'].replace('_', ' ')} {node['name']}"


def _path(node: Fields) -> str:
    return f"models/{node['schema']}/{node.get('alias') or node['name']}.sql"


def _settings(manifest: Manifest) -> str:
    return (
        f'[project]\nname = "{manifest.name}"\n\n'
        '[lakes.main]\ncatalog = "sqlite:lake/meta.sqlite"\ndata_path = "lake/data"\n'
    )


def _model(node: Fields, kind: Kind, manifest: Manifest, audits: Iterable[Audit]) -> str:
    """The script of a model or snapshot."""
    dialect = manifest.dialect
    properties = {"name": table(table_of(node), dialect), "kind": kind.text, **kind.properties}
    if dialect != "spark":
        properties["dialect"] = dialect
    config = config_of(node)
    columns = {str(c["name"]): c for c in (node.get("columns") or {}).values()}
    types = {column: about.get("data_type") for column, about in columns.items()}
    if (config.get("contract") or {}).get("enforced") and types and all(types.values()):
        listed = ", ".join(f"{name(column, dialect)} {kind}" for column, kind in types.items())
        properties["columns"] = f"({listed})"
    properties |= _about(node)
    texts = {c: about["description"] for c, about in columns.items() if about.get("description")}
    if texts:
        listed = ", ".join(f"{name(c, dialect)} = {literal(text)}" for c, text in texts.items())
        properties["column_descriptions"] = f"({listed})"
    query = renamed(str(node["compiled_code"]).strip().rstrip(";"), manifest.tables())
    return _script(properties, audits, query)


def _seed(seed: Fields, path: Path, audits: Iterable[Audit]) -> str:
    config = config_of(seed)
    options = f"path '$root/seeds/{path.name}'"
    if (delimiter := str(config.get("delimiter") or ",")) != ",":
        options += f", csv_settings (delimiter = {literal(delimiter)})"
    columns = ", ".join(f"{name(c)} {kind}" for c, kind in columns_of(seed, path))
    properties = {
        "name": table(table_of(seed)),
        "kind": f"SEED ({options})",
        "columns": f"({columns})",
    }
    return _script(properties | _about(seed), audits)


def _about(node: Fields) -> dict[str, str]:
    """The properties for people."""
    found = {}
    if description := node.get("description"):
        found["description"] = literal(description)
    if tags := node.get("tags"):
        found["tags"] = f"({', '.join(map(literal, tags))})"
    return found


def _script(properties: Mapping[str, str], audits: Iterable[Audit], query: str = "") -> str:
    audits = list(audits)
    if reads := sorted({of for audit in audits for of in audit.reads}):
        properties = {**properties, "depends_on": f"({', '.join(reads)})"}
    calls = [audit.call for audit in audits]
    if calls:
        properties = {**properties, "audits": "(\n    " + ",\n    ".join(calls) + "\n  )"}
    lines = ",\n".join(f"  {key} {value}" for key, value in properties.items())
    return f"MODEL (\n{lines}\n);\n" + (f"\n{query}\n" if query else "")


def _noted(node: Fields) -> Iterator[str]:
    config = config_of(node)
    if any(config.get(hook) for hook in _HOOKS):
        yield "its hooks are not taken: statements may stand behind the query"
    if config.get("grants"):
        yield "its grants are not taken: give rights in the catalog's database"
    if _VARIABLE.search(str(node.get("raw_code") or "")):
        yield "its variables keep the values of this compilation: dbt compile --vars sets others"
    if isinstance(config.get("partition_by") or config.get("partitioned_by"), Mapping):
        yield "its partition_by is that of dbt-bigquery and not taken: list columns"
    for option, value in config.items():
        if value and option not in _TAKEN and option not in _WITHOUT_EFFECT:
            yield f"its option {option} is not converted"


def _audits(
    manifest: Manifest, files: dict[str, str], left: list[Left]
) -> Mapping[str, list[Audit]]:
    """The audits of each node; those with a query of their own become files."""
    found: dict[str, list[Audit]] = defaultdict(list)
    for node in manifest.of_type("test"):
        audit = audit_of(node, manifest)
        if isinstance(audit, str):
            left.append(Left(_called(node), audit))
            continue
        found[audit.model].append(audit)
        if audit.query is not None:
            files[f"audits/{audit.name}.sql"] = audit.query
    return found


def _unit_tests(manifest: Manifest, files: dict[str, str], left: list[Left]) -> None:
    tests: dict[str, Any] = {}
    for _, test in sorted(manifest.unit_tests.items()):
        found = unit_test_of(test, manifest)
        if isinstance(found, str):
            left.append(Left(f"unit test {test['name']}", found))
        else:
            tests[test["name"]] = found
    if tests:
        files["tests/unit_tests.yaml"] = yaml.safe_dump(tests, sort_keys=False, allow_unicode=True)


def _sources(manifest: Manifest) -> list[dict[str, Any]]:
    entries = []
    made = {table_of(node) for node in manifest.nodes.values()}
    for _, source in sorted(manifest.sources.items()):
        if table_of(source) in made:  # a table of the project, which its readers find by its name
            continue
        entry: dict[str, Any] = {"name": table_of(source)}
        if description := source.get("description"):
            entry["description"] = description
        columns = (source.get("columns") or {}).values()
        types = {c["name"]: c["data_type"] for c in columns if c.get("data_type")}
        entries.append(entry | ({"columns": types} if types else {}))
    return entries
