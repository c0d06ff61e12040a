"""Inspect the past runs of a project: lists of them, and what is known of each.

The part of the Python API that answers what happened, and changes nothing.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from penstock.durations import is_duration, seconds_of
from penstock.errors import ArgumentError
from penstock.inspection import Inspection

if TYPE_CHECKING:
    from penstock.engine.answers.runs import PastRuns, RunDetail, RunLogLines
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
        from penstock.engine.state.run_log import log_of

        catalogs, directory = self._catalogs(), self.settings.retention.directory
        detail = run_detail(catalogs, run_id_of(catalogs, run))
        if directory is None:
            return detail
        return detail.with_log(log_of(directory, detail.run.run_id))

    def log(self, run: str = "last") -> RunLogLines:
        """The log of a run, or of the last run of a model: ``project.log("orders").lines``.

        ``run`` is as in `past_run`, or a model, of which the lines of its own steps are meant.
        Raises ArgumentError where there is none on this machine.
        """
        from penstock.engine.answers.logs import find_log
        from penstock.engine.answers.runs import RunLogLines, no_log, run_id_of

        directory = self.settings.retention.directory
        model = next((each for each in self.models if each.name == run), None)
        path = None if model is not None else find_log(directory, run)
        if path is not None:
            return RunLogLines(path, None)
        if model is None:
            with suppress(ArgumentError):
                model = self.model(run)
        if model is None:
            raise no_log(self._catalogs(), run_id_of(self._catalogs(), run))
        runs = self.runs(model.name, limit=1)
        if not runs:
            raise ArgumentError(f"no run of {model.name} is recorded", hint="penstock run makes it")
        path = find_log(directory, runs[0].run_id)
        if path is None:
            raise no_log(self._catalogs(), runs[0].run_id)
        return RunLogLines(path, model.name)

    def _catalogs(self) -> dict[str, Catalog]:
        """The catalogs that exist, by the names of their lakes."""
        self._connections.check_open()
        known = ((name, self._catalog(name)) for name in self.settings.lakes)
        return {name: catalog for name, catalog in known if catalog is not None}
