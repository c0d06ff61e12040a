"""Settings of other tools that Penstock does not take: each with its refusal, and what to write.

The options of DuckDB's ATTACH for lakes that Penstock does not take, each with its refusal.

Options are those of the format's specification (0.3, "Connecting") and of DuckDB 1.5.5, without
those that `Lake.attach` has as keywords.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from penstock.errors import ConfigError, Diagnostic, Location, UnsupportedFeature

_MIGRATES = (
    "Penstock migrates no catalogs: it reads the older versions as they are",
    "leave it out; to write to the lake, attach it once with DuckDB and AUTOMATIC_MIGRATION",
)
# By name: what is wrong with it, and what to do.
_REFUSED: Mapping[str, tuple[str, str]] = {
    "automatic_migration": _MIGRATES,
    "migrate_if_required": _MIGRATES,
    "encrypted": (
        "encrypted files are neither written nor read",
        "leave it out, or use DuckDB for this lake",
    ),
    "busy_timeout": (
        "the time to wait for a lock has another option",
        "write lock_timeout, in seconds",
    ),
    "metadata_catalog": (
        "Penstock does not attach the catalog's database to anything, so it needs no name",
        "leave it out",
    ),
    "metadata_path": (
        "the URI says where the catalog is",
        "write ducklake:PATH, ducklake:sqlite:PATH or ducklake:postgres:dbname=NAME host=HOST",
    ),
    "metadata_parameters": (
        "the URI has the parameters of the catalog's database",
        "write them as libpq's keywords: ducklake:postgres:dbname=NAME host=HOST sslmode=require",
    ),
    "type": (
        "a lake is always a DuckLake",
        "leave it out",
    ),
    "read_write": (
        "a lake is attached for writing unless read_only is set",
        "leave it out",
    ),
    "default_table": (
        "a lake has no table that is meant when none is named",
        "name the table",
    ),
    "recovery_mode": (
        "it is a matter of DuckDB's own storage",
        "leave it out",
    ),
}
_META = "meta_"
_PARAMETERS = "metadata_parameters"
# Options that ask for what Penstock does in any case.
_HARMLESS = dict.fromkeys(("automatic_migration", "migrate_if_required", "encrypted"), False)
# Keywords of `Lake.attach` that penstock.toml does not take: a project writes to the lake as it is.
_NOT_FOR_PROJECTS = ("read_only", "snapshot_version", "snapshot_time", "create_if_not_exists")


def refuse_others(options: Mapping[str, object], known: Collection[str]) -> None:
    """Raise UnsupportedFeature for an option that is refused, ConfigError for one that is unknown.

    ``known`` are the names of the options that are taken.
    """
    for name, value in options.items():
        folded = name.lower()
        if folded in _HARMLESS and value == _HARMLESS[folded]:
            continue
        refused = refusal(folded)
        if refused is None:
            raise _unknown(name, known)
        raise UnsupportedFeature(refused[0], hint=refused[1], data={"option": folded})


def refusal(name: str) -> tuple[str, str] | None:
    """Return why an option that DuckDB has is refused, and what to do; ``None``
    for any other name.
    """
    refused = _REFUSED.get(_PARAMETERS if name.startswith(_META) else name)
    return refused and (f"the option {name} is not taken: {refused[0]}", refused[1])


def refusal_for_project(name: str) -> tuple[str, str] | None:
    """`refusal` of a key of a lake in penstock.toml."""
    if name not in _NOT_FOR_PROJECTS:
        return refusal(name)
    return (
        f"the option {name} is not for a project's lake: a project writes to it, as it is now",
        f"attach the lake in Python: Lake.attach(..., {name}=...)",
    )


def _unknown(name: str, known: Collection[str]) -> ConfigError:
    near = difflib.get_close_matches(name.lower(), [*known, *_REFUSED], n=1)
    return ConfigError(
        f"a lake is attached with no option {name!r}",
        hint=f"did you mean {near[0]!r}?" if near else f"options are {', '.join(known)}",
    )


FILE_NAMES = ("config.yaml", "config.yml", "config.py")
#: keys that only SQLMesh's configuration has
_OURS = frozenset({"gateways", "default_gateway", "model_defaults", "default_connection"})
_DEFAULTS = {"start": "start", "cron": "cron", "owner": "owner", "audits": "data_tests"}
#: what there is in place of each key, of `model_defaults` with its name before
_INSTEAD: Mapping[str, str] = {
    "gateways": "[lakes.main] catalog and data_path in penstock.toml",
    "default_gateway": "the first of [lakes] in penstock.toml",
    "model_defaults.dialect": '[project] dialect = "duckdb" (or "spark") in penstock.toml',
    "variables": "[project.variables] in penstock.toml, with the same names",
    **{
        f"model_defaults.{theirs}": f"{ours} in [project.defaults] of penstock.toml"
        for theirs, ours in _DEFAULTS.items()
    },
    "linter": "`penstock check` and `penstock format --check` in CI",
    "users": "owner in [project.defaults], and [notify.NAME] in penstock.toml",
    "notification_targets": "[notify.NAME] in penstock.toml",
    "environment_suffix_target": "schema_suffix in [environments.NAME] of penstock.toml",
    "time_column_format": "the format of time_column in each MODEL (...)",
    "before_all": "a model with `-- materialize manual`",
    "after_all": "a model with `-- materialize manual`",
}
#: folders of a project that have no counterpart here
_FOLDERS = ("linter", "metrics", "signals")
_IN_MODEL = "in each MODEL (...)"


def find(root: Path) -> Path | None:
    """The file of a directory that configures SQLMesh."""
    return next((root / name for name in FILE_NAMES if _is_sqlmesh(root / name)), None)


def dbt_hint(directory: Path) -> str | None:
    """Return what to do in the directory of a dbt project."""
    if not (directory / "dbt_project.yml").is_file():
        return None
    return "dbt_project.yml is dbt's: `penstock import dbt . --into DIR` writes a project from it"


def start_hint(directory: Path) -> str | None:
    """Return what to do in a directory that is a project of SQLMesh or dbt and none of Penstock."""
    path = find(directory)
    if path is None:
        return dbt_hint(directory)
    return (
        f"{path.name} is SQLMesh's: write a penstock.toml beside it, with [project] name and "
        "dialect, and [lakes.main] catalog and data_path; `penstock check` says what else to change"
    )


def findings(root: Path) -> Iterator[Diagnostic]:
    """A warning for a configuration of SQLMesh: which of its keys have a counterpart, and where."""
    path = find(root)
    if path is None:
        return
    keys = list(_keys(_read(path)))
    said = f": {', '.join(keys)}" if keys else ""
    instead = [f"{key}: {_instead(key)}" for key in keys if _instead(key)]
    message = f"the file is SQLMesh's, and Penstock does not read it{said}"
    folders = [f"{name}/" for name in _FOLDERS if (root / name).is_dir()]
    if folders:
        message += f"; nor does it read {', '.join(folders)}"
    hint = "; ".join(instead) or "write what it says in penstock.toml, then remove the file"
    yield Diagnostic("warning", message, Location(path), hint, "sqlmesh-config")


def _instead(key: str) -> str | None:
    return _INSTEAD.get(key, _IN_MODEL if key.startswith("model_defaults.") else None)


def _is_sqlmesh(path: Path) -> bool:
    if not path.is_file():
        return False
    if path.suffix == ".py":
        return "sqlmesh" in path.read_text(encoding="utf-8", errors="replace")
    return bool(_OURS & _read(path).keys())


def _read(path: Path) -> Mapping[str, Any]:
    """Return what a file says; nothing of one that cannot be read."""
    import yaml

    try:
        text = path.read_text(encoding="utf-8", errors="replace")
        content = _arguments(text) if path.suffix == ".py" else yaml.safe_load(text)
    except (yaml.YAMLError, SyntaxError, RecursionError, OSError, ValueError):
        return {}
    return content if isinstance(content, Mapping) else {}


def _arguments(text: str) -> Mapping[str, Any]:
    """Return the names that Python gives to ``Config``, with those of calls as their values."""
    return {
        keyword.arg: {inner.arg: None for inner in getattr(keyword.value, "keywords", ())}
        for call in ast.walk(ast.parse(text))
        if isinstance(call, ast.Call) and ast.unparse(call.func).split(".")[-1] == "Config"
        for keyword in call.keywords
        if keyword.arg
    }


def _keys(content: Mapping[str, Any]) -> Iterator[str]:
    for key, value in content.items():
        if key == "model_defaults" and isinstance(value, Mapping):
            yield from (f"{key}.{name}" for name in value)
        else:
            yield str(key)
