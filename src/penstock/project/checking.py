"""Check a project: its findings, its unit tests and the spelling of its files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.errors import ArgumentError, Diagnostic, LakeError

if TYPE_CHECKING:
    from penstock.engine.verifying.project_check import CreatedExternal
    from penstock.engine.verifying.unit_tests import UnitTestResult
    from penstock.model.project.formatting import Formatter
    from penstock.project.context import ProjectContext


def show_as_form(context: ProjectContext, model: str, form: str) -> str:
    """Return a script in another form of header.

    Args:
        context: The project.
        model: The model.
        form: ``annotations`` or ``model``.

    Returns:
        The text of the script.

    Raises:
        InputError: That form cannot express something in the script.
    """
    return _formatter(context, form).formatted(context.model(model))[1]


def format_files(
    context: ProjectContext,
    paths: Sequence[str | Path] = (),
    form: str | None = None,
    *,
    check: bool = False,
) -> tuple[Path, ...]:
    """Rewrite the headers of models in canonical spelling.

    Args:
        context: The project.
        paths: Files and directories; none for all models.
        form: The form of header to write; None for the one that each file has.
        check: Change no file.

    Returns:
        The files that differ.

    Raises:
        ModelError: Some files cannot be rewritten; ``data["changed"]`` has the others.
    """
    return _formatter(context, form).run(
        context.models, [Path(path) for path in paths], check=check
    )


def _formatter(context: ProjectContext, form: str | None) -> Formatter:
    from penstock.model.project.formatting import Formatter

    assert context.loaded.place is not None, "a project that has models was read somewhere"
    return Formatter(context.loaded.place, form)


def check_models(context: ProjectContext, *, spark: bool = False) -> tuple[Diagnostic, ...]:
    """Return the findings about a project that could be loaded, in file order.

    Args:
        context: The project.
        spark: Let Spark analyze each query against the schemas that are known. None runs.

    Returns:
        The findings; their errors are faults that only a run would meet.
    """
    context.connections.check_open()
    from penstock.engine.verifying.project_check import check_project
    from penstock.model.slicing.needs import doubt_findings, needs_findings

    about = check_project(context.settings, context.models, context.externals, context.catalog)
    if any(model.input_needs for model in context.models):
        about = (*about, *needs_findings(context.models, context.edges))
    about = (*about, *doubt_findings(context.edges))
    context.save_facts()
    findings = (*context.loaded.diagnostics, *about)
    if any(finding.rule == "lake" for finding in findings):
        return findings
    if not spark:
        return (*findings, *_column_findings(context))
    from penstock.engine.verifying.column_check import RULE as REFERENCE
    from penstock.engine.verifying.spark_check import check_queries

    ordered = context.graph.ordered(context.models)
    lakes = {
        name: context.lake(name)
        for name in context.settings.lakes
        if context.catalog(name) is not None
    }
    session = context.session()
    found = check_queries(ordered, session, lakes, context.settings, context.externals)
    named = [each for each in _column_findings(context) if each.rule == REFERENCE]
    places = {(str(each.location.path), each.location.line) for each in named}
    others = (f for f in found if (str(f.location.path), f.location.line) not in places)
    return (*findings, *named, *others)


def _column_findings(context: ProjectContext) -> tuple[Diagnostic, ...]:
    """Columns that models name, and that their queries or those above them do not return.

    The lakes are asked where something is missing, which they may have, and where models read
    what no model of the project says the columns of.
    """
    from penstock.engine.verifying.column_check import (
        check_columns,
        missing_references,
        names_columns,
    )

    if not any(names_columns(model) or model.names_tables for model in context.models):
        return ()
    root, found = context.settings.root, list[Diagnostic]()
    try:
        for lakes in (False, True):
            lineage, known = context.lineage(lakes=lakes)
            references = missing_references(context.models, context.models, lineage, known.tables)
            found = [*check_columns(context.models, lineage, known.tables, root)]
            found += [each.finding() for each in references]
            if not found and lineage.knows_all(context.models):
                return ()
    except LakeError:  # a catalog that cannot be read says nothing of columns
        return ()
    return tuple(found)


def create_external_models(context: ProjectContext) -> CreatedExternal:
    """Add the tables that are read and not built to external_models.yaml, with their types."""
    from penstock.engine.verifying.project_check import create_external

    return create_external(
        context.settings.root, context.models, context.externals, context.catalog
    )


def run_tests(
    context: ProjectContext,
    names: Sequence[str],
    *,
    select: str | Sequence[str] | None = None,
    exclude: str | Sequence[str] | None = None,
    to: str | Sequence[str] | None = None,
) -> Iterator[UnitTestResult]:
    """Run unit tests and yield each result as it ends.

    Args:
        context: The project.
        names: Patterns of tests, models, or files below ``tests/``; none for all.
        select: Models in the selection language.
        exclude: Models to leave out.
        to: Models to end with.

    Returns:
        The results.

    Raises:
        ArgumentError: A name is unknown, or ``to`` is a slice.
        ModelError: A test file is wrong.
    """
    context.connections.check_open()
    from penstock.engine.planning.run_arguments import selection_of
    from penstock.engine.verifying.unit_test_files import WantedTests
    from penstock.engine.verifying.unit_tests import run_unit_tests
    from penstock.project.states import select_names

    selection, last = selection_of((), select, exclude, to, context.models)
    if last is not None:
        raise ArgumentError(
            f"unit tests have no range that could end at {last}", hint="--to names a model"
        )

    root, dialect = context.settings.root, context.settings.dialect
    wanted = WantedTests(names, selection, partial(select_names, context))
    return run_unit_tests(root, wanted, context.models, context.session, dialect)
