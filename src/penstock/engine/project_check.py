"""What is wrong with a project as a whole, found without Spark and without opening a lake."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.config import Settings
from penstock.errors import Diagnostic, Location
from penstock.model.model import Model
from penstock.model.not_taken import FIRST_MODEL


def check_project(settings: Settings, models: Sequence[Model]) -> tuple[Diagnostic, ...]:
    """Findings that no script has by itself."""
    return tuple(_no_models(settings, models))


def _no_models(settings: Settings, models: Sequence[Model]) -> Iterator[Diagnostic]:
    if not models:
        message = "the project has no model"
        yield Diagnostic("error", message, Location(settings.models), FIRST_MODEL, "no-models")
