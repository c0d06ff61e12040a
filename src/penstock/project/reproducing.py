"""Make steps of past runs once more, and compare the rows with what the runs wrote.

The part of the Python API that repeats, and changes nothing.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from penstock.errors import ArgumentError
from penstock.project.table_inspection import SAMPLES, TableInspection

if TYPE_CHECKING:
    from penstock.engine.verifying.reproduce import Reproduction


class Reproducing(TableInspection):
    """The repetition of past runs. `Project` is its class for users."""

    def reproduce(
        self,
        run: str,
        step: str | None = None,
        *,
        partition: str | None = None,
        samples: int = SAMPLES,
    ) -> Reproduction:
        """Make the steps of a run once more from their inputs as they were, and compare the rows
        with what it wrote: ``project.reproduce("last", "orders").steps``.

        All steps, or one, or its slice ``partition``. No table is written. A step that cannot be
        made as it was is ``refused``, with the reason. ``run`` is an id, a part that only one
        begins or ends with, or ``last``. Raises ArgumentError.
        """
        from penstock.engine.state import run_history
        from penstock.engine.state.store import State
        from penstock.engine.verifying.reproduce import Reproducer, Reproduction, chosen

        catalogs = self._catalogs()
        run_id = self._run_id(run)
        name = self._step_name(step) if step is not None else None
        ask = partial(run_history.recorded, run_id=run_id)
        known = {lake: State(catalog).read(ask, None) for lake, catalog in catalogs.items()}
        found = {lake: (of, chosen(of.steps, name, partition)) for lake, of in known.items() if of}
        if not any(steps for _, steps in found.values()):
            what = "step" if name is None else " ".join(filter(None, (name, partition)))
            raise ArgumentError(
                f"run {run_id} has no {what}", hint=f"penstock runs show {run_id} says what it made"
            )
        lakes = {lake: self.lake(lake) for lake in catalogs}
        reproducer = Reproducer(
            self.settings, self._loaded, lakes, self._session, self.on_event, samples
        )
        return Reproduction(
            run_id,
            tuple(
                reproducer.reproduced(each, lake, of)
                for lake, (of, steps) in found.items()
                for each in steps
            ),
        )

    def _step_name(self, step: str) -> str:
        """The name of a model, as users may call it; that of a model that is gone as it is."""
        try:
            return self.model(step).name
        except ArgumentError:
            return step
