"""Scripts rewritten in the canonical spelling of a form, or in the other form.

Only what declares the model is rewritten: the query stays letter by letter, and no comment is
lost. What comes out is read again, and has to declare the same.

The files of models written in canonical spelling, or in another form, line endings kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from penstock.errors import ArgumentError, Diagnostic, InputError, Location, ModelError
from penstock.model.definition.model import Model
from penstock.model.files.header_lines import read_header
from penstock.model.files.source_map import Source
from penstock.model.headers.annotation import lines_of, parse
from penstock.model.headers.properties import KEYWORDS
from penstock.model.headers.syntax import begins_model, comments, formatted, read_block
from penstock.model.project.converting import CannotSay, annotation_lines, comparable, model_text
from penstock.model.project.loader import Place, read_declaration, with_own_audits
from penstock.model.project.python_models import SUFFIX as PYTHON
from penstock.model.script.declaration import Declaration

Reads = Callable[[str], Declaration | None]  # a text as a declaration, None where it is wrong
_NOT_READ_AGAIN = "a comment may read as an annotation: move it below the query's first line"


@dataclass(frozen=True, slots=True)
class Script:
    """``dialect`` is that of a script that names none; ``reads`` reads a text as this file's."""

    text: str
    declaration: Declaration
    dialect: str
    reads: Reads

    @property
    def path(self) -> Path:
        return self.declaration.path

    @property
    def form(self) -> str:
        start = read_header(self.text, self.path).end
        return "model" if begins_model(self.text, start) else "annotations"


def rewritten(script: Script, form: str | None = None) -> str:
    """The script in ``form``, its own by default, in canonical spelling.

    Raises InputError, at the script's place, for what the form cannot say.
    """
    wanted = form or script.form
    try:
        text = _WAYS[script.form, wanted](script)
    except CannotSay as error:
        raise InputError(
            f"{error.form} cannot say {', '.join(error.things)}",
            hint=error.hint,
            location=script.declaration.place("target"),
        ) from None
    _check(script, text)
    return text


def _check(script: Script, text: str) -> None:
    """That the text says what the script does."""
    declaration = script.reads(text)
    if declaration is None:
        raise InputError(
            "the script could not be read again",
            hint=_NOT_READ_AGAIN,
            location=Location(script.path),
        )
    before, after = comparable(script.declaration), comparable(declaration)
    differing = [name for name, value in before.items() if after.get(name) != value]
    if differing:
        raise InputError(
            f"the script would not say the same: {', '.join(differing)} would differ",
            hint=_NOT_READ_AGAIN,
            location=Location(script.path),
        )


def _annotations(script: Script) -> str:
    """Each annotation where it stands, in its canonical spelling."""
    end = script.declaration.code
    mark = "#" if script.path.suffix == PYTHON else "--"
    lines: list[str] = []
    for raw in script.text[:end].split("\n"):
        annotation = _annotation(raw, script.path)
        lines.append(raw.rstrip() if annotation is None else f"{mark} {annotation}")
    return "\n".join(lines) + script.text[end:]


def _annotation(raw: str, path: Path) -> str | None:
    """The annotation of a line on its own, in canonical spelling; None where it is not one."""
    line = next(iter(read_header(raw, path).lines), None)
    if line is None or line.keyword not in KEYWORDS:
        return None
    annotations, findings = parse(f"-- {line.text}", path)
    lines = lines_of(annotations)
    if len(lines) == 1 and not findings:
        return lines[0]
    return line.text if lines or line.keyword == "dialect" else None


def _to_model(script: Script) -> str:
    """MODEL where the first annotation stands; other comments stay before or after it, and the
    libraries that the script uses before it.
    """
    if script.path.suffix == PYTHON:
        raise CannotSay("MODEL (...)", ("a step in Python",))
    before: list[str] = []
    after: list[str] = []
    lines = before
    for raw in script.text[: script.declaration.code].rstrip().split("\n"):
        annotation = _annotation(raw, script.path)
        if annotation is not None and annotation.startswith("use "):
            before.append(f"-- {annotation}")
        elif annotation is not None:
            lines = after
        else:
            lines.append(raw)
    block = model_text(script.declaration, script.dialect)
    code = script.text[script.declaration.code :]
    return "\n".join([*before, block, *after, code.lstrip("\n")])


def _model(script: Script) -> str:
    source = Source(script.path, script.text)
    block = read_block(source, read_header(script.text, script.path).end)
    return script.text[: block.start] + formatted(source, block) + script.text[block.code :]


def _to_annotations(script: Script) -> str:
    """Comments of the block follow the annotations, a line each."""
    source = Source(script.path, script.text)
    start = read_header(script.text, script.path).end
    block = read_block(source, start)
    lines = annotation_lines(script.declaration, script.dialect)
    for comment in comments(source, block):
        inside = comment.removeprefix("--").removeprefix("/*").removesuffix("*/").strip()
        lines += [f"-- {line.strip()}".rstrip() for line in inside.split("\n")]
    above, between = script.text[:start], script.text[start : block.start].strip()
    parts = [*([above.rstrip()] if above.strip() else []), *lines]
    parts += [between] if between else []
    return "\n".join(parts) + script.text[block.code :]


_WAYS: Mapping[tuple[str, str], Callable[[Script], str]] = {
    ("annotations", "annotations"): _annotations,
    ("annotations", "model"): _to_model,
    ("model", "model"): _model,
    ("model", "annotations"): _to_annotations,
}


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
