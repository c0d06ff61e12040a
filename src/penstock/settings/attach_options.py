"""The options of DuckDB's ATTACH for lakes that Penstock does not take, each with its refusal.

Options are those of the format's specification (0.3, "Connecting") and of DuckDB 1.5.5, without
those that `Lake.attach` has as keywords.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping

from penstock.errors import ConfigError, UnsupportedFeature

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
