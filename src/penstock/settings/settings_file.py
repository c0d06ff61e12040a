"""Read penstock.toml into settings by dotted key, each with the place where it is written.

Sections and keys are checked here, also those that ``[environments.NAME]`` overrides, and
variables are put into texts; what the values mean is for `penstock.settings.config`.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from penstock.errors import ConfigError, Location
from penstock.masking import shown
from penstock.settings.environment_tables import pattern_of
from penstock.settings.keys import ENVIRONMENT, NAMED, SECTIONS, key_of
from penstock.settings.project_settings import TABLE, ModelDefaults, read_defaults
from penstock.settings.refused_settings import refusal_for_project
from penstock.settings.retention import Setting

FILE_NAME = "penstock.toml"
ENVIRONMENTS = "environments"
DEFAULT_ENVIRONMENT = "default"  # the settings without those of any environment

_DEFAULTS = ".".join(TABLE)
_KINDS: Mapping[Any, str] = {
    str: "a text",
    int: "a whole number",
    bool: "true or false",
    dict: "a table",
    list: "a list of texts",
    str | bool: "a text or false",
    int | float: "a number",
}
_IN_FILES = {
    name: keys for name, keys in SECTIONS.items() if name != ENVIRONMENT and "." not in name
}
Values = dict[str, Setting]


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """The settings of a file by dotted key, and those that each environment overrides."""

    path: Path
    base: Values
    environments: Mapping[str, Values]

    def of(self, environment: str | None, chosen: Location) -> Values:
        """Return the settings in an environment; ``chosen`` is where it was named.

        Raises ConfigError for one that the file does not have.
        """
        if environment is None:
            return dict(self.base)
        if environment not in self.environments:
            raise ConfigError(
                f"the environment {environment!r} does not exist",
                location=chosen,
                hint=_known_environments(environment, self.environments),
            )
        own = self.environments[environment]
        _require_own_files(environment, self.base, own)
        merged = {**self.base, **own}
        for dotted in self.base.keys() & own.keys():
            if (merge := key_of(dotted).merge) is not None:
                value = merge(self.base[dotted].value, own[dotted].value)
                merged[dotted] = replace(own[dotted], value=value)
        return merged


def suffixes_in(file: SettingsFile) -> tuple[str, ...]:
    """Return the patterns of the schema suffixes that environments of a file have."""
    key = f"{ENVIRONMENT}.schema_suffix"
    return tuple(pattern_of(own[key].value) for own in file.environments.values() if key in own)


def _known_environments(name: str, environments: Mapping[str, Values]) -> str:
    if not environments:
        return f"{FILE_NAME} has none; start one with a section [{ENVIRONMENTS}.{name}]"
    near = difflib.get_close_matches(name, environments, n=1)
    known = f"{FILE_NAME} has {', '.join(sorted(environments))}"
    return f"did you mean {near[0]!r}? {known}" if near else known


def _require_own_files(environment: str, base: Values, own: Values) -> None:
    """Raise ConfigError where two catalogs would keep their files in one directory, in which the
    clean-up of either removes those of the other.
    """
    for key, setting in own.items():
        lake, _, name = key.rpartition(".")
        path = f"{lake}.data_path"
        moved = name in {"catalog", "metadata_schema"} and base.get(key, setting) != setting
        if moved and base[key].value != setting.value and path in base and path not in own:
            raise ConfigError(
                f"{lake} has another catalog in environment {environment!r}, and the files of "
                "the first",
                location=setting.origin,
                hint="say with data_path where this environment keeps its files",
            )
        if moved and base[key].value != setting.value:
            _require_own_roots(environment, base, own, lake, setting)


def _require_own_roots(
    environment: str, base: Values, own: Values, lake: str, setting: Setting
) -> None:
    """Raise ConfigError where two catalogs would have one Delta root, which both write to."""
    for name in names_in("delta", base):
        key = f"delta.{name}.root"
        if key in base and key not in own:
            raise ConfigError(
                f"{lake} has another catalog in environment {environment!r}, and the Delta root "
                f"{name} of the first",
                location=setting.origin,
                hint=f"say with root in [{ENVIRONMENTS}.{environment}.delta.{name}] where this "
                "environment has its Delta tables",
            )


def read_settings_file(path: Path) -> SettingsFile:
    """Return what ``path`` says. Raises ConfigError, with the line of what is wrong."""
    text = _text(path)
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"at line (\d+), column (\d+)", str(error))
        line, column = (int(place[1]), int(place[2])) if place else (None, None)
        cause = re.sub(r" \(at .*\)$", "", str(error))
        raise ConfigError(
            f"is not TOML: {cause[:1].lower()}{cause[1:]}", location=Location(path, line, column)
        ) from None
    reader = _Reader(text, path)
    environments = document.pop(ENVIRONMENTS, {})
    return SettingsFile(path, reader.sections(document), reader.environments(environments))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
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


@dataclass(frozen=True, slots=True)
class _Reader:
    """Tables of a document as settings; ``text`` says at which lines they are."""

    text: str
    path: Path

    def environments(self, content: Any) -> dict[str, Values]:
        """Return the settings of each environment. Raises ConfigError."""
        expect(ENVIRONMENTS, content, dict, self._at((ENVIRONMENTS,)))
        found = {}
        for name, sections in content.items():
            at = self._at((ENVIRONMENTS, name))
            expect(f"{ENVIRONMENTS}.{name}", sections, dict, at)
            if name == DEFAULT_ENVIRONMENT:
                raise ConfigError(
                    f"an environment cannot be called {name!r}",
                    location=at,
                    hint=f"that is how --env calls the settings outside of [{ENVIRONMENTS}]",
                )
            own = {key: sections.pop(key) for key in SECTIONS[ENVIRONMENT] if key in sections}
            found[name] = self.sections(sections, (ENVIRONMENTS, name))
            for key, value in own.items():
                where = self._at((ENVIRONMENTS, name, key))
                expect(f"{ENVIRONMENTS}.{name}.{key}", value, str, where)
                found[name][f"{ENVIRONMENT}.{key}"] = Setting(value, where)
        return found

    def sections(self, content: Mapping[str, Any], inside: tuple[str, ...] = ()) -> Values:
        """Return the settings of the known sections; anything else is an error with its line."""
        values: Values = {}
        for section, keys in content.items():
            at = self._at((*inside, section))
            known(section, _IN_FILES, "section", at)
            expect(section, keys, dict, at)
            if section not in NAMED:
                values |= self._keys((section,), keys, inside)
                continue
            for name, own in keys.items():
                expect(f"{section}.{name}", own, dict, self._at((*inside, section, name)))
                values |= self._keys((section, name), own, inside)
        if (setting := values.get(_DEFAULTS)) is not None:
            types = {key.name: key.type for key in SECTIONS[_DEFAULTS].values()}
            defaults = read_defaults(setting.value, types, lambda key: self._at((*inside, *key)))
            values[_DEFAULTS] = replace(setting, value=defaults)
        return values

    def _keys(
        self, prefix: tuple[str, ...], content: Mapping[str, Any], inside: tuple[str, ...]
    ) -> Values:
        allowed = SECTIONS[prefix[0]]
        values = {}
        for key, value in content.items():
            at = self._at((*inside, *prefix, key))
            if prefix[0] == "lakes" and (refused := refusal_for_project(key.lower())):
                raise ConfigError(refused[0], location=at, hint=refused[1])
            known(key, allowed, f"key in [{'.'.join((*inside, *prefix))}]", at)
            if not (
                isinstance(value, str) and _VARIABLE.search(value) and allowed[key].type is not dict
            ):
                expect(key, value, allowed[key].type, at)  # that of a variable is not known yet
            values[".".join((*prefix, key))] = Setting(value, at)
        return values

    def _at(self, key: tuple[str, ...]) -> Location:
        return Location(self.path, _line_of(self.text, key))


def names_in(section: str, values: Mapping[str, Setting]) -> tuple[str, ...]:
    """The names of the tables of a section, in the order of the file."""
    keys = (key.split(".") for key in values)
    return tuple(dict.fromkeys(key[1] for key in keys if key[0] == section))


# `${NAME}` and `${NAME:-text}`; `$${NAME}` stands for `${NAME}` itself. Spark's own `${spark.x}`
# and `${env:X}` are none of these.
_VARIABLE = re.compile(r"(?P<escaped>\$)?\$\{(?P<name>[A-Za-z_]\w*)(?::-(?P<default>[^{}]*))?\}")


def with_variables(values: Values, environ: Mapping[str, str]) -> Values:
    """Return the settings with the variables of the environment that their texts name.

    Raises ConfigError for a variable that is not set and has no default.
    """
    return {
        key: _with_variables(key, setting, environ) if "${" in repr(setting.value) else setting
        for key, setting in values.items()
    }


def _with_variables(key: str, setting: Setting, environ: Mapping[str, str]) -> Setting:
    def put(text: str, at: Location) -> str:
        return _VARIABLE.sub(lambda match: _variable(match, key, at, environ), text)

    def inside(value: Any, at: Location) -> Any:
        if isinstance(value, str):
            return put(value, at)
        if isinstance(value, dict):
            return {name: inside(each, at) for name, each in value.items()}
        if isinstance(value, ModelDefaults):
            places = value.places
            own = {name: inside(each, places[name]) for name, each in value.values.items()}
            return replace(value, values=own)
        if isinstance(value, list | tuple):
            return type(value)(inside(each, at) for each in value)
        return value

    if isinstance(setting.value, str):
        return convert(key, put(setting.value, setting.origin), setting.origin)
    return replace(setting, value=inside(setting.value, setting.origin))


def _variable(match: re.Match[str], key: str, at: Location, environ: Mapping[str, str]) -> str:
    name, default = match["name"], match["default"]
    if match["escaped"]:
        return match[0][1:]
    if name in environ:
        # As shells have it: what is empty counts as not set where there is a default.
        return environ[name] or default or ""
    if default is not None:
        return default
    raise ConfigError(
        f"{key} names the environment variable {name}, which is not set",
        location=at,
        hint=f"set {name}, or write a default: ${{{name}:-...}}",
    )


def convert(key: str, text: str, at: Location) -> Setting:
    """Return a text from the environment or a flag as the type that its setting has."""
    section, _, rest = key.partition(".")
    known(section, SECTIONS, "section", at)
    name = rest.rpartition(".")[2] if section in NAMED else rest
    if key.startswith("spark.conf."):
        return Setting(text, at)
    known(name, SECTIONS[section], f"key in [{section}]", at)
    wanted = SECTIONS[section][name].type
    if wanted is int:
        if not re.fullmatch(r"[+-]?\d+", text.strip()):
            raise ConfigError(f"{key} must be a whole number, not {text!r}", location=at)
        return Setting(int(text), at)
    if wanted is bool:
        if text.strip().lower() not in {"true", "false"}:
            raise ConfigError(f"{key} must be true or false, not {text!r}", location=at)
        return Setting(text.strip().lower() == "true", at)
    if wanted is list:
        return Setting([part.strip() for part in text.split(",") if part.strip()], at)
    if wanted == int | float:
        try:
            return Setting(float(text), at)
        except ValueError:
            raise ConfigError(f"{key} must be a number, not {text!r}", location=at) from None
    expect(key, text, wanted, at)
    return Setting(text, at)


def known(name: str, allowed: Mapping[str, Any], what: str, at: Location) -> None:
    """Raise ConfigError, with the nearest name, for one that is not allowed."""
    if name in allowed:
        return
    near = difflib.get_close_matches(name, allowed, n=1)
    raise ConfigError(
        f"unknown {what}: {name!r}",
        location=at,
        hint=f"did you mean {near[0]!r}?" if near else f"known are {', '.join(allowed)}",
    )


def expect(key: str, value: Any, wanted: Any, at: Location) -> None:
    """Raise ConfigError for a value of another type."""
    # bool is an int to Python, but `jobs = true` is a mistake
    if isinstance(value, wanted) and not (wanted is int and isinstance(value, bool)):
        return
    raise ConfigError(f"{key} must be {_KINDS[wanted]}, not {shown(key, value)}", location=at)


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
