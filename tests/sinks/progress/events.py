"""A run as its events: one step done, one failed, one skipped."""

from __future__ import annotations

from penstock.events import (
    CheckFinished,
    Event,
    Notice,
    RunFinished,
    RunStarted,
    SparkStarting,
    StepFinished,
    StepProgress,
    StepStarted,
)

DAY = "2013-01-02"

RUN: tuple[Event, ...] = (
    SparkStarting(),
    RunStarted("r1", ("raw", "clean", "mart"), DAY),
    StepStarted("raw", DAY),
    StepProgress("raw", "writing"),
    CheckFinished("raw", "not_null id", True, 0),
    StepFinished("raw", "done", 1.25, rows=1842, snapshot_id=3),
    StepStarted("clean", None),
    Notice("no key in 2 rows", "clean"),
    CheckFinished("clean", "unique id", False, 2),
    StepFinished("clean", "failed", 0.5, reason="test unique id failed on 2 rows"),
    StepFinished("mart", "skipped", 0.0, reason="clean failed"),
    RunFinished("r1", "failed", 2.0),
)
