"""Queries that write nothing: a model's SELECT, or one from the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.config import Settings
from penstock.engine.plan import PlannedStep
from penstock.engine.resolve import Pins, resolve
from penstock.engine.sessions import lakes_for, session_for
from penstock.engine.views import Views
from penstock.errors import ModelError, PartitionError
from penstock.model.constants import Bindings
from penstock.model.names import Names
from penstock.model.query import Query, read_query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.lake.lake import Lake

Attach = Callable[[str], "Lake"]
_NAME = Path("query")  # where errors of a query without a file are placed


def preview(
    step: PlannedStep, session: SparkSession, attach: Attach, settings: Settings
) -> DataFrame:
    """What the step's SELECT returns at this moment."""
    if step.blocked is not None:
        raise PartitionError(f"{step.name}: {step.blocked}")
    reader = _Reader(session, attach, settings)
    return reader.read(step.model.query, step.bindings)


def query(
    text: str,
    args: Mapping[str, Any],
    session: SparkSession,
    attach: Attach,
    settings: Settings,
) -> DataFrame:
    """A SELECT with tables named as in a script; ``args`` are bound to its ``:name`` markers."""
    parsed, findings = read_query(text, _NAME, names=Names(tuple(settings.lakes)))
    if parsed is None:
        raise ModelError(findings)
    return _Reader(session, attach, settings).read(parsed, Bindings(), args)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads every lake as it is now."""

    session: SparkSession
    attach: Attach
    settings: Settings

    def read(
        self, parsed: Query, bindings: Bindings, args: Mapping[str, Any] | None = None
    ) -> DataFrame:
        session = session_for(parsed, self.session)
        attached = {name: self.attach(name) for name in {table.lake for table in parsed.reads}}
        lakes = attached if session is self.session else lakes_for(session, attached)
        pins = Pins(lakes, {name: lake.catalog.latest().id for name, lake in lakes.items()})
        with Views(session) as views:
            resolved = resolve(
                parsed,
                bindings,
                pins,
                session=session,
                views=views,
                root=self.settings.root,
                args=args,
            )
            return resolved.df
