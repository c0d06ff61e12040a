"""The path of a file that a query reads: a value that becomes part of it is one segment of it.

(annotations.md, "Settled since".) What the script itself says may be any path or pattern; a
partition, an argument of the command line or a payload's text may only name a file or directory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from penstock.errors import ArgumentError, Location, PartitionError
from penstock.model.script.arguments import OF_SLICE, Argument, default_of
from penstock.model.script.constants import (
    ArgumentValue,
    Bindings,
    Concat,
    Constant,
    ListOf,
    Literal,
    PartitionValue,
    as_text,
)
from penstock.model.script.sources import FileSource

#: separators of any system, what a glob of Python or Hadoop reads, and control characters
_FORBIDDEN = re.compile(r"[/\\*?\[\]{}\x00-\x1f\x7f]")
#: types whose values are checked paths on their own
_WHOLE_PATHS = ("s3object", "s3object[]")
_HINT = "write directories and patterns in the script: 'data/' || {} || '/*.csv'"


def path_of(source: FileSource, bindings: Bindings, arguments: Sequence[Argument]) -> object:
    """The path that ``source`` reads, or a list of paths.

    An argument's own default is the script's text and may be any path. Raises PartitionError and
    ArgumentError for a value that is not one segment of a path.
    """
    declared = {argument.name: argument for argument in arguments}
    for leaf in _values(source.path):
        _check(leaf, bindings, declared, source.location)
    return source.path.evaluate(bindings)


def depends_on_values(path: Constant) -> bool:
    """Return whether the partition or an argument is part of the path."""
    return next(_values(path), None) is not None


def partition_of_a_file(path: Constant, root: Path) -> str | None:
    """A partition for which the path leads to a file, where the partition stands in it once."""
    if path == PartitionValue():
        path = Concat((path,))
    if not isinstance(path, Concat):
        return None
    texts = [str(part.value) if isinstance(part, Literal) else None for part in path.parts]
    if texts.count(None) != 1 or PartitionValue() not in path.parts:
        return None
    at = texts.index(None)
    before, after = ("".join(map(str, side)) for side in (texts[:at], texts[at + 1 :]))
    if Path(before).is_absolute() or _FORBIDDEN.search((before + after).replace("/", "")):
        return None
    for match in sorted(root.glob(f"{before}*{after}")):
        return match.relative_to(root).as_posix()[len(before) :].removesuffix(after)
    return None


def _values(path: Constant) -> Iterator[PartitionValue | ArgumentValue]:
    if isinstance(path, PartitionValue | ArgumentValue):
        yield path
    parts = path.parts if isinstance(path, Concat) else ()
    items = path.items if isinstance(path, ListOf) else ()
    for inner in (*parts, *items):
        yield from _values(inner)


def _check(
    leaf: PartitionValue | ArgumentValue,
    bindings: Bindings,
    declared: Mapping[str, Argument],
    location: Location | None,
) -> None:
    value = leaf.evaluate(bindings)
    argument = declared.get(leaf.name) if isinstance(leaf, ArgumentValue) else None
    if value is None or (argument is not None and argument.type in _WHOLE_PATHS):
        return
    reason = why_no_segment(as_text(value))
    if reason is None:
        return
    if isinstance(leaf, PartitionValue) or leaf.name in OF_SLICE:
        message = f"the partition {value!r} becomes part of a path and {reason}"
        raise PartitionError(message, hint=_HINT.format("'{partition}'"), location=location)
    if argument is None or argument.default is None or value != default_of(argument):
        message = f"argument {leaf.name}: {value!r} becomes part of a path and {reason}"
        raise ArgumentError(message, hint=_HINT.format(f"${leaf.name}"), location=location)


def why_no_segment(text: str) -> str | None:
    """Return why ``text`` is not the name of one file or directory; ``None`` when it is."""
    if not text:
        return "is empty"
    match = _FORBIDDEN.search(text)
    if match:
        return f"holds {match.group()!r}: one segment has no separator and no pattern"
    return "leads out of its directory" if text == "." or ".." in text else None
