"""Shared by the attempts of a run: the session, the lakes and their state, and being cancelled."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from penstock.engine.planning.plan import Plan
from penstock.engine.session.spark import lakes_for, session_for
from penstock.engine.state.claims import Claim, Claims
from penstock.engine.state.store import State
from penstock.events import EventSink
from penstock.model.definition.model import Model
from penstock.settings.config import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.destinations.destination import Destination


class Cancelled(Exception):
    """The run was asked to stop. Never leaves the engine."""


@dataclass(frozen=True, slots=True)
class RunContext:
    """``lakes`` and ``states`` are by the names of penstock.toml. ``claims`` are those of
    the run, ``conf`` the settings of Spark that decide what rows are (`SparkSettings.meaning`).
    """

    run_id: str
    plan: Plan
    settings: Settings
    session: SparkSession
    lakes: Mapping[str, Destination]
    states: Mapping[str, State]
    sink: EventSink
    later: Executor | None = None  # for work that no step waits for; ends with the run
    cancelled: threading.Event = field(default_factory=threading.Event)
    claims: Claims = field(default_factory=Claims)
    claim: Claim | None = None  # of the batch that is made in this world
    conf: Mapping[str, str] | None = None
    has_shared_session: bool = False  # whether other runs of this process use the session too

    # Sessions of steps that set configuration of their own: `interrupt` stops their jobs too.
    own_sessions: list[SparkSession] = field(default_factory=list)

    def for_step(self, model: Model) -> RunContext:
        """This world as the step sees it: with a session of its own when its script sets any."""
        session = session_for(model.query, self.session)
        if session is self.session:
            return self
        self.own_sessions.append(session)
        return replace(self, session=session, lakes=lakes_for(session, self.lakes))

    def interrupt(self) -> None:
        """Stop what Spark does for this run, and let nothing more begin.

        All jobs of the sessions: interrupting by tag would be nicer, but without Spark Connect only
        the thread that set a tag can interrupt by it (Spark 4.3). Jobs of a session that other runs
        use go on. Their steps publish nothing.
        """
        self.cancelled.set()
        sessions = () if self.has_shared_session else (self.session,)
        for session in (*sessions, *self.own_sessions):
            with contextlib.suppress(Exception):  # Spark may have ended already
                session.interruptAll()

    def lake_of(self, model: Model) -> Destination:
        return self.lakes[model.target.lake]

    def check_cancelled(self) -> None:
        if self.cancelled.is_set():
            raise Cancelled
