"""Record what the slices of a batch are made from: tables, files, arguments and data tests.

Files are looked at before anything reads them: one that changes meanwhile then differs from what is
recorded, and its slice is behind.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from itertools import islice
from pathlib import Path

from penstock.engine.inputs.file_reader import matching
from penstock.engine.inputs.pinned_tables import Pins
from penstock.engine.planning.plan import PlannedStep
from penstock.engine.session.run_context import RunContext
from penstock.engine.state.records import InputRead, ReadRecord
from penstock.model.definition.model import Model
from penstock.model.script.constants import Bindings
from penstock.model.script.file_uris import depends_on_slice, path_of
from penstock.uuid7 import new_uuid7

_HASHED = 4 * 1024 * 1024  # bytes of the files of a slice, the first ones, that are hashed
_MOST = 10_000  # files of one slice that are recorded


def read_records(context: RunContext, planned: PlannedStep, pins: Pins) -> Mapping[str, ReadRecord]:
    """Return the records of what slices read, by their texts: each its own where its files are."""
    slices = planned.slices
    by_slice = any(depends_on_slice(each.path) for each in planned.model.query.files)
    if len(slices) == 1 or not by_slice:
        record = read_record(context, planned, pins)
        return dict.fromkeys((slice_.text for slice_ in slices), record)
    narrowed = ((each, context.plan.narrowed(planned, (each,))) for each in slices)
    return {slice_.text: read_record(context, own, pins) for slice_, own in narrowed}


def read_record(context: RunContext, planned: PlannedStep, pins: Pins) -> ReadRecord:
    """Return the record of what one attempt reads, under an id of its own."""
    model, root = planned.model, context.settings.root
    names = {argument.name for argument in model.run_arguments}
    lakes = {table.lake for table in model.inputs} | {model.target.lake}
    return ReadRecord(
        read_id=new_uuid7(),
        target=model.target.qualified,
        run_id=context.run_id,
        lakes={lake: at for lake, at in pins.versions.items() if lake in lakes},
        inputs=(
            *(InputRead("table", str(table)) for table in model.changing_inputs),
            *files_of(model, planned.bindings, root),
        ),
        arguments={name: text for name, text in context.plan.args.items() if name in names},
        tests=hash_of_tests(model),
        version=_version(),
    )


@cache
def _version() -> str:
    return version("penstock")


def files_of(model: Model, bindings: Bindings, root: Path) -> Iterator[InputRead]:
    """Yield the files of this machine that a slice reads, and the paths of others."""
    left = _HASHED
    for path in islice(paths_of(model, bindings, root), _MOST):
        if isinstance(path, str):
            yield InputRead("file", path)
            continue
        found = file_read(path, root)
        if found.size is not None and found.size <= left:
            left -= found.size
            found = replace(found, hash=hash_of(path))
        yield found


def file_read(path: Path, root: Path) -> InputRead:
    """Return a file as it is now, without its content."""
    stat = path.stat()
    name = str(path.relative_to(root) if path.is_relative_to(root) else path)
    return InputRead("file", name, size=stat.st_size, time=stat.st_mtime_ns)


def hash_of(path: Path) -> str:
    """Return the hash of a file's content."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def paths_of(model: Model, bindings: Bindings, root: Path) -> Iterator[Path | str]:
    """Yield files of this machine, those of directories too, and URIs as they are."""
    for source in model.query.files:
        paths = path_of(source, bindings, model.query.arguments)
        for text in paths if isinstance(paths, list) else [paths]:
            if "://" in str(text):
                yield str(text)
                continue
            for match in map(Path, matching(str(text), root)):
                inside = sorted(match.rglob("*")) if match.is_dir() else [match]
                yield from (path for path in inside if path.is_file() and path.name[0] not in "._")


def hash_of_tests(model: Model) -> str:
    """Return a hash of the data tests that decide whether a slice is published."""
    tests = [test.to_dict() for test in model.data_tests]
    scripts = [[script.text, dict(script.arguments)] for script in model.test_scripts]
    text = json.dumps([tests, scripts], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()
