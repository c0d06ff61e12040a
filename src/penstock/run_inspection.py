"""Inspect the past runs of a project: lists of them, and what is known of each.

The part of the Python API that answers what happened, and changes nothing.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from penstock.durations import is_duration, seconds_of
from penstock.inspection import Inspection

if TYPE_CHECKING:
    from penstock.engine.answers.runs import PastRuns, RunDetail
    from penstock.lake.catalog.catalog import Catalog

LAST_RUNS = 20  # that a list shows


def moment_since(since: str | datetime | None, now: datetime | None = None) -> datetime | None:
    """The moment that ``24h`` before now, or a time with its zone, is. Raises ArgumentError."""
    from penstock.engine.planning.run_arguments import fired

    if isinstance(since, str) and is_duration(since):
        return (now or datetime.now(UTC)) - timedelta(seconds=seconds_of(since))
    return None if since is None else fired(since)


class RunInspection(Inspection):
    """Questions about past runs. `Project` is its class for users."""

    def runs(
        self,
        model: str | None = None,
        *,
        failed: bool = False,
        since: str | datetime | None = None,
        limit: int = LAST_RUNS,
    ) -> PastRuns:
        """The last runs, newest first: ``project.runs(failed=True, since="24h")``. No Spark.

        Those that made slices of ``model``, or tried to; ``failed`` are those that failed or were
        killed. ``since`` is a duration, or a time. Raises ArgumentError.
        """
        from penstock.engine.answers.runs import past_runs
        from penstock.engine.state.run_history import AskedRuns

        target = None if model is None else self.model(model).target
        asked = AskedRuns(
            limit, moment_since(since), failed, None if target is None else target.qualified
        )
        return past_runs(self._catalogs(), asked, None if target is None else target.lake)

    def past_run(self, run: str = "last") -> RunDetail:
        """All that is known of a run: ``project.past_run("last").steps``. Starts no Spark.

        ``run`` is an id, a part that only one begins or ends with, or ``last``. Raises
        ArgumentError.
        """
        from penstock.engine.answers.runs import run_detail, run_id_of

        catalogs = self._catalogs()
        return run_detail(catalogs, run_id_of(catalogs, run))

    def _catalogs(self) -> dict[str, Catalog]:
        """The catalogs that exist, by the names of their lakes."""
        self._connections.check_open()
        known = ((name, self._catalog(name)) for name in self.settings.lakes)
        return {name: catalog for name, catalog in known if catalog is not None}
