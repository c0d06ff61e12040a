"""Settings: penstock.toml < [environments.NAME] < PENSTOCK_ variables < flags, as frozen values.

The only reader of ``os.environ``. Every setting is known by a dotted key (``lakes.main.catalog``);
the variable of it is ``PENSTOCK_LAKES_MAIN_CATALOG``. ``PENSTOCK_ENV`` names the environment.
Relative paths are relative to penstock.toml, whatever the working directory is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from penstock.errors import ConfigError, Location
from penstock.masking import masked_repr
from penstock.settings.environment_tables import Environment, OwnTables, Places, read_own_tables
from penstock.settings.keys import DELTA, ENVIRONMENT, NAMED, SECTIONS, table_values, value_of
from penstock.settings.project_settings import ModelDefaults
from penstock.settings.project_settings import Value as VariableValue
from penstock.settings.retention import Retention, Setting, read_retention
from penstock.settings.serve_settings import ServeSettings
from penstock.settings.settings_file import (
    DEFAULT_ENVIRONMENT,
    FILE_NAME,
    convert,
    known,
    names_in,
    read_settings_file,
    suffixes_in,
    with_variables,
)
from penstock.settings.sink_settings import NotifySettings, OpenLineageSettings

PREFIX = "PENSTOCK_"
_SPARK_KEYS = ("spark.master", "spark.conf")
# Variables that Java, Spark and what reads stores for it look at.
_READ_BY_SPARK = re.compile(
    r"(?:SPARK|PYSPARK|HADOOP|YARN|JAVA|JDK|AWS|AZURE|GOOGLE|KRB5)_|_JAVA_OPTIONS$|CLASSPATH$"
    r"|PYTHON(?:PATH|HOME)$|LD_LIBRARY_PATH$|LC_|LANG$|TZ$|(?:https?|no|all)_proxy$",
    re.IGNORECASE,
)
_ENVIRONMENT = f"{PREFIX}ENV"
_LAKES = ("lakes.", f"{DELTA}.")
_STORAGE = "s3_"  # before the names of what `LakeSettings.storage` has


@dataclass(frozen=True, slots=True, repr=False)
class LakeSettings:
    """``catalog`` starts with ``ducklake:``; paths in it and ``data_path`` are absolute.

    ``kind`` is that of the destination, ``ducklake`` or ``delta``. Of a Delta root ``data_path`` is
    where its tables are, and ``catalog`` its index, beside the catalog of the default lake;
    ``deletion_vectors`` is whether its models mark rows that go instead of copying files.

    ``override_data_path``: the files are in ``data_path``, whatever the catalog says. ``storage``
    has the ``s3_`` settings without that prefix. ``places`` say where each setting was read.
    """

    name: str
    catalog: str
    data_path: str | None = None
    partition_column: str = SECTIONS["lakes"]["partition_column"].default
    metadata_schema: str | None = None
    override_data_path: bool = False
    storage: Mapping[str, object] = field(default_factory=dict)
    kind: str = "ducklake"
    deletion_vectors: bool = False
    places: Mapping[str, Location] = field(default_factory=dict, compare=False, repr=False)

    def __repr__(self) -> str:
        return masked_repr(self)


@dataclass(frozen=True, slots=True, repr=False)
class SparkSettings:
    """``master`` None: local, one thread a core. ``java_home`` and ``path`` find the Java.

    ``origin`` is where the master, or else the conf, is set. ``warm``: how many seconds a warm
    server stays without use; None: there is none. ``environ`` is what Spark reads of the
    environment, ``ci`` whether this is a machine of continuous integration. ``memory`` is what a
    run may take in bytes, Python and all, and ``memory_origin`` where that is set. ``archives`` is
    the directory of archives of Java's classes; None: there are none. ``class_archive`` is whether
    one is built in the background after a run without it; None: not in CI, and in no container.
    """

    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    java_home: str | None = None
    path: str | None = None
    origin: Location | None = field(default=None, compare=False, repr=False)
    warm: float | None = value_of({}, "spark.warm")
    environ: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    ci: bool = False
    memory: int | None = None
    memory_origin: Location | None = field(default=None, compare=False, repr=False)
    archives: Path | None = field(default=None, compare=False)
    class_archive: bool | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        return masked_repr(self)

    @property
    def meaning(self) -> Mapping[str, str]:
        """The settings of the session that decide which rows a query returns, or of which types,
        where they are not as they are without any.
        """
        said = {k: v.lower() if v.lower() in _BOOLEANS else v for k, v in self.conf.items()}
        return {
            name: value
            for name, value in sorted(said.items())
            if name.startswith(_LEGACY) or value != _MEANING.get(name, value)
        }


#: settings of Spark that decide what a query returns, with their values where none is given
_MEANING: Mapping[str, str] = {
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
    "spark.sql.orderByOrdinal": "true",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.storeAssignmentPolicy": "ANSI",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
}
_LEGACY = "spark.sql.legacy."
_BOOLEANS = frozenset({"true", "false"})
_default = partial(value_of, {})


def _serve(values: Mapping[str, Setting]) -> ServeSettings:
    return ServeSettings(**table_values(values, "serve"))


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of a project. ``root`` holds penstock.toml; ``jobs`` None: by cores.

    ``dialect`` is that of scripts and queries that name none; with ``infer_names`` a model of
    MODEL (...) that has no name has that of its path below ``models``. ``test_samples`` is how many
    failing rows of a data test are shown and recorded; 0: only their number.
    ``defaults`` are what models say that do not say it themselves.
    ``python_timeout`` is how many seconds a step in Python may take that says nothing of it; None:
    as long as it likes.
    ``retention`` is how long logs and records of runs stay. ``serve`` is for `penstock serve`.
    ``cache`` is the user's directory of what can be derived again; None: nothing is cached.
    ``notify`` are told how runs end. ``open_lineage`` says where events of lineage go, if anywhere.
    ``environment`` is the one of ``[environments.NAME]`` whose settings count; None: of none.
    ``own_tables`` says where it makes its tables, if not where all do, and ``suffixes`` are the
    patterns of what any environment puts behind the names of schemas.
    """

    root: Path
    name: str
    models: Path
    lakes: Mapping[str, LakeSettings]
    spark: SparkSettings
    jobs: int | None = _default("run.jobs")
    dialect: str = _default("project.dialect")
    infer_names: bool = _default("project.infer_names")
    test_samples: int = _default("project.test_samples")
    defaults: tuple[ModelDefaults, ...] = ()
    variables: Mapping[str, VariableValue] = field(default_factory=dict)
    python_timeout: float | None = _default("python.timeout")
    cache: Path | None = None
    retention: Retention = field(default_factory=lambda: read_retention(Path(), _default))
    notify: tuple[NotifySettings, ...] = ()
    open_lineage: OpenLineageSettings | None = None
    serve: ServeSettings = field(default_factory=lambda: _serve({}))
    environment: str | None = None
    own_tables: OwnTables | None = None
    suffixes: tuple[str, ...] = ()

    @property
    def runs_in(self) -> Environment:
        """Return the environment as runs record it."""
        suffix = "" if self.own_tables is None else self.own_tables.suffix
        return Environment(self.environment or DEFAULT_ENVIRONMENT, suffix)

    @property
    def default_lake(self) -> str | None:
        """The lake of names that name none: the only one, otherwise ``main``."""
        return default_lake(self.lakes)

    @property
    def delta_roots(self) -> frozenset[str]:
        """The names among ``lakes`` that are Delta roots."""
        return frozenset(name for name, each in self.lakes.items() if each.kind == DELTA)


def load_settings(
    root: Path,
    *,
    environment: str | None = None,
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, str] | None = None,
) -> Settings:
    """Read ``root/penstock.toml`` in an environment, then variables, then ``overrides`` (dotted
    keys). Without ``environment`` it is the one that ``PENSTOCK_ENV`` names, or none.
    """
    environ = os.environ if environ is None else environ
    root = root.resolve()
    chosen, at = _environment(environment, environ)
    file = read_settings_file(root / FILE_NAME)
    values = with_variables(file.of(chosen, at), environ)
    values |= _from_variables(environ, {name: names_in(name, values) for name in NAMED})
    for key, text in (overrides or {}).items():
        values[key] = convert(key, text, Location(f"flag for {key}"))
    settings = replace(_build(root, values, environ), environment=chosen)
    settings = replace(settings, suffixes=suffixes_in(file))
    if not any(key.startswith(f"{ENVIRONMENT}.") for key in values):
        return settings

    def others(name: str, where: Location) -> Mapping[str, Setting]:
        theirs = file.of(None if name == DEFAULT_ENVIRONMENT else name, where)
        lakes = {k: v for k, v in theirs.items() if k.startswith((*_LAKES, ENVIRONMENT))}
        return {**with_variables(lakes, environ), **_of_lakes(values, environ)}

    own = read_own_tables(
        values.get, _places(settings.lakes), others, lambda of: _places(_build_lakes(root, of))
    )
    return replace(settings, own_tables=own)


def _of_lakes(values: Mapping[str, Setting], environ: Mapping[str, str]) -> dict[str, Setting]:
    """Return what variables say of lakes, whatever the environment."""
    known = _from_variables(environ, {name: names_in(name, values) for name in NAMED})
    return {key: each for key, each in known.items() if key.startswith(_LAKES)}


def _places(lakes: Mapping[str, LakeSettings]) -> Places:
    return {name: (lake.catalog, lake.metadata_schema) for name, lake in lakes.items()}


def _environment(named: str | None, environ: Mapping[str, str]) -> tuple[str | None, Location]:
    """Return the name of the environment, and who gave it. The default one has none."""
    name, at = named, Location("--env")
    if name is None:
        name, at = (
            environ.get(_ENVIRONMENT) or None,
            Location(f"environment variable {_ENVIRONMENT}"),
        )
    return None if name == DEFAULT_ENVIRONMENT else name, at


def _from_variables(
    environ: Mapping[str, str], names: Mapping[str, Collection[str]]
) -> dict[str, Setting]:
    values = {}
    for name, text in sorted(environ.items()):
        section, _, rest = name.removeprefix(PREFIX).lower().partition("_")
        if not name.startswith(PREFIX) or section not in SECTIONS or not rest:
            continue  # other PENSTOCK_ names belong to tools around the project
        at = Location(f"environment variable {name}")
        key = _variable_key(section, rest, names.get(section), at)
        values[key] = convert(key, text, at)
    return values


def _variable_key(section: str, rest: str, names: Collection[str] | None, at: Location) -> str:
    """The dotted key. Of a section of ``names`` one is matched whatever its case, or is new."""
    allowed = SECTIONS[section]
    if names is None:
        known(rest, allowed, f"key in [{section}]", at)
        return f"{section}.{rest}"
    for key in sorted(allowed, key=len, reverse=True):  # one ends like another
        if rest.endswith(f"_{key}"):
            name = rest.removesuffix(f"_{key}")
            own = {each.lower(): each for each in names}
            return f"{section}.{own.get(name, name)}.{key}"
    raise ConfigError(
        f"does not end in a setting of {NAMED[section]}",
        location=at,
        hint=f"settings of {NAMED[section]} are "
        + ", ".join(sorted(key.upper() for key in allowed)),
    )


def _build(root: Path, values: Mapping[str, Setting], environ: Mapping[str, str]) -> Settings:
    value = partial(value_of, values)
    cache, name = _cache(environ), value("project.name") or root.name
    return Settings(
        root=root,
        name=name,
        models=root / value("project.models"),
        lakes=_build_lakes(root, values),
        spark=SparkSettings(
            master=value("spark.master"),
            conf=_spark_conf(values),
            java_home=environ.get("JAVA_HOME") or None,
            path=environ.get("PATH"),
            origin=next((values[key].origin for key in _SPARK_KEYS if key in values), None),
            warm=value("spark.warm"),
            environ={name: text for name, text in environ.items() if _READ_BY_SPARK.match(name)},
            ci=environ.get("CI", "").lower() not in {"", "0", "false"},
            archives=cache / "java" if cache else None,
            memory=value("spark.memory"),
            memory_origin=values["spark.memory"].origin if "spark.memory" in values else None,
            class_archive=value("spark.class_archive"),
        ),
        jobs=value("run.jobs"),
        dialect=value("project.dialect"),
        infer_names=value("project.infer_names"),
        test_samples=value("project.test_samples"),
        defaults=value("project.defaults") or (),
        variables=value("project.variables") or {},
        python_timeout=value("python.timeout"),
        cache=cache,
        retention=read_retention(root, value),
        serve=_serve(values),
        open_lineage=_open_lineage(root, name, values),
        notify=tuple(_notify(name, values) for name in names_in("notify", values)),
    )


def _open_lineage(
    root: Path, project: str, settings: Mapping[str, Setting]
) -> OpenLineageSettings | None:
    if not any(key.startswith("openlineage.") for key in settings):
        return None
    hint = 'write one: url = "http://marquez:5000", or file = "lineage.jsonl"'
    values = _one_of_both("openlineage", ("url", "file"), settings, "[openlineage]", hint)
    return OpenLineageSettings(
        namespace=values.get("namespace", project),
        url=values.get("url"),
        file=root / values["file"] if "file" in values else None,
        api_key=values.get("api_key"),
    )


def _notify(name: str, settings: Mapping[str, Setting]) -> NotifySettings:
    table, pair = f"notify.{name}", ("webhook", "command")
    hint = "write one of them: two tables tell two"
    return NotifySettings(name, **_one_of_both(table, pair, settings, table, hint))


def _one_of_both(
    table: str, pair: tuple[str, str], settings: Mapping[str, Setting], called: str, hint: str
) -> dict[str, Any]:
    """Return the values of a table that has one of two keys."""
    values = table_values(settings, table)
    if (pair[0] in values) != (pair[1] in values):
        return values
    raise ConfigError(
        f"{called} has {'both' if pair[0] in values else 'no'} {' and '.join(pair)}",
        location=next(
            setting.origin for key, setting in settings.items() if key.startswith(f"{table}.")
        ),
        hint=hint,
    )


def _cache(environ: Mapping[str, str]) -> Path | None:
    """Not a setting of the project: a project from elsewhere must not choose what is trusted."""
    named = environ.get("PENSTOCK_CACHE_DIR")
    if named is not None:
        return Path(named).absolute() if named else None
    from platformdirs import user_cache_path

    return user_cache_path("penstock", appauthor=False)


def _build_lakes(root: Path, values: Mapping[str, Setting]) -> dict[str, LakeSettings]:
    names = names_in("lakes", values)
    if not names:
        raise ConfigError(
            "there is no lake to write to",
            location=Location(root / FILE_NAME),
            hint='add a section [lakes.main] with catalog = "sqlite:lake/meta.sqlite" '
            'and data_path = "lake/data"',
        )
    lakes = {name: _build_lake(root, name, values) for name in names}
    state = lakes[default_lake(lakes) or names[0]]
    roots = names_in(DELTA, values)
    return {**lakes, **{name: _build_delta(root, name, values, lakes, state) for name in roots}}


def default_lake(lakes: Mapping[str, LakeSettings]) -> str | None:
    """The lake of names that name none: the only one, otherwise ``main``."""
    names = [name for name, each in lakes.items() if each.kind != DELTA]
    if len(names) == 1:
        return names[0]
    return "main" if "main" in names else None


def _settings_of(
    section: str, what: str, name: str, values: Mapping[str, Setting]
) -> dict[str, Setting]:
    settings = {
        key: values[f"{section}.{name}.{key}"]
        for key in SECTIONS[section]
        if f"{section}.{name}.{key}" in values
    }
    for key, setting in settings.items():
        if setting.value == "":
            raise ConfigError(
                f"{key} of {what} {name!r} is empty",
                location=setting.origin,
                hint="give it a value, or leave it out",
            )
    return settings


def _build_delta(
    root: Path,
    name: str,
    values: Mapping[str, Setting],
    lakes: Mapping[str, LakeSettings],
    state: LakeSettings,
) -> LakeSettings:
    """A Delta root; its index is beside the catalog of ``state``, the lake with the records."""
    settings = _settings_of(DELTA, "Delta root", name, values)
    first = next(iter(settings.values())).origin
    if any(name.casefold() == each.casefold() for each in lakes):
        raise ConfigError(
            f"{name!r} is the name of a lake and of a Delta root, which SQL could not tell apart",
            location=first,
            hint=f"give one of [lakes.{name}] and [{DELTA}.{name}] another name",
        )
    if "root" not in settings:
        raise ConfigError(
            f"Delta root {name!r} has no root",
            location=first,
            hint='root = "delta", or root = "s3://bucket/delta": tables are in root/schema/table',
        )
    given = {key: setting.value for key, setting in settings.items()}
    catalog, schema = index_of(state.catalog, name)
    s3 = [key for key in given if key.startswith(_STORAGE)]
    return LakeSettings(
        name=name,
        catalog=catalog,
        metadata_schema=schema,
        data_path=_absolute(root, given["root"]),
        partition_column=given.get("partition_column", state.partition_column),
        storage={key.removeprefix(_STORAGE): given[key] for key in s3},
        kind=DELTA,
        deletion_vectors=given.get("deletion_vectors", False),
        places={key: setting.origin for key, setting in settings.items()},
    )


def index_of(catalog: str, name: str) -> tuple[str, str | None]:
    """The catalog of a Delta root, and the schema of its tables: a file beside that of a lake's
    ``catalog``, or a schema of the same database.
    """
    kind, _, path = catalog.removeprefix("ducklake:").partition(":")
    if kind == "postgres":
        return catalog, f"penstock_delta_{name}"
    file = Path(path or kind)
    return f"ducklake:sqlite:{file.with_name(f'{file.stem}.delta-{name}.sqlite')}", None


def _build_lake(root: Path, name: str, values: Mapping[str, Setting]) -> LakeSettings:
    settings = _settings_of("lakes", "lake", name, values)
    if "catalog" not in settings:
        raise ConfigError(
            f"lake {name!r} has no catalog",
            location=next(iter(settings.values())).origin,
            hint='catalog = "sqlite:lake/meta.sqlite" or "postgres:dbname=..."',
        )
    given = {key: setting.value for key, setting in settings.items()}
    if given.get("override_data_path") and "data_path" not in given:
        raise ConfigError(
            f"lake {name!r} has override_data_path and no data_path",
            location=settings["override_data_path"].origin,
            hint="say in data_path where the files are",
        )
    given["catalog"] = _catalog_uri(root, given["catalog"])
    if "data_path" in given:
        given["data_path"] = _absolute(root, given["data_path"])
    s3 = [key for key in given if key.startswith(_STORAGE)]
    return LakeSettings(
        name=name,
        storage={key.removeprefix(_STORAGE): given.pop(key) for key in s3},
        places={key: setting.origin for key, setting in settings.items()},
        **given,
    )


def _catalog_uri(root: Path, text: str) -> str:
    """``ducklake:`` in front, and a file's path absolute; the catalog checks the rest."""
    uri = text.removeprefix("ducklake:")
    kind, colon, path = uri.partition(":")
    if colon and kind in {"sqlite", "duckdb"} and path:
        return f"ducklake:{kind}:{_absolute(root, path)}"
    if uri and not colon:  # a file without a kind
        return f"ducklake:{_absolute(root, uri)}"
    return f"ducklake:{uri}"


def _absolute(root: Path, path: str) -> str:
    return path if "://" in path else str(root / path)


def _spark_conf(values: Mapping[str, Setting]) -> dict[str, str]:
    """Texts as Spark wants them; booleans in its spelling."""
    conf: dict[str, str] = {}
    table = values.get("spark.conf")
    for key, value in (table.value if table else {}).items():
        if isinstance(value, dict | list):
            assert table is not None
            raise ConfigError(
                f"spark.conf: {key} must be one value",
                location=table.origin,
                hint=f'quote the whole name: "{key}.…" = "value"',
            )
        conf[key] = str(value).lower() if isinstance(value, bool) else str(value)
    for key, item in values.items():
        if key.startswith("spark.conf."):
            conf[key.removeprefix("spark.conf.")] = str(item.value)
    return conf
