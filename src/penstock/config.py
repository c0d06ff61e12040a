"""Settings: penstock.toml < environment < flags, read once into frozen values.

The only reader of ``os.environ``. Every setting is known by a dotted key (``lakes.main.catalog``);
the environment spells it ``PENSTOCK_LAKES_MAIN_CATALOG``. Relative paths are relative to
penstock.toml, whatever the working directory is.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from penstock.attach_options import refusal_for_project
from penstock.durations import seconds_of
from penstock.errors import ConfigError, Location
from penstock.masking import masked_repr, shown
from penstock.model_defaults import TABLE, ModelDefaults, read_defaults
from penstock.notify_settings import KEYS as NOTIFY_KEYS
from penstock.notify_settings import NotifySettings, read_notify
from penstock.open_lineage_settings import KEYS as OPEN_LINEAGE_KEYS
from penstock.open_lineage_settings import OpenLineageSettings, read_open_lineage
from penstock.retention import LOGS, RECORDS, Retention, Setting, read_retention

FILE_NAME = "penstock.toml"
DIALECTS = ("spark", "duckdb")
PREFIX = "PENSTOCK_"
PYTHON_TIMEOUT = 3600.0  # seconds that a step in Python may take
TEST_SAMPLES = 20  # failing rows of a data test that are shown

_SPARK_KEYS = ("spark.master", "spark.conf")
_MASTER = re.compile(
    r"local(\[([1-9]\d*|\*)(\s*,\s*[1-9]\d*)?\])?|local-cluster\[.+\]|yarn|(spark|k8s|sc)://\S+"
)
_KINDS: Mapping[Any, str] = {
    str: "a text",
    int: "a whole number",
    bool: "true or false",
    dict: "a table",
    str | bool: "a text or false",
}
WARM = 900.0  # seconds that a warm Spark server stays without use
# Variables that Java, Spark and what reads stores for it look at.
_READ_BY_SPARK = re.compile(
    r"(?:SPARK|PYSPARK|HADOOP|YARN|JAVA|JDK|AWS|AZURE|GOOGLE|KRB5)_|_JAVA_OPTIONS$|CLASSPATH$"
    r"|PYTHON(?:PATH|HOME)$|LD_LIBRARY_PATH$|LC_|LANG$|TZ$|(?:https?|no|all)_proxy$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, repr=False)
class LakeSettings:
    """``catalog`` starts with ``ducklake:``; paths in it and ``data_path`` are absolute.

    ``override_data_path``: the files are in ``data_path``, whatever the catalog says. ``storage``
    has the ``s3_`` settings without that prefix. ``places`` say where each setting was read.
    """

    name: str
    catalog: str
    data_path: str | None = None
    partition_column: str = "_wm_partition"
    metadata_schema: str | None = None
    override_data_path: bool = False
    storage: Mapping[str, object] = field(default_factory=dict)
    places: Mapping[str, Location] = field(default_factory=dict, compare=False, repr=False)

    def __repr__(self) -> str:
        return masked_repr(self)

    @property
    def kind(self) -> str:
        """The kind of destination, by what its URI begins with."""
        return self.catalog.partition(":")[0]


_TYPES: Mapping[str, type] = {"str": str, "bool": bool}
_STORAGE = "s3_"  # before the names of what `LakeSettings.storage` has
# The keys of each section, with their types. Names of lakes and of Spark's settings are free.
_SECTIONS: Mapping[str, Mapping[str, Any]] = {
    "project": {
        "name": str,
        "models": str,
        "dialect": str,
        "infer_names": bool,
        "test_samples": int,
        "defaults": dict,
    },
    "lakes": {
        **{
            own.name: _TYPES[str(own.type).partition(" ")[0]]
            for own in fields(LakeSettings)
            if own.name not in {"name", "storage", "places"}
        },
        "s3_access_key": str,
        "s3_secret_key": str,
        "s3_session_token": str,
        "s3_endpoint": str,
        "s3_region": str,
        "s3_path_style": bool,
        "s3_committer": str,
    },
    "spark": {"master": str, "conf": dict, "warm": str | bool},
    "run": {"jobs": int, **RECORDS},
    "logs": LOGS,
    "python": {"timeout": str},
    "notify": NOTIFY_KEYS,
    "openlineage": OPEN_LINEAGE_KEYS,
}
#: sections of tables with names of the project's own, and what one of them is called
_NAMED: Mapping[str, str] = {"lakes": "a lake", "notify": "one who is told"}


@dataclass(frozen=True, slots=True, repr=False)
class SparkSettings:
    """``master`` None: local, one thread a core. ``java_home`` and ``path`` find the Java.

    ``origin`` is where the master, or else the conf, is set. ``warm``: how many seconds a warm
    server stays without use; None: there is none. ``environ`` is what Spark reads of the
    environment, ``ci`` whether this is a machine of continuous integration.
    """

    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    java_home: str | None = None
    path: str | None = None
    origin: Location | None = field(default=None, compare=False, repr=False)
    warm: float | None = WARM
    environ: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    ci: bool = False

    def __repr__(self) -> str:
        return masked_repr(self)


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of a project. ``root`` holds penstock.toml; ``jobs`` None: by cores.

    ``dialect`` is that of scripts and queries that name none; with ``infer_names`` a model of
    MODEL (...) that has no name has that of its path below ``models``. ``test_samples`` is how many
    failing rows of a data test are shown and recorded; 0: only their number.
    ``defaults`` are what models say that do not say it themselves.
    ``python_timeout`` is how many seconds a step in Python may take that says nothing of it; None:
    as long as it likes.
    ``retention`` is how long logs and records of runs stay.
    ``cache`` is the user's directory of what can be derived again; None: nothing is cached.
    ``notify`` are told how runs end. ``open_lineage`` says where events of lineage go, if anywhere.
    """

    root: Path
    name: str
    models: Path
    lakes: Mapping[str, LakeSettings]
    spark: SparkSettings = SparkSettings()
    jobs: int | None = None
    dialect: str = "spark"
    infer_names: bool = False
    test_samples: int = TEST_SAMPLES
    defaults: tuple[ModelDefaults, ...] = ()
    python_timeout: float | None = PYTHON_TIMEOUT
    cache: Path | None = None
    retention: Retention = field(default_factory=Retention)
    notify: tuple[NotifySettings, ...] = ()
    open_lineage: OpenLineageSettings | None = None


_Value = Setting  # a raw value, which no message shows, and where it was set


def load_settings(
    root: Path,
    *,
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, str] | None = None,
) -> Settings:
    """Read ``root/penstock.toml``, then the environment, then ``overrides`` (dotted keys)."""
    environ = os.environ if environ is None else environ
    root = root.resolve()
    values = _from_file(root / FILE_NAME)
    values |= _from_environment(environ, {name: _names(name, values) for name in _NAMED})
    for key, text in (overrides or {}).items():
        values[key] = _convert(key, text, Location(f"flag for {key}"))
    return _build(root, values, environ)


def _from_file(path: Path) -> dict[str, _Value]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(
            f"there is no {FILE_NAME} in {path.parent}",
            hint="run `penstock init` to start a project",
        ) from None
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"is not UTF-8 (byte {error.start})", location=Location(path), hint="save it as UTF-8"
        ) from None
    except NotADirectoryError:
        raise ConfigError(
            f"{path.parent} is not a directory",
            hint="--project takes the directory of penstock.toml",
        ) from None
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", location=Location(path)) from None
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"at line (\d+), column (\d+)", str(error))
        line, column = (int(place[1]), int(place[2])) if place else (None, None)
        cause = re.sub(r" \(at .*\)$", "", str(error))
        raise ConfigError(
            f"is not TOML: {cause[:1].lower()}{cause[1:]}", location=Location(path, line, column)
        ) from None
    return _flatten(document, text, path)


def _flatten(document: Mapping[str, Any], text: str, path: Path) -> dict[str, _Value]:
    """Dotted keys of the known sections; anything else is an error with its line."""
    values: dict[str, _Value] = {}
    for section, content in document.items():
        at = Location(path, _line_of(text, (section,)))
        _known(section, _SECTIONS, "section", at)
        _expect(section, content, dict, at)
        if section not in _NAMED:
            values |= _flatten_keys((section,), _SECTIONS[section], content, text, path)
            if (name := ".".join(TABLE)) in values and section == TABLE[0]:
                found = read_defaults(
                    values[name].value, lambda key: Location(path, _line_of(text, key))
                )
                values[name] = _Value(found, values[name].origin)
            continue
        for name, keys in content.items():
            at = Location(path, _line_of(text, (section, name)))
            _expect(f"{section}.{name}", keys, dict, at)
            values |= _flatten_keys((section, name), _SECTIONS[section], keys, text, path)
    return values


def _flatten_keys(
    prefix: tuple[str, ...],
    allowed: Mapping[str, Any],
    content: Mapping[str, Any],
    text: str,
    path: Path,
) -> dict[str, _Value]:
    values = {}
    for key, value in content.items():
        at = Location(path, _line_of(text, (*prefix, key)))
        if prefix[0] == "lakes" and (refused := refusal_for_project(key.lower())):
            raise ConfigError(refused[0], location=at, hint=refused[1])
        _known(key, allowed, f"key in [{'.'.join(prefix)}]", at)
        _expect(key, value, allowed[key], at)
        values[".".join((*prefix, key))] = _Value(value, at)
    return values


def _from_environment(
    environ: Mapping[str, str], names: Mapping[str, Collection[str]]
) -> dict[str, _Value]:
    values = {}
    for name, text in sorted(environ.items()):
        section, _, rest = name.removeprefix(PREFIX).lower().partition("_")
        if not name.startswith(PREFIX) or section not in _SECTIONS or not rest:
            continue  # other PENSTOCK_ names belong to tools around the project
        at = Location(f"environment variable {name}")
        key = _environment_key(section, rest, names.get(section), at)
        values[key] = _convert(key, text, at)
    return values


def _environment_key(section: str, rest: str, names: Collection[str] | None, at: Location) -> str:
    """The dotted key. Of a section of ``names`` one is matched whatever its case, or is new."""
    allowed = _SECTIONS[section]
    if names is None:
        _known(rest, allowed, f"key in [{section}]", at)
        return f"{section}.{rest}"
    for key in sorted(allowed, key=len, reverse=True):  # one ends like another
        if rest.endswith(f"_{key}"):
            name = rest.removesuffix(f"_{key}")
            known = {each.lower(): each for each in names}
            return f"{section}.{known.get(name, name)}.{key}"
    raise ConfigError(
        f"does not end in a setting of {_NAMED[section]}",
        location=at,
        hint=f"settings of {_NAMED[section]} are "
        + ", ".join(sorted(key.upper() for key in allowed)),
    )


def _names(section: str, values: Mapping[str, _Value]) -> tuple[str, ...]:
    """The names of the tables of a section, in the order of the file."""
    keys = (key.split(".") for key in values)
    return tuple(dict.fromkeys(key[1] for key in keys if key[0] == section))


def _convert(key: str, text: str, at: Location) -> _Value:
    """A text from the environment or a flag as the type that its setting has."""
    section, _, rest = key.partition(".")
    _known(section, _SECTIONS, "section", at)
    name = rest.rpartition(".")[2] if section in _NAMED else rest
    if key.startswith("spark.conf."):
        return _Value(text, at)
    _known(name, _SECTIONS[section], f"key in [{section}]", at)
    wanted = _SECTIONS[section][name]
    if wanted is int:
        if not re.fullmatch(r"[+-]?\d+", text.strip()):
            raise ConfigError(f"{key} must be a whole number, not {text!r}", location=at)
        return _Value(int(text), at)
    if wanted is bool:
        if text.strip().lower() not in {"true", "false"}:
            raise ConfigError(f"{key} must be true or false, not {text!r}", location=at)
        return _Value(text.strip().lower() == "true", at)
    _expect(key, text, wanted, at)
    return _Value(text, at)


def _known(name: str, allowed: Mapping[str, Any], what: str, at: Location) -> None:
    if name in allowed:
        return
    near = difflib.get_close_matches(name, allowed, n=1)
    known = ", ".join(allowed)
    raise ConfigError(
        f"unknown {what}: {name!r}",
        location=at,
        hint=f"did you mean {near[0]!r}?" if near else f"known are {known}",
    )


def _expect(key: str, value: Any, wanted: Any, at: Location) -> None:
    # bool is an int to Python, but `jobs = true` is a mistake
    if isinstance(value, wanted) and not (wanted is int and isinstance(value, bool)):
        return
    raise ConfigError(f"{key} must be {_KINDS[wanted]}, not {shown(key, value)}", location=at)


def _build(root: Path, values: Mapping[str, _Value], environ: Mapping[str, str]) -> Settings:
    def get(key: str) -> Any:
        return values[key].value if key in values else None

    _check_master(values.get("spark.master"))
    jobs = get("run.jobs")
    if jobs is not None and jobs < 1:
        raise ConfigError("run.jobs must be 1 or more", location=values["run.jobs"].origin)
    return Settings(
        root=root,
        name=get("project.name") or root.name,
        models=root / (get("project.models") or "models"),
        lakes=_build_lakes(root, values),
        spark=SparkSettings(
            master=get("spark.master"),
            conf=_spark_conf(values),
            java_home=environ.get("JAVA_HOME") or None,
            path=environ.get("PATH"),
            origin=next((values[key].origin for key in _SPARK_KEYS if key in values), None),
            warm=_warm(values.get("spark.warm")),
            environ={name: value for name, value in environ.items() if _READ_BY_SPARK.match(name)},
            ci=environ.get("CI", "").lower() not in {"", "0", "false"},
        ),
        jobs=jobs,
        dialect=_dialect(values.get("project.dialect")),
        infer_names=bool(get("project.infer_names")),
        test_samples=_test_samples(values.get("project.test_samples")),
        defaults=get("project.defaults") or (),
        python_timeout=_python_timeout(values.get("python.timeout")),
        cache=_cache(environ),
        retention=read_retention(root, values.get),
        open_lineage=read_open_lineage(root, get("project.name") or root.name, values.get)
        if any(key.startswith("openlineage.") for key in values)
        else None,
        notify=tuple(_notify(name, values) for name in _names("notify", values)),
    )


def _notify(name: str, values: Mapping[str, _Value]) -> NotifySettings:
    keys = {key: f"notify.{name}.{key}" for key in NOTIFY_KEYS}
    given = {key: values[full] for key, full in keys.items() if full in values}
    places = {key: each.origin for key, each in given.items()}
    return read_notify(name, {key: each.value for key, each in given.items()}, places)


def _python_timeout(setting: _Value | None) -> float | None:
    """``10m``, ``2h`` or seconds, as in a header; ``none``."""
    if setting is None:
        return PYTHON_TIMEOUT
    if setting.value == "none":
        return None
    if not seconds_of(setting.value):
        raise ConfigError(
            f"python.timeout is {setting.value!r}, which is not a duration",
            location=setting.origin,
            hint='write seconds, or as in "10m", "2h"; "none" for no timeout',
        )
    return seconds_of(setting.value)


def _warm(setting: _Value | None) -> float | None:
    """``15m`` or another duration; ``false``, also as a text of the environment, for none."""
    if setting is None:
        return WARM
    if setting.value is False or setting.value == "false":
        return None
    if not isinstance(setting.value, str) or not seconds_of(setting.value):
        raise ConfigError(
            f"spark.warm is {str(setting.value).lower()!r}, which is not a duration",
            location=setting.origin,
            hint='write how long Spark stays without use, as in "15m", or false',
        )
    return seconds_of(setting.value)


def _test_samples(setting: _Value | None) -> int:
    if setting is None:
        return TEST_SAMPLES
    if setting.value < 0:
        raise ConfigError(
            f"project.test_samples must be 0 or more, not {setting.value}",
            location=setting.origin,
        )
    return int(setting.value)


def _cache(environ: Mapping[str, str]) -> Path | None:
    """Not a setting of the project: a project from elsewhere must not choose what is trusted."""
    named = environ.get("PENSTOCK_CACHE_DIR")
    if named is not None:
        return Path(named).absolute() if named else None
    from platformdirs import user_cache_path

    return user_cache_path("penstock", appauthor=False)


def _dialect(setting: _Value | None) -> str:
    if setting is None:
        return DIALECTS[0]
    if setting.value not in DIALECTS:
        raise ConfigError(
            f"project.dialect must be {' or '.join(DIALECTS)}, not {setting.value!r}",
            location=setting.origin,
        )
    return str(setting.value)


def _check_master(master: _Value | None) -> None:
    if master is not None and not _MASTER.fullmatch(master.value):
        raise ConfigError(
            f"spark.master is {master.value!r}, which Spark does not know",
            location=master.origin,
            hint="leave it out to use this machine, or write local[4], spark://HOST:7077, yarn, "
            "k8s://HOST:PORT, or sc://HOST for Spark Connect",
        )


def _build_lakes(root: Path, values: Mapping[str, _Value]) -> dict[str, LakeSettings]:
    names = _names("lakes", values)
    if not names:
        raise ConfigError(
            "there is no lake to write to",
            location=Location(root / FILE_NAME),
            hint='add a section [lakes.main] with catalog = "sqlite:lake/meta.sqlite" '
            'and data_path = "lake/data"',
        )
    return {name: _build_lake(root, name, values) for name in names}


def _build_lake(root: Path, name: str, values: Mapping[str, _Value]) -> LakeSettings:
    settings = {
        key: values[f"lakes.{name}.{key}"]
        for key in _SECTIONS["lakes"]
        if f"lakes.{name}.{key}" in values
    }
    for key, setting in settings.items():
        if setting.value == "":
            raise ConfigError(
                f"{key} of lake {name!r} is empty",
                location=setting.origin,
                hint="give it a value, or leave it out",
            )
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


def _spark_conf(values: Mapping[str, _Value]) -> dict[str, str]:
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


def _line_of(text: str, key: tuple[str, ...]) -> int | None:
    """The line where a dotted key or its table header is written (tomllib gives no positions)."""
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if header := re.match(r"\s*\[\[?([^\[\]]+)\]", line):
            table = _split_key(header[1])
            if table[: len(key)] == key:
                return number
        elif assigned := re.match(r"\s*((?:[\w-]+|\"[^\"]*\"|'[^']*'|\s*\.\s*)+?)\s*=", line):
            full = (*table, *_split_key(assigned[1]))
            if full[: len(key)] == key:
                return number
    return None


def _split_key(text: str) -> tuple[str, ...]:
    parts = re.findall(r"\"([^\"]*)\"|'([^']*)'|([\w-]+)", text)
    return tuple(a or b or c for a, b, c in parts)
