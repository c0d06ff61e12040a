"""The keys of penstock.toml, in one table.

The reader of the file, its messages, the variables of the environment and docs/settings.md take the
keys from here. A default is written as in the file, and is read like a value of the file.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_network
from typing import Any
from urllib.parse import urlsplit

from penstock.errors import ConfigError, Location
from penstock.settings.project_settings import ModelDefaults, read_variables
from penstock.settings.quantities import duration_setting, fraction_of, size_setting
from penstock.settings.retention import Setting

DIALECTS = ("spark", "duckdb")
ENVIRONMENT = "environment"  # the section of the keys of an environment itself
DELTA = "delta"  # the section of Delta roots, and their kind
#: sections of tables with names of the project's own, and what one of them is called
NAMED: Mapping[str, str] = {
    "lakes": "a lake",
    DELTA: "a Delta root",
    "notify": "one who is told",
}
#: what `penstock serve` does with times that were missed
CATCHUP = ("none", "latest", "all")
_MAX_PORT = 65_535
_DEFAULT = Location("default")
_MASTER = re.compile(
    r"local(\[([1-9]\d*|\*)(\s*,\s*[1-9]\d*)?\])?|local-cluster\[.+\]|yarn|(spark|k8s|sc)://\S+"
)

Parser = Callable[[str, Setting], Any]


@dataclass(frozen=True, slots=True)
class Key:
    """A key of penstock.toml.

    Attributes:
        section: The section; of a key of ``NAMED``, a name stands between both.
        name: The key.
        type: The type of its value in the file.
        default: The value where the key is missing, as in the file; None where there is none.
        parse: Returns the value of a setting by its dotted key; None to take it as it is.
        merge: Joins the values of the file and of an environment; None to take the latter.
    """

    section: str
    name: str
    type: Any
    default: Any = None
    parse: Parser | None = None
    merge: Callable[[Any, Any], Any] | None = None


def _parse_master(key: str, setting: Setting) -> str:
    if _MASTER.fullmatch(setting.value):
        return str(setting.value)
    raise ConfigError(
        f"{key} is {setting.value!r}, which Spark does not know",
        location=setting.origin,
        hint="leave it out to use this machine, or write local[4], spark://HOST:7077, yarn, "
        "k8s://HOST:PORT, or sc://HOST for Spark Connect",
    )


def _parse_dialect(key: str, setting: Setting) -> str:
    if setting.value in DIALECTS:
        return str(setting.value)
    raise ConfigError(
        f"{key} must be {' or '.join(DIALECTS)}, not {setting.value!r}", location=setting.origin
    )


def _parse_number(key: str, setting: Setting, *, least: int, hint: str | None = None) -> int:
    if setting.value >= least:
        return int(setting.value)
    problem = f"{key} must be {least} or more, not {setting.value}"
    raise ConfigError(problem, location=setting.origin, hint=hint)


def _parse_limit(key: str, setting: Setting) -> int | None:
    return _parse_number(key, setting, least=0, hint="0 sets no limit") or None


def _duration(hint: str, **words: str) -> Parser:
    def parse(key: str, setting: Setting) -> float | None:
        return duration_setting(key, setting.value, setting.origin, hint=hint, **words)

    return parse


def _parse_address(key: str, setting: Setting, *, example: str) -> str:
    if urlsplit(setting.value).scheme in {"http", "https"}:
        return str(setting.value)
    raise ConfigError(
        f"{key} is no address that begins with https:// or http://",
        location=setting.origin,
        hint=f'write it whole, as in "{example}"',
    )


def _parse_texts(key: str, setting: Setting) -> tuple[str, ...]:
    if all(isinstance(text, str) and text.strip() for text in setting.value):
        return tuple(text.strip() for text in setting.value)
    hint = 'write it as in ["a", "b"]'
    raise ConfigError(f"{key} must be a list of texts", location=setting.origin, hint=hint)


def _parse_port(key: str, setting: Setting) -> int:
    if 0 <= setting.value <= _MAX_PORT:
        return int(setting.value)
    problem = f"{key} is {setting.value}, which is not a port"
    hint = f"write a number up to {_MAX_PORT}; 0 takes a free port"
    raise ConfigError(problem, location=setting.origin, hint=hint)


def _parse_share(key: str, setting: Setting) -> float:
    if not isinstance(setting.value, bool) and 0 < setting.value <= 1:
        return float(setting.value)
    problem = f"{key} must be above 0 and at most 1, not {setting.value}"
    raise ConfigError(problem, location=setting.origin, hint="0.5 is a half of the slots")


def _parse_proxy(key: str, setting: Setting) -> str | bool:
    """Return a network, or whether all are trusted."""
    text = str(setting.value)
    if text.lower() in {"true", "false"}:
        return text.lower() == "true"
    try:
        return str(ip_network(text))
    except ValueError:
        raise ConfigError(
            f"{key} is {text!r}, which is not an address",
            location=setting.origin,
            hint='write "10.0.0.5" or "10.0.0.0/8", or true to trust whoever connects',
        ) from None


def _parse_catchup(key: str, setting: Setting) -> str:
    if setting.value in CATCHUP:
        return str(setting.value)
    problem = f"{key} must be {', '.join(CATCHUP[:-1])} or {CATCHUP[-1]}, not {setting.value!r}"
    hint = "leave it out to fire all times of models by time, and the latest of others"
    raise ConfigError(problem, location=setting.origin, hint=hint)


def _parse_period(key: str, setting: Setting) -> float:
    """Return a length of time that ends."""
    hint = 'write seconds, or as in "1s", "500ms", "0.2s", "2m"'
    period = fraction_of(setting.value)
    seconds = period or duration_setting(key, setting.value, setting.origin, hint=hint)
    if seconds is not None:
        return seconds
    problem = f"{key} cannot be {setting.value!r}"
    raise ConfigError(problem, location=setting.origin, hint=hint)


def _parse_words(key: str, setting: Setting) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(setting.value))
    except ValueError as error:
        raise ConfigError(
            f"{key} cannot be read: {str(error).lower()}",
            location=setting.origin,
            hint="close what is quoted",
        ) from None
    if words:
        return words
    hint = "give it a value, or leave it out"
    raise ConfigError(f"{key} is empty", location=setting.origin, hint=hint)


def _merge_defaults(
    base: tuple[ModelDefaults, ...], override: tuple[ModelDefaults, ...]
) -> tuple[ModelDefaults, ...]:
    """Key by key in each folder; outer folders stay before inner ones."""
    folders = {defaults.folder: defaults for defaults in base}
    for new in override:
        old = folders.get(new.folder, ModelDefaults(new.folder, {}))
        folders[new.folder] = ModelDefaults(
            new.folder, {**old.values, **new.values}, {**old.places, **new.places}
        )
    return tuple(sorted(folders.values(), key=lambda it: (it.folder != "", it.folder.count("/"))))


def _merge_variables(base: Mapping[str, Any], override: Mapping[str, Any]) -> Mapping[str, Any]:
    """Name by name, whatever the case."""
    names = {name.lower() for name in override}
    return {**{name: it for name, it in base.items() if name.lower() not in names}, **override}


def _store_keys(section: str) -> Sequence[Key]:
    names = ("access_key", "secret_key", "session_token", "endpoint", "region")
    return (
        *(Key(section, f"s3_{name}", str) for name in names),
        Key(section, "s3_path_style", bool, False),
        Key(section, "s3_committer", str, "file"),
    )


_AGE = _duration('write it as in "30d", "12h"; "none" for no limit', what="an age")
_TIMEOUT = _duration('write seconds, or as in "10m", "2h"; "none" for no timeout')
_WARM = _duration('write how long Spark stays without use, as in "15m", or false', none="false")
_WEBHOOK = partial(_parse_address, example="https://hooks.example.com/T1/B2")
_SERVER = partial(_parse_address, example="http://marquez:5000")
KEYS: tuple[Key, ...] = (
    Key("project", "name", str),
    Key("project", "models", str, "models"),
    Key("project", "dialect", str, "spark", _parse_dialect),
    Key("project", "infer_names", bool, False),
    Key("project", "test_samples", int, 20, partial(_parse_number, least=0)),
    Key("project", "defaults", dict, merge=_merge_defaults),
    Key("project", "variables", dict, None, read_variables, _merge_variables),
    Key("project.defaults", "start", str),
    Key("project.defaults", "cron", str),
    Key("project.defaults", "cron_tz", str),
    Key("project.defaults", "owner", str),
    Key("project.defaults", "tags", list),
    Key("project.defaults", "data_tests", list),
    Key("project.defaults", "retry", str),
    Key("lakes", "catalog", str),
    Key("lakes", "data_path", str),
    Key("lakes", "partition_column", str, "_wm_partition"),
    Key("lakes", "metadata_schema", str),
    Key("lakes", "override_data_path", bool, False),
    *_store_keys("lakes"),
    Key(DELTA, "root", str),
    Key(DELTA, "partition_column", str),
    Key(DELTA, "deletion_vectors", bool, False),
    *_store_keys(DELTA),
    Key("spark", "master", str, None, _parse_master),
    Key("spark", "memory", str, None, lambda key, size: size_setting(key, size.value, size.origin)),
    Key("spark", "conf", dict, merge=lambda base, override: {**base, **override}),
    Key("spark", "warm", str | bool, "15m", _WARM),
    Key("spark", "class_archive", bool),
    Key("run", "jobs", int, None, partial(_parse_number, least=1)),
    Key("run", "keep", str, "365d", _AGE),
    Key("run", "keep_runs", int, 10_000, _parse_limit),
    Key("logs", "directory", str, ".penstock/logs"),
    Key("logs", "keep", str, "30d", _AGE),
    Key("logs", "keep_runs", int, 1_000, _parse_limit),
    Key("python", "timeout", str, "1h", _TIMEOUT),
    Key("serve", "host", str, "127.0.0.1"),
    Key("serve", "port", int, 8600, _parse_port),
    Key("serve", "allowed_hosts", list, None, _parse_texts),
    Key("serve", "trusted_proxy", str | bool, False, _parse_proxy),
    Key("serve", "slots", int, 2, partial(_parse_number, least=1)),
    Key("serve", "backfill_share", int | float, 0.5, _parse_share),
    Key("serve", "share", bool, True),
    Key("serve", "poll", str, "1s", _parse_period),
    Key("serve", "file_poll", str, "30s", _parse_period),
    Key("serve", "drain_timeout", str, "60s", _TIMEOUT),
    Key("serve", "idle_timeout", str, "10m", _TIMEOUT),
    Key(
        "serve",
        "max_body",
        str,
        "1MiB",
        lambda key, setting: size_setting(key, setting.value, setting.origin, noun="a size"),
    ),
    Key("serve", "catchup", str, None, _parse_catchup),
    Key("serve", "max_catchup", int, 100, partial(_parse_number, least=1)),
    Key("serve", "catchup_window", str, "30d", _AGE),
    Key("serve", "kafka_servers", list, None, _parse_texts),
    Key("serve", "postgres_dsn", str),
    Key("notify", "webhook", str, None, _WEBHOOK),
    Key("notify", "command", str, None, _parse_words),
    Key("notify", "select", str, None, _parse_words),
    Key("notify", "failure", bool, True),
    Key("notify", "recovery", bool, True),
    Key("notify", "late", bool, True),
    Key("notify", "values", bool, False),
    Key("openlineage", "url", str, None, _SERVER),
    Key("openlineage", "file", str),
    Key("openlineage", "namespace", str),
    Key("openlineage", "api_key", str),
    Key(ENVIRONMENT, "schema_suffix", str),
    Key(ENVIRONMENT, "reads", str),
)
#: the keys of each section by their names
SECTIONS: Mapping[str, Mapping[str, Key]] = {
    section: {key.name: key for key in KEYS if key.section == section}
    for section in dict.fromkeys(key.section for key in KEYS)
}


def key_of(dotted: str) -> Key:
    """Return the key of a setting.

    Args:
        dotted: The setting, such as ``run.jobs`` or ``lakes.main.catalog``.

    Returns:
        Its entry of the table.
    """
    section, _, name = dotted.partition(".")
    return SECTIONS[section][name.rpartition(".")[2] if section in NAMED else name]


def value_of(values: Mapping[str, Setting], dotted: str) -> Any:
    """Return the value of a setting, or its default. Raise ConfigError for a wrong one.

    Args:
        values: The settings by dotted key.
        dotted: The setting.

    Returns:
        The value as its key parses it; None where there is neither.
    """
    key, setting = key_of(dotted), values.get(dotted)
    if setting is None or (setting.value == "" and key.parse is None):
        setting = Setting(key.default, _DEFAULT)
    if key.parse is None or setting.value is None:
        return setting.value
    return key.parse(dotted, setting)


def table_values(values: Mapping[str, Setting], table: str) -> dict[str, Any]:
    """Return the values and defaults of a section, or of one of its named tables.

    Args:
        values: The settings by dotted key.
        table: The section, such as ``openlineage``, or the table, such as ``notify.oncall``.

    Returns:
        The values by the names of their keys, without those that are not set.
    """
    names = {key.name: f"{table}.{key.name}" for key in SECTIONS[table.partition(".")[0]].values()}
    all_values = {name: value_of(values, dotted) for name, dotted in names.items()}
    return {name: value for name, value in all_values.items() if value is not None}
