"""A Python file with a header as a declaration and a step: the rules that only this form has.

The header says what the step makes, as in SQL. Without a ``materialize`` line that is what its code
writes by a helper: one table, or else files.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.errors import Diagnostic, Location
from penstock.model.files.python_code import PythonCode, read_code
from penstock.model.headers.annotation import declare, parse
from penstock.model.headers.draft import Annotations
from penstock.model.headers.values import quoted
from penstock.model.project.not_models import report_python
from penstock.model.python_steps import (
    APPEND,
    UPSERT,
    PythonStep,
    Uses,
    Write,
    read_signature,
    uses_of,
)
from penstock.model.script.arguments import PARTITION
from penstock.model.script.declaration import Declaration
from penstock.model.time.time_macros import TOKEN
from penstock.model.values.asset import (
    DEFAULT_SCHEMA,
    Asset,
    FileName,
    Materialize,
    Names,
    table_of,
)
from penstock.model.values.strategy import FILES

SUFFIX = ".py"
_WRITE = f"return rows from main, or write them by penstock.lake(...).{UPSERT}"


@dataclass(frozen=True, slots=True)
class PythonScript:
    """``declaration`` and ``step`` are None where a finding is an error, and both where the file
    has no header: it is not a step then."""

    declaration: Declaration | None = None
    step: PythonStep | None = None
    findings: tuple[Diagnostic, ...] = ()


def read_python(text: str, path: Path, root: Path, names: Names, dialect: str) -> PythonScript:
    """The step of a file, if its header declares one."""
    annotations, findings = parse(text, path, dialect=dialect)
    if not annotations.in_pipeline and annotations.materialize is None:
        module, _ = read_code(text, path, root)
        return PythonScript(findings=report_python(module, annotations, findings, names))
    code, wrong = read_code(text, path, root)
    if code is None:
        return PythonScript(findings=(*findings, *wrong))
    lake = _home(annotations, names)
    uses = uses_of(code, names, annotations.partition, annotations.dialect, lake)
    annotations, unclear = _with_target(annotations, uses)
    assets = (trigger.asset for trigger in annotations.triggers)
    on = [names.place(table) for asset in assets if asset and (table := table_of(asset))]
    step, wrong = read_signature(code, annotations.partition, on)
    findings = (*findings, *uses.findings, *unclear, *wrong)
    if annotations.materialize is not None:
        declaration, said = declare(text, path, annotations, names, findings)
        said = said[len(findings) :]
    elif uses.files and not unclear:
        declaration, said = _declare_files(code, annotations, uses)
    else:
        where = annotations.places.get("pipeline", Location(path, 1, 1))
        message = "the step makes no table and no file"
        hint = f"add `# materialize ducklake://main/table` and {_WRITE}"
        missing = Diagnostic("error", message, where, hint, "no-target")
        return PythonScript(findings=findings if unclear else (*findings, missing))
    if declaration is not None:
        said = (*said, *_rules(declaration, uses))
        said = (*said, *_of_time(declaration, step, uses))
    if step is not None:
        step = _with_uses(step, uses)
    return PythonScript(declaration, step, (*findings, *said))


def _home(annotations: Annotations, names: Names) -> str:
    """The lake of what names none, which also records the slices of files."""
    made = annotations.materialize
    target = table_of(made.target) if made else None
    if target is not None and target.lake in names.lakes:
        return target.lake
    return "main" if "main" in names.lakes else names.lakes[0]


def _with_target(
    annotations: Annotations, uses: Uses
) -> tuple[Annotations, tuple[Diagnostic, ...]]:
    """The annotations with the table that the code writes, where the header names none."""
    if annotations.materialize is not None or not uses.writes:
        return annotations, ()
    first, *others = uses.writes
    if first.table is None or first.keys is None:
        what = "which table" if first.table is None else "by which key"
        message = f"the code computes {what} it writes, so it is not known what the step makes"
        hint = "add `# materialize ducklake://main/table key=column` to the header"
        return annotations, (_error(first, uses.code, message, hint),)
    target = first.table
    differing = next((w for w in others if (w.table, w.helper) != (target, first.helper)), None)
    if differing is not None:
        message = f"the step writes {target} by {first.helper}, and here something else"
        hint = "let a step write one table in one way"
        return annotations, (_error(differing, uses.code, message, hint),)
    name = target.table if target.schema == DEFAULT_SCHEMA else target.qualified
    made = Materialize(
        Asset("ducklake", f"{target.lake}/{name}"),
        append=first.helper == APPEND,
        unique_key=",".join(map(quoted, first.keys)) or None,
    )
    if first.helper == UPSERT and not first.keys:
        message = f"{UPSERT} has no key to know rows by"
        return annotations, (_error(first, uses.code, message, 'add key="column"'),)
    places = {**annotations.places, "materialize": uses.code.where(first.node)}
    return replace(annotations, materialize=made, places=places), ()


def _error(write: Write, code: PythonCode, message: str, hint: str) -> Diagnostic:
    return Diagnostic("error", message, code.where(write.node), hint, "python-write")


def _declare_files(
    code: PythonCode, annotations: Annotations, uses: Uses
) -> tuple[Declaration, tuple[Diagnostic, ...]]:
    """A step that writes files and no table: its first names what it makes."""
    uri = next(iter(uses.files))
    placed = dict(code.placed_texts.values())
    place = code.where(placed[uri]) if uri in placed else annotations.places["pipeline"]
    target = FileName.of(uses.lake, uri)
    # Any table will do: the header's other lines are read as a table's are.
    stand_in = Materialize(Asset("ducklake", f"{uses.lake}/files"))
    places = {**annotations.places, "materialize": place}
    with_table = replace(annotations, materialize=stand_in, places=places)
    declaration, findings = declare(code.text, code.path, with_table, uses.names)
    assert declaration is not None, "it has a table"
    meaning = {"files": sorted(uses.files), "partition": declaration.meaning["partition"]}
    found = [*findings]
    if declaration.data_tests:
        hint = "let the step make a table, or take the tests away"
        message = "data tests need a table, and this step writes files"
        where = declaration.place("data_test:0")
        found.append(Diagnostic("error", message, where, hint, "test-files"))
    return replace(declaration, target=target, strategy=FILES, meaning=meaning), tuple(found)


def _rules(declaration: Declaration, uses: Uses) -> Iterator[Diagnostic]:
    if declaration.strategy.by_statements:
        hint = "take `manual` away: rows that main returns are written for it"
        message = "a step in Python writes by what it returns or by helpers: it cannot be manual"
        yield Diagnostic("error", message, declaration.place("target"), hint, "python-manual")
    for write in uses.writes:
        if write.table is not None and write.table != declaration.target:
            message = f"the step writes {write.table}, and its table is {declaration.target}"
            yield _error(write, uses.code, message, "let another step write it")
        elif declaration.strategy.helper != write.helper:
            right = "append" if write.helper == APPEND else "key=column"
            message = f"{write.helper} is not how a table of {declaration.strategy} is written"
            yield _error(write, uses.code, message, f"write `{right}` in its materialize line")
        elif write.helper == UPSERT and write.keys and write.keys != declaration.keys:
            said = ", ".join(declaration.keys)
            message = f"the key is {', '.join(write.keys)} here, and {said} in the header"
            yield _error(write, uses.code, message, "leave it out here")


def _of_time(declaration: Declaration, step: PythonStep | None, uses: Uses) -> Iterator[Diagnostic]:
    """One value for the slice, which a step has not that may make several intervals at once."""
    if not declaration.strategy.time_column:
        return
    own = () if step is None else step.arguments
    argument = next((each for each in own if each.name == PARTITION), None)
    place = argument.location if argument is not None else None
    if argument is not None or uses.uses_partition:
        what = "a parameter partition" if argument is not None else TOKEN
        message = f"{what} has no value in a step with `time=`, which may make several days at once"
        hint = "write def main(partition_start: datetime, partition_end: datetime)"
        where = place or declaration.place("target")
        yield Diagnostic("error", message, where, hint, "python-time")


def _with_uses(step: PythonStep, uses: Uses) -> PythonStep:
    tables = [each.table for each in step.parameters if each.table is not None]
    reads = dict.fromkeys([*tables, *uses.reads])
    by_slice = (table for table, of_run in uses.by_slice.items() if of_run)
    return replace(
        step,
        reads=tuple(reads),
        reads_slices_of=frozenset(by_slice).difference(tables),
        writes=tuple(uses.files),
        writes_itself=bool(uses.writes),
        partitioned_by_use=uses.uses_partition,
    )
