"""``schema_suffix`` and ``reads``: an environment with tables of its own beside another one's.

    [environments.dev]
    schema_suffix = "_${USER}"
    reads = "prod"

Models of the environment are made in the schemas with the suffix; the tables that it has not made
are read where the environment ``reads`` has them. Both are environments of the same catalogs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from penstock.errors import ConfigError, Location
from penstock.settings.retention import Setting

_SUFFIX = re.compile(r"\w+")
_VARIABLE = re.compile(r"\$\{[^{}]*\}")

#: the catalog of each lake, and the schema of its metadata
Places = Mapping[str, tuple[str, str | None]]


@dataclass(frozen=True, slots=True)
class Environment:
    """An environment of runs: its ``name`` in settings, and the ``suffix`` behind the schemas of
    its tables, empty for none. Environments with one suffix make the same tables.
    """

    name: str
    suffix: str


@dataclass(frozen=True, slots=True)
class OwnTables:
    """``suffix`` is put behind the schemas of models; ``reads`` is the environment whose tables are
    read where it has none of its own, ``default`` among them; None: nothing is read elsewhere.
    """

    suffix: str
    reads: str | None = None


def read_own_tables(
    get: Callable[[str], Setting | None],
    lakes: Places,
    others: Callable[[str, Location], Mapping[str, Setting]],
    lakes_of: Callable[[Mapping[str, Setting]], Places],
) -> OwnTables | None:
    """Return what the settings say; ``others`` are those of another environment. Raises ConfigError
    for a suffix that no schema has, and an environment that cannot be read.
    """
    suffix, reads = get("environment.schema_suffix"), get("environment.reads")
    if suffix is None:
        if reads is None:
            return None
        raise ConfigError(
            f"the environment reads the tables of {reads.value!r}, and has no names for its own",
            location=reads.origin,
            hint='add schema_suffix = "_dev", which is put behind the schemas of its tables',
        )
    if not _SUFFIX.fullmatch(suffix.value):
        raise ConfigError(
            f"schema_suffix is {suffix.value!r}, and can have letters, digits and _ only",
            location=suffix.origin,
            hint='write as in "_dev"',
        )
    if reads is None:
        return OwnTables(suffix.value)
    theirs = others(reads.value, reads.origin)
    if "environment.schema_suffix" in theirs:
        raise ConfigError(
            f"reads is {reads.value!r}, an environment with a schema_suffix itself",
            location=reads.origin,
            hint="name the environment that has the tables without one",
        )
    _require_same(lakes, lakes_of(theirs), reads)
    return OwnTables(suffix.value, reads.value)


def _require_same(lakes: Places, theirs: Places, reads: Setting) -> None:
    for name, place in lakes.items():
        if theirs.get(name) != place:
            raise ConfigError(
                f"lake {name!r} has another catalog than in environment {reads.value!r}, whose "
                "tables cannot be read then",
                location=reads.origin,
                hint="leave out reads, or use the same catalog (and metadata_schema) in both",
            )


def pattern_of(suffix: str) -> str:
    """Return the pattern of a suffix as it is written: a variable stands for any word."""
    return r"\w+".join(map(re.escape, _VARIABLE.split(suffix)))


def is_of_another(
    table: str, own: OwnTables | None, suffixes: Sequence[str], tables: Iterable[str]
) -> bool:
    """Return whether a table that runs made, ``schema.table``, is another environment's.

    ``tables`` are those of the models. Without ``own`` tables others are those in a schema of a
    model's with a suffix that some environment has.
    """
    schema, _, name = table.casefold().partition(".")
    if own is not None:
        return not schema.endswith(own.suffix.casefold())
    if not suffixes:
        return False
    schemas = {of for of, _, each in (t.casefold().partition(".") for t in tables) if each == name}
    patterns = (f"{re.escape(of)}(?:{suffix})" for of in schemas for suffix in suffixes)
    return any(re.fullmatch(pattern, schema, re.IGNORECASE) for pattern in patterns)
