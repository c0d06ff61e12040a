"""Checkpoints of a Delta log, by delta-rs, every so many commits; and what delta-rs needs of S3."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from penstock.delta.actions import Metadata
from penstock.delta.options import CHECKPOINT_INTERVAL
from penstock.errors import EnvironmentMissing
from penstock.lake import storage

_USUAL = 10  # commits; as all writers of Delta have it


def require_deltalake() -> None:
    """Raise EnvironmentMissing where delta-rs is not installed."""
    if find_spec("deltalake") is None:
        raise EnvironmentMissing(
            "Delta tables need the package deltalake, which is not installed",
            hint="pip install 'penstock-spark[delta]'",
        )


def write_if_due(uri: str, version: int, metadata: Metadata) -> None:
    """Write a checkpoint of a version that was just made, each tenth or as the table says."""
    if is_due(version, metadata):
        write_checkpoint(uri, version)


def is_due(version: int, metadata: Metadata) -> bool:
    """Return whether a checkpoint is due at this version. The checkpoints of some tables are
    protected: what delta-rs cleans up after it has written one is not known for certain.
    """
    if metadata.option("delta.requireCheckpointProtectionBeforeVersion") is not None:
        return False
    text = metadata.option(CHECKPOINT_INTERVAL) or ""
    every = int(text) if text.isdigit() and int(text) > 0 else _USUAL
    return version > 0 and version % every == 0


def write_checkpoint(uri: str, version: int) -> None:
    """Write a checkpoint of a version. Readers need none, so a failure does not fail the commit."""
    if find_spec("deltalake") is None:  # a project's tables are written without it
        return
    deltalake: Any = import_module("deltalake")
    failures: Any = import_module("deltalake.exceptions").DeltaError
    try:
        options = storage_options(uri)
        deltalake.DeltaTable(uri, version=version, storage_options=options).create_checkpoint()
    except (failures, OSError):
        return


def storage_options(uri: str) -> dict[str, str] | None:
    """The settings of the store as delta-rs names them; ``None`` for a local disk."""
    if not storage.is_remote(uri):
        return None
    settings = storage.storage_of(uri) or storage.Storage()
    values = {
        "AWS_ACCESS_KEY_ID": settings.access_key,
        "AWS_SECRET_ACCESS_KEY": settings.secret_key,
        "AWS_SESSION_TOKEN": settings.session_token,
        "AWS_ENDPOINT_URL": settings.endpoint,
        "AWS_REGION": settings.region or ("us-east-1" if settings.endpoint else None),
        "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": str(not settings.path_style).lower(),
        "AWS_ALLOW_HTTP": "true" if (settings.endpoint or "").startswith("http:") else None,
    }
    return {name: value for name, value in values.items() if value is not None}
