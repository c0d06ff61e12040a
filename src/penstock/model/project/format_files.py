"""The files of models written in canonical spelling, or in another form, line endings kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from penstock.errors import ArgumentError, Diagnostic, InputError, Location, ModelError
from penstock.model.definition.model import Model
from penstock.model.project.formatting import Script, rewritten
from penstock.model.project.loader import Place, read_declaration, with_own_audits
from penstock.model.project.python_models import SUFFIX as PYTHON
from penstock.model.script.declaration import Declaration

_BOM = "\ufeff"


@dataclass(frozen=True, slots=True)
class Formatter:
    """``form`` None leaves each script in its own."""

    place: Place
    form: str | None = None

    def run(
        self, models: Sequence[Model], paths: Sequence[Path], *, check: bool
    ) -> tuple[Path, ...]:
        """The files that change; they are written unless ``check``.

        Raises ModelError with the files that cannot be rewritten when the others are, which are
        ``data["changed"]``.
        """
        changed: dict[Path, str] = {}
        refused: list[Diagnostic] = []
        for model in _chosen(models, paths):
            try:
                before, after = self.formatted(model) if model.formatted else ("", "")
            except InputError as error:
                where = error.location or Location(model.path)
                refused.append(Diagnostic("error", error.message, where, error.hint, "format"))
                continue
            if after != before:
                changed[model.path] = after
        for path, text in {} if check else changed.items():
            path.write_text(text, encoding="utf-8", newline="")
        if refused:
            wrong = ModelError(refused)
            wrong.data["changed"] = list(changed)
            raise wrong
        return tuple(changed)

    def formatted(self, model: Model) -> tuple[str, str]:
        """The text of the model's file, and what it is to be."""
        with model.path.open(encoding="utf-8", newline="") as file:
            before = file.read()
        mark = _BOM if before.startswith(_BOM) else ""
        end = "\r\n" if "\r\n" in before else "\n"
        text = before.removeprefix(_BOM).replace("\r\n", "\n")
        script = Script(
            text,
            self._as_written(text, model) if self.place.defaults.folders else model,
            self.place.dialect,
            lambda text: self._declaration(text, model.path),
        )
        return before, mark + rewritten(script, self.form).replace("\n", end)

    def _declaration(self, text: str, path: Path) -> Declaration | None:
        """Return what a text says as this file's, where its own audits stand behind its query."""
        place = self.place
        if path.suffix != PYTHON:
            text, place, _ = with_own_audits(text, path, place)
        return read_declaration(text, path, place)[0]

    def _as_written(self, text: str, model: Model) -> Model:
        """The model without what the project's defaults say for it."""
        said = self._declaration(text, model.path)
        if said is None:
            return model
        # Any: a model has the fields of its declaration.
        own: dict[str, Any] = {each.name: getattr(said, each.name) for each in fields(Declaration)}
        return replace(model, **own)


def _chosen(models: Sequence[Model], paths: Sequence[Path]) -> list[Model]:
    """The models in these files and directories; all without any. Raises ArgumentError."""
    if not paths:
        return list(models)
    wanted = [path.resolve() for path in paths]
    chosen: dict[str, Model] = {}
    for written, path in zip(paths, wanted, strict=True):
        inside = [model for model in models if model.path.resolve().is_relative_to(path)]
        if not inside:
            raise ArgumentError(
                f"{written} has no model", hint="name a model's file, or a directory of some"
            )
        chosen |= {model.name: model for model in inside}
    return list(chosen.values())
