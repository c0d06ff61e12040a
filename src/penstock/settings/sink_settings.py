"""``[notify.NAME]`` and ``[openlineage]``: where notifications and events of lineage go.

[notify.oncall]
webhook = "https://hooks.example.com/T1/B2"
select = "tag:finance"

[notify.pager]
command = "python3 scripts/page.py"
recovery = false

[openlineage]
url = "http://marquez:5000"
namespace = "shop-prod"
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class NotifySettings:
    """One who is told: by a POST to ``webhook``, which is a secret, or by a ``command``.

    ``select`` are words of the selection language; empty: all models. ``failure``, ``recovery`` and
    ``late`` say what is told. With ``values``, failures have some of the rows that failed a test.
    """

    name: str
    webhook: str | None = field(default=None, repr=False)
    command: tuple[str, ...] = ()
    select: tuple[str, ...] = ()
    failure: bool = True
    recovery: bool = True
    late: bool = True
    values: bool = False


@dataclass(frozen=True, slots=True)
class OpenLineageSettings:
    """Events are sent to the server at ``url``, or appended to ``file``, one of which is there.

    ``namespace`` is that of jobs; ``api_key`` is a secret.
    """

    namespace: str
    url: str | None = None
    file: Path | None = None
    api_key: str | None = field(default=None, repr=False)
