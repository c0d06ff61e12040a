"""``[openlineage]``: where events of lineage go.

[openlineage]
url = "http://marquez:5000"
namespace = "shop-prod"
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from penstock.errors import ConfigError
from penstock.settings.retention import Setting

SECTION = "openlineage"
#: by key: its type
KEYS: dict[str, type] = {"url": str, "file": str, "namespace": str, "api_key": str}


@dataclass(frozen=True, slots=True)
class OpenLineageSettings:
    """Events are sent to the server at ``url``, or appended to ``file``, one of which is there.

    ``namespace`` is that of jobs; ``api_key`` is a secret.
    """

    namespace: str
    url: str | None = None
    file: Path | None = None
    api_key: str | None = field(default=None, repr=False)


def read_open_lineage(
    root: Path, project: str, get: Callable[[str], Setting | None]
) -> OpenLineageSettings:
    """Return the settings of the section, which has some. ``get`` takes dotted keys.

    :raises ConfigError: there are both url and file, or neither; or the url is none
    """
    given = {key: get(f"{SECTION}.{key}") for key in KEYS}
    found = {key: setting for key, setting in given.items() if setting is not None}
    at = next(iter(found.values())).origin
    if ("url" in found) == ("file" in found):
        raise ConfigError(
            f"[{SECTION}] has {'both' if 'url' in found else 'no'} url and file",
            location=at,
            hint='write one: url = "http://marquez:5000", or file = "lineage.jsonl"',
        )
    values = {key: str(setting.value) for key, setting in found.items()}
    if "url" in values and urlsplit(values["url"]).scheme not in {"http", "https"}:
        raise ConfigError(
            f"{SECTION}.url is no address that begins with https:// or http://",
            location=found["url"].origin,
            hint='write it whole, as in "http://marquez:5000"',
        )
    return OpenLineageSettings(
        namespace=values.get("namespace") or project,
        url=values.get("url"),
        file=root / values["file"] if "file" in values else None,
        api_key=values.get("api_key"),
    )
