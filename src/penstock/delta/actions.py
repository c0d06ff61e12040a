"""The actions of a Delta log as values: "Actions" of Delta's protocol (PROTOCOL.md)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class DeletionVector:
    """The descriptor of the rows that are deleted from a file.

    ``storage`` is ``u`` (``path`` ends in a UUID in Z85), ``p`` (an absolute path) or ``i`` (the
    vector itself in Z85). ``size`` is in bytes, ``cardinality`` the number of deleted rows.
    """

    storage: str
    path: str
    size: int
    cardinality: int
    offset: int | None = None

    @property
    def unique_id(self) -> str:
        """Return what tells it from all other vectors of the table."""
        at = "" if self.offset is None else f"@{self.offset}"
        return f"{self.storage}{self.path}{at}"

    @classmethod
    def of(cls, json: Mapping[str, Any] | None) -> DeletionVector | None:
        if json is None:
            return None
        return cls(
            json["storageType"],
            json["pathOrInlineDv"],
            json["sizeInBytes"],
            json["cardinality"],
            json.get("offset"),
        )

    def json(self) -> Json:
        at = {} if self.offset is None else {"offset": self.offset}
        return {
            "storageType": self.storage,
            "pathOrInlineDv": self.path,
            **at,
            "sizeInBytes": self.size,
            "cardinality": self.cardinality,
        }


Key = tuple[str, str | None]  # of a file in a version: its path, and its deletion vector


@dataclass(frozen=True, slots=True)
class Add:
    """A data file of a version. ``path`` is as in the log: URL-encoded, relative or a URI.

    ``values`` are the partition values as text, by physical name; ``size`` is in bytes,
    ``modified`` in milliseconds since 1970, ``stats`` JSON; ``others`` are other keys.
    """

    path: str
    values: tuple[tuple[str, str | None], ...]
    size: int
    modified: int
    stats: str | None = None
    vector: DeletionVector | None = None
    others: tuple[tuple[str, Any], ...] = field(default=(), compare=False)

    @property
    def key(self) -> Key:
        return self.path, None if self.vector is None else self.vector.unique_id

    @classmethod
    def of(cls, json: Mapping[str, Any]) -> Add:
        values = json.get("partitionValues") or {}
        pairs = values.items() if isinstance(values, Mapping) else values  # Arrow has maps as pairs
        tags, vector = json.get("tags"), json.get("deletionVector")
        return cls(
            path=json["path"],
            values=tuple((name, value or None) for name, value in pairs),  # '' is NULL there
            size=json["size"],
            modified=json["modificationTime"],
            stats=json.get("stats"),
            vector=None if vector is None else DeletionVector.of(vector),
            others=() if tags is None else (("tags", tags),),
        )

    def json(self) -> Json:
        return {"add": {**self._file(), "modificationTime": self.modified, **self._rest()}}

    def removal(self, at: int) -> Json:
        """The action that removes the file; ``at`` is in milliseconds since 1970."""
        return {
            "remove": {
                **self._file(),
                "deletionTimestamp": at,
                "extendedFileMetadata": True,
                **self._vector(),
            }
        }

    def _file(self) -> Json:
        return {
            "path": self.path,
            "partitionValues": dict(self.values),
            "size": self.size,
            "dataChange": True,
        }

    def _rest(self) -> Json:
        stats = {} if self.stats is None else {"stats": self.stats}
        tags = {name: dict(value) for name, value in self.others}
        return {**stats, **tags, **self._vector()}

    def _vector(self) -> Json:
        return {} if self.vector is None else {"deletionVector": self.vector.json()}


# Databricks begins Delta Live Tables without a schema: it comes with the first rows.
NO_COLUMNS = '{"type":"struct","fields":[]}'


@dataclass(frozen=True, slots=True)
class Metadata:
    """The metadata of a table. ``schema_text`` has its columns as Spark's JSON, NO_COLUMNS where
    the log has none yet; ``created`` is in milliseconds since 1970.
    """

    id: str
    schema_text: str
    partition_by: tuple[str, ...] = ()
    configuration: tuple[tuple[str, str], ...] = ()
    name: str | None = None
    description: str | None = None
    created: int | None = None

    @property
    def options(self) -> dict[str, str]:
        return dict(self.configuration)

    def option(self, name: str) -> str | None:
        return self.options.get(name)

    def with_option(self, name: str, value: str) -> Metadata:
        """The metadata with an option set."""
        return replace(self, configuration=tuple({**self.options, name: value}.items()))

    def is_on(self, name: str) -> bool:
        return (self.option(name) or "").lower() == "true"

    @classmethod
    def of(cls, json: Mapping[str, Any]) -> Metadata:
        configuration = json.get("configuration") or {}
        pairs = configuration.items() if isinstance(configuration, Mapping) else configuration
        return cls(
            id=json["id"],
            schema_text=json.get("schemaString") or NO_COLUMNS,
            partition_by=tuple(json.get("partitionColumns") or ()),
            configuration=tuple((name, value) for name, value in pairs),
            name=json.get("name"),
            description=json.get("description"),
            created=json.get("createdTime"),
        )

    def json(self) -> Json:
        named = {"name": self.name, "description": self.description}
        return {
            "metaData": {
                "id": self.id,
                **{key: value for key, value in named.items() if value is not None},
                "format": {"provider": "parquet", "options": {}},
                "schemaString": self.schema_text,
                "partitionColumns": list(self.partition_by),
                "configuration": self.options,
                "createdTime": self.created,
            }
        }


@dataclass(frozen=True, slots=True)
class Protocol:
    """Features that a reader or writer must understand."""

    reader: int = 1
    writer: int = 2
    reader_features: frozenset[str] = frozenset()
    writer_features: frozenset[str] = frozenset()

    @classmethod
    def of(cls, json: Mapping[str, Any]) -> Protocol:
        return cls(
            json["minReaderVersion"],
            json["minWriterVersion"],
            frozenset(json.get("readerFeatures") or ()),
            frozenset(json.get("writerFeatures") or ()),
        )

    def json(self) -> Json:
        features: Json = {}
        if self.reader >= TABLE_FEATURES_READER:
            features["readerFeatures"] = sorted(self.reader_features)
        if self.writer >= TABLE_FEATURES_WRITER:
            features["writerFeatures"] = sorted(self.writer_features)
        versions = {"minReaderVersion": self.reader, "minWriterVersion": self.writer}
        return {"protocol": {**versions, **features}}


TABLE_FEATURES_READER, TABLE_FEATURES_WRITER = 3, 7
_SAFE = "/=-_.~"  # in a path of the log, which is part of a URI


def encoded(directory: str, path: str) -> str:
    """A file's path as an action names it: relative to the table's directory, URL-encoded."""
    inside = path.removeprefix(f"{directory.rstrip('/')}/")
    return quote(inside, safe=_SAFE)


def lines(actions: list[Json]) -> bytes:
    """The content of a file of the log."""
    text = (json.dumps(action, ensure_ascii=False, separators=(",", ":")) for action in actions)
    return ("\n".join(text) + "\n").encode()
