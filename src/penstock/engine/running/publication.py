"""What is recorded of a slice with its rows, and the error of one whose data tests failed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.engine.planning.plan import PlannedStep
from penstock.engine.results import CheckResult, ColumnInfo
from penstock.engine.state.records import Publication, column_infos, lies_among_others
from penstock.engine.state.store import now
from penstock.errors import DataTestFailed
from penstock.lake.candidate.state import Staged
from penstock.lake.format.naming import fold
from penstock.model.values.asset import TableName

if TYPE_CHECKING:
    from penstock.lake.format.schema import TableSchema


@dataclass(frozen=True, slots=True)
class MadeSlice:
    """What became of one slice: ``made_in`` is the snapshot that made it, None for a slice that
    never had rows. Where tests failed, nothing of it was published.
    """

    publication: Publication
    made_in: int | None

    @property
    def failed(self) -> tuple[CheckResult, ...]:
        return tuple(check for check in self.publication.checks if check.outcome == "failed")


def tests_failed(
    results: tuple[CheckResult, ...], columns: tuple[ColumnInfo, ...], target: TableName
) -> DataTestFailed:
    """The error of a slice whose data tests did not all pass."""
    failed = [result for result in results if result.outcome == "failed"]
    counts = ", ".join(f"{result.name} ({result.failures:,})" for result in failed)
    return DataTestFailed(
        f"{len(failed)} of {len(results)} data tests failed: {counts}",
        hint=f"nothing was published to {target}; correct the SELECT or its inputs",
        data={"results": results, "columns": columns},
    )


def publication(
    run_id: str,
    planned: PlannedStep,
    staged: Staged,
    checks: tuple[CheckResult, ...],
    schema: TableSchema,
) -> Publication:
    model, text = planned.model, planned.only.text
    return Publication(
        run_id=run_id,
        step=model.name,
        state="done",
        target=model.target.qualified,
        slice=text,
        strategy=model.strategy.name,
        rows=None if lies_among_others(model.strategy.name, text) else staged.slice_rows,
        fingerprint=staged.fingerprint,
        definition_hash=model.definition_hash,
        columns=column_infos(
            schema, {fold(name): text for name, text in model.about.column_descriptions}
        ),
        checks=checks,
        at=now(),
        slicing=model.slicing,
        keys=model.keys,
    )
