"""What a profile of ``type: penstock`` says, checked when the profile is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dbt.adapters.contracts.connection import Credentials
from dbt_common.exceptions import DbtConfigError

from penstock.masking import masked, shown
from penstock.settings.config import SparkSettings, index_of
from penstock.settings.quantities import is_duration, seconds_of

DEFAULT_LAKE = "lake"
_SPARK = {"master", "conf"}


@dataclass
class PenstockCredentials(Credentials):
    """``catalog`` and ``data_path`` are the lake that ``database`` names; ``lakes`` are others with
    the same settings. ``spark`` has ``master`` and ``conf``; ``warm`` is as in penstock.toml.
    ``delta`` are roots of Delta tables by name: a directory or URI, or ``root`` with settings of
    its store and ``deletion_vectors``. ``external_root`` is the directory of external models that
    name no location.
    """

    database: str = DEFAULT_LAKE
    schema: str = "main"
    catalog: str = ""
    data_path: str | None = None
    metadata_schema: str | None = None
    spark: dict[str, Any] = field(default_factory=dict)
    warm: str | bool = False
    lakes: dict[str, dict[str, Any]] = field(default_factory=dict)
    delta: dict[str, Any] = field(default_factory=dict)
    external_root: str = "."
    s3_access_key: str | None = None
    s3_secret_key: str | None = None
    s3_session_token: str | None = None
    s3_endpoint: str | None = None
    s3_region: str | None = None
    s3_path_style: bool | None = None
    s3_committer: str | None = None

    _ALIASES = {"lake": "database", "uri": "catalog"}  # noqa: RUF012 - dbt's own form

    def __post_init__(self) -> None:
        if not self.catalog:
            raise DbtConfigError(
                "the profile names no catalog: add catalog: 'ducklake:sqlite:lake.sqlite', or the "
                "catalog of your lake, to the target in profiles.yml"
            )
        unknown = sorted(set(self.spark) - _SPARK)
        if unknown:
            raise DbtConfigError(f"spark has no setting {unknown[0]!r}: it has master and conf")
        for name, settings in self.lakes.items():
            if not isinstance(settings, Mapping) or not settings.get("catalog"):
                raise DbtConfigError(f"lakes.{name} names no catalog: write catalog: ... below it")
        for name, settings in self.delta.items():
            if not _root(settings).get("root"):
                raise DbtConfigError(
                    f"delta.{name} has no root: write delta: {{{name}: directory}}"
                )
            marks = _root(settings).get("deletion_vectors", False)
            if not isinstance(marks, bool):
                raise DbtConfigError(f"delta.{name}.deletion_vectors is {marks!r}: write true")
        names = [self.database, *self.lakes, *self.delta]
        if len({name.lower() for name in names}) < len(names):
            raise DbtConfigError(
                f"two of {', '.join(names)} have one name, which SQL could not tell apart: rename "
                "one of those below lakes: and delta:"
            )

    @property
    def type(self) -> str:
        """The adapter's type."""
        return "penstock"

    @property
    def unique_field(self) -> str:
        """Return the catalog, which dbt only sends hashed, and only where its telemetry is on."""
        return self.catalog

    def _connection_keys(self) -> tuple[str, ...]:
        """Name what ``dbt debug`` shows: nothing secret."""
        shown = ("database", "schema", "catalog", "data_path", "spark", "warm", "s3_endpoint")
        return (*shown, "delta")

    def connection_info(self, *, with_aliases: bool = False) -> Iterable[tuple[str, Any]]:
        """Return what ``dbt debug`` shows, without the passwords in it."""
        for name, value in super().connection_info(with_aliases=with_aliases):
            if name == "delta":  # models ask for it, as target.delta
                yield name, ", ".join(self.delta)
            else:
                yield name, masked(value) if isinstance(value, str) else shown_mapping(value)

    def attachments(self) -> dict[str, dict[str, Any]]:
        """Return the arguments of `Lake.attach` for each lake, by name."""
        own = {"catalog": self.catalog, "data_path": self.data_path}
        own |= {"metadata_schema": self.metadata_schema, **_given(vars(self))}
        every = {self.database: own, **self.lakes}
        return {name: _arguments(name, given) for name, given in every.items()}

    def roots(self) -> dict[str, dict[str, Any]]:
        """Return the arguments of `DeltaLake.of_root` for each Delta root, by name. A root that
        says nothing of its store has the target's.
        """
        return {name: self._root_arguments(name, given) for name, given in self.delta.items()}

    def _root_arguments(self, name: str, given: Any) -> dict[str, Any]:
        settings = _root(given)
        index, schema = index_of(self.catalog, name)
        return {
            "root": settings["root"],
            "index": index,
            "metadata_schema": schema,
            "name": name,
            "storage": _storage(settings) or _storage(vars(self)) or None,
            "deletion_vectors": settings.get("deletion_vectors", False),
        }

    def spark_settings(self) -> SparkSettings:
        """Raises DbtConfigError where ``warm`` is not a duration."""
        conf = {str(key): _text(value) for key, value in dict(self.spark.get("conf") or {}).items()}
        return SparkSettings(master=self.spark.get("master"), conf=conf, warm=self._warm())

    def _warm(self) -> float | None:
        if isinstance(self.warm, bool):
            return SparkSettings().warm if self.warm else None
        if not is_duration(self.warm):
            raise DbtConfigError(f"warm is {self.warm!r}: write a duration such as 15m, or true")
        return seconds_of(self.warm)


def shown_mapping(value: Any) -> Any:
    """A mapping as a text without its secrets; anything else as it is."""
    return shown("spark", value) if isinstance(value, Mapping) and value else value


def _root(settings: Any) -> Mapping[str, Any]:
    return settings if isinstance(settings, Mapping) else {"root": settings}


def _text(value: object) -> str:
    """A value as Spark's configuration has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _given(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in settings.items() if k.startswith("s3_") and v is not None}


def _storage(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {key.removeprefix("s3_"): value for key, value in _given(settings).items()}


def _arguments(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "uri": settings["catalog"],
        "data_path": settings.get("data_path"),
        "metadata_schema": settings.get("metadata_schema"),
        "name": name,
        "storage": _storage(settings) or None,
    }
