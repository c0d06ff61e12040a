"""Send what runs do as events of OpenLineage, by its own client.

A run is a job named as the project is; each batch of a step is a run of the step's job, with the
tables and files it reads, the table it makes, and which columns derive from which. What cannot be
sent is one notice, and changes nothing of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from threading import Lock
from typing import TYPE_CHECKING

from penstock.errors import EnvironmentMissing
from penstock.events import (
    Event,
    EventSink,
    Notice,
    RunFinished,
    RunStarted,
    StepFinished,
    StepStarted,
)
from penstock.masking import masked
from penstock.model.script.file_uris import texts_of
from penstock.uuid7 import new_uuid7

if TYPE_CHECKING:
    from openlineage.client import OpenLineageClient
    from openlineage.client.event_v2 import InputDataset, OutputDataset, Run
    from openlineage.client.facet_v2 import DatasetFacet, JobFacet, RunFacet

    from penstock.model.definition.model import Model
    from penstock.model.lineage.models import ProjectLineage
    from penstock.model.values.asset import TableName
    from penstock.scheduler.values import Firing
    from penstock.settings.config import Settings
    from penstock.settings.sink_settings import OpenLineageSettings

_TIMEOUT = 5.0  # seconds that the server may take for an event
_ENDS = {"done": "COMPLETE", "unchanged": "COMPLETE", "failed": "FAIL", "cancelled": "ABORT"}
_FACET_TYPE = {"value": "DIRECT"}  # of column lineage: all other kinds are INDIRECT


def client_of(to: OpenLineageSettings) -> OpenLineageClient:
    """Return a client that sends to where the settings say.

    :raises EnvironmentMissing: its package is not installed
    """
    try:
        from openlineage.client import OpenLineageClient
        from openlineage.client.transport.file import FileConfig, FileTransport
        from openlineage.client.transport.http import (
            ApiKeyTokenProvider,
            HttpConfig,
            HttpTransport,
            TokenProvider,
        )
    except ImportError:
        raise EnvironmentMissing(
            "[openlineage] needs the client of OpenLineage, which is not installed",
            hint="pip install 'penstock-spark[openlineage]', or take the section away",
        ) from None
    if to.file is not None:
        to.file.parent.mkdir(parents=True, exist_ok=True)
        return OpenLineageClient(
            transport=FileTransport(FileConfig(log_file_path=str(to.file), append=True))
        )
    auth = ApiKeyTokenProvider({"api_key": to.api_key}) if to.api_key else TokenProvider({})
    config = HttpConfig(str(to.url), timeout=_TIMEOUT, auth=auth, retry={"total": 1})
    return OpenLineageClient(transport=HttpTransport(config))


@dataclass(slots=True)
class Emitter:
    """A sink that sends what it hears as events of OpenLineage.

    ``lineage`` is asked for the columns when a step ends. ``report`` receives a notice where
    nothing can be sent. ``firing`` is what fired the run. The sink is called from the threads of a
    run.
    """

    settings: Settings
    namespace: str
    models: Mapping[str, Model]
    lineage: Callable[[], ProjectLineage]
    client: OpenLineageClient
    report: EventSink
    firing: Firing | None = None
    run_id: str = ""
    runs: dict[str, str] = field(default_factory=dict)
    failed: bool = False
    lock: Lock = field(default_factory=Lock)

    def __call__(self, event: Event) -> None:
        """Send what the event says, if anything."""
        send = _SENDS.get(type(event))
        if send is None or self.failed:
            return
        try:
            with self.lock:
                send(self, event)
        except Exception as error:  # the client's own errors have no common root
            self.failed = True
            cause = masked(str(error)).splitlines()[0] if str(error) else type(error).__name__
            self.report(
                Notice(f"no more events of OpenLineage are sent, as one could not be: {cause}")
            )

    def _run_started(self, event: RunStarted) -> None:
        self.run_id = event.run_id
        self._emit("START", self.run_id, self.settings.name)

    def _run_finished(self, event: RunFinished) -> None:
        ended = _ENDS.get(event.state, "COMPLETE")
        self._emit(ended, self.run_id, self.settings.name)
        self.client.close(_TIMEOUT)

    def _step_started(self, event: StepStarted) -> None:
        self.runs[event.step] = new_uuid7()
        self._emit("START", self.runs[event.step], event.step, model=self.models.get(event.step))

    def _step_finished(self, event: StepFinished) -> None:
        id_ = self.runs.get(event.step)
        model = self.models.get(event.step)
        if id_ is None or model is None or event.state not in _ENDS:
            return  # nothing of it has run
        self._emit(_ENDS[event.state], id_, event.step, model=model, ended=event)

    def _emit(
        self,
        kind: str,
        id_: str,
        job: str,
        *,
        model: Model | None = None,
        ended: StepFinished | None = None,
    ) -> None:
        from openlineage.client.event_v2 import Job, RunEvent, RunState
        from openlineage.client.facet_v2 import job_type_job, sql_job

        what = "MODEL" if model is not None else "PIPELINE"
        facets: dict[str, JobFacet] = {
            "jobType": job_type_job.JobTypeJobFacet("BATCH", "PENSTOCK", what)
        }
        if model is not None and model.python is None:
            facets |= {"sql": sql_job.SQLJobFacet(model.query.text, model.query.dialect)}
        self.client.emit(
            RunEvent(
                eventTime=datetime.now(UTC).isoformat(),
                producer="https://pypi.org/project/penstock-spark",
                run=self._run(id_, ended, is_step=model is not None),
                job=Job(self.namespace, job, facets),
                eventType=RunState(kind),
                inputs=[] if model is None else self._inputs(model),
                outputs=[] if model is None else self._outputs(model, ended),
            )
        )

    def _run(self, id_: str, ended: StepFinished | None, *, is_step: bool) -> Run:
        from openlineage.client.event_v2 import Run
        from openlineage.client.facet_v2 import error_message_run, parent_run, processing_engine_run

        engine = processing_engine_run.ProcessingEngineRunFacet(version("pyspark"), "spark")
        facets: dict[str, RunFacet] = {"processing_engine": engine}
        if self.firing is not None:
            from penstock.sinks.trigger_facet import NAME, trigger_facet

            facets |= {NAME: trigger_facet(self.firing)}
        if is_step:
            job = parent_run.Job(self.namespace, self.settings.name)
            facets |= {"parent": parent_run.ParentRunFacet(parent_run.Run(self.run_id), job)}
        if ended is not None and ended.state == "failed":
            reason = ended.reason or "failed"
            facets |= {"errorMessage": error_message_run.ErrorMessageRunFacet(reason, "SQL")}
        return Run(id_, facets)

    def _inputs(self, model: Model) -> list[InputDataset]:
        from openlineage.client.event_v2 import InputDataset

        tables = [InputDataset(*self._dataset(table)) for table in model.inputs]
        texts = [text for source in model.query.files for text in texts_of(source.path)]
        return [*tables, *(InputDataset("file", text) for text in dict.fromkeys(texts))]

    def _outputs(self, model: Model, ended: StepFinished | None) -> list[OutputDataset]:
        from openlineage.client.event_v2 import OutputDataset
        from openlineage.client.facet_v2 import (
            dataset_version_dataset,
            output_statistics_output_dataset,
        )

        namespace, name = self._dataset(model.target)
        if ended is None or ended.state == "failed":
            return [OutputDataset(namespace, name)]
        facets = self._columns(model)
        if ended.snapshot_id is not None:
            made = dataset_version_dataset.DatasetVersionDatasetFacet(str(ended.snapshot_id))
            facets |= {"version": made}
        rows = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(ended.rows)
        return [OutputDataset(namespace, name, {"outputStatistics": rows}, facets=facets)]

    def _columns(self, model: Model) -> dict[str, DatasetFacet]:
        """The columns of a table, and those that each derives from, over one hop."""
        from openlineage.client.facet_v2 import column_lineage_dataset as columns
        from openlineage.client.facet_v2 import schema_dataset

        found = self.lineage().of(model.target)
        if found is None or not found.columns:
            return {}
        datasets = {str(table): self._dataset(table) for table in model.inputs}
        fields = {
            column.name: columns.Fields(
                [
                    columns.InputField(
                        *datasets.get(each.asset, ("file", each.asset)),
                        field=each.column,
                        transformations=[
                            columns.Transformation(
                                _FACET_TYPE.get(each.kind, "INDIRECT"), each.kind.upper()
                            )
                        ],
                    )
                    for each in column.inputs
                ]
            )
            for column in found.columns
        }
        named = [schema_dataset.SchemaDatasetFacetFields(name) for name in found.names]
        return {
            "schema": schema_dataset.SchemaDatasetFacet(named),
            "columnLineage": columns.ColumnLineageDatasetFacet(fields),
        }

    def _dataset(self, table: TableName) -> tuple[str, str]:
        """The namespace of a table, which is its catalog, and its name there."""
        lake = self.settings.lakes.get(table.lake)
        catalog = f"ducklake:{table.lake}" if lake is None else masked(lake.catalog)
        return catalog, table.qualified


_SENDS: Mapping[type, Callable[[Emitter, Event], None]] = {
    RunStarted: Emitter._run_started,  # type: ignore[dict-item] # each gets events of its own type
    RunFinished: Emitter._run_finished,  # type: ignore[dict-item] # the same
    StepStarted: Emitter._step_started,  # type: ignore[dict-item] # the same
    StepFinished: Emitter._step_finished,  # type: ignore[dict-item] # the same
}
