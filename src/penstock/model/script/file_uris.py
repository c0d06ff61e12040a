"""URIs and paths of files in one spelling, and whether one that is read may be one that is written.

Python steps write them as ``exports/{partition}/x.json``, queries as constants that ``||`` joins.

The path of a file that a query reads: a value that becomes part of it is one segment of it.

(annotations.md, "Settled since".) What the script itself says may be any path or pattern; a
partition, an argument of the command line or a payload's text may only name a file or directory.
"""

from __future__ import annotations

import posixpath
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
from penstock.model.time.time_macros import TOKEN

_VALUE = "\x00"  # stands for an argument that only a run knows
_S3 = frozenset({"s3", "s3a", "s3n"})
#: what stands for other text: a slice, an argument, and the patterns that Spark's readers take
_WILD = re.compile(rf"{re.escape(TOKEN)}|{_VALUE}|\*+|\?|\[[^\]/]+\]|\{{[^{{}}]*,[^{{}}]*\}}")


def text_of(path: Constant, *, value: str | None = None) -> str:
    """The path of a file as a script has it; ``value`` or ``$name`` stands for an argument."""
    return ", ".join(texts_of(path, value=value)) or str(path)


def texts_of(path: Constant, *, value: str | None = None) -> tuple[str, ...]:
    """The same, of each path in a list; none where an expression is not a path."""
    try:
        found = path.evaluate(Bindings(TOKEN, _Names(value)))
    except Exception:  # whatever a value that is only a name does not do
        return ()
    return tuple(map(str, found)) if isinstance(found, list | tuple) else (str(found),)


class _Names(dict[str, object]):
    """Each argument's value is its name, or one text for all."""

    def __init__(self, value: str | None) -> None:
        super().__init__()
        self._value = value

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> str:
        return f"${name}" if self._value is None else self._value


def patterns_of(path: Constant, root: Path) -> tuple[str, ...]:
    """The files that a query reads, in one spelling; those that an argument alone names are left
    out."""
    return tuple(
        one_spelling(each, root) for each in texts_of(path, value=_VALUE) if each != _VALUE
    )


def one_spelling(uri: str, root: Path | None = None) -> str:
    """``s3://`` for each scheme of S3, and a path below ``root`` as it is from there."""
    scheme, separator, rest = uri.partition("://")
    if separator and scheme.lower() != "file":
        scheme = "s3" if scheme.lower() in _S3 else scheme.lower()
        return f"{scheme}://{rest}"
    path = posixpath.normpath(rest if separator else uri.removeprefix("file:"))
    if root is not None and path.startswith("/"):
        base = root.absolute().as_posix().rstrip("/")
        path = path.removeprefix(f"{base}/")
    return path


def asset_key(name: str) -> str:
    """The same for all spellings of a table's name, or of a file's URI."""
    return (one_spelling(name) if "/" in name else name).casefold()


def may_be(read: str, written: str, *, directories: bool = False) -> bool:
    """Return whether files of one pattern may be those of another; with ``directories`` also what
    lies below what is read. A slice or an argument stands for any one name.
    """
    if read == written:
        return True
    above, below = _names_in(read), _names_in(written)
    for name, other in zip(above, below, strict=False):
        if "**" in (name, other):
            return True
        if not (_meets(name, other) or _meets(other, name)):
            return False
    return len(above) == len(below) or (directories and len(above) < len(below))


def partition_in(pattern: str, name: str) -> str | None:
    """Return the partition for which a pattern names a file.

    Args:
        pattern: A path or URI, in which ``{partition}`` stands for the partition.
        name: The path or URI of a file that it matches.

    Returns:
        The partition; None where the pattern has no token, or more than one value fits.
    """
    names, parts = _names_in(pattern), _names_in(name)
    if len(names) != len(parts) or "**" in names:
        return None
    values: set[str] = set()
    for text, part in zip(names, parts, strict=True):
        pieces = list(map(_regex, text.split(TOKEN)))
        groups = [f"(?P<p{number}>.+)" for number in range(1, len(pieces))]
        pairs = zip(pieces, [*groups, ""], strict=True)
        match = re.fullmatch("".join(f"{piece}{group}" for piece, group in pairs), part)
        values |= set(match.groupdict().values()) if match is not None else {""}
    return values.pop() if len(values) == 1 and "" not in values else None


def _names_in(pattern: str) -> list[str]:
    """Its directories and its file, each a pattern."""
    scheme, separator, rest = pattern.rpartition("://")
    return [f"{scheme}{separator}", *rest.split("/")]


def _meets(name: str, other: str) -> bool:
    """Return whether one pattern matches the other, in which a character of no
    name is what varies.
    """
    return re.fullmatch(_regex(name), _WILD.sub("\x01", other)) is not None


def _regex(pattern: str) -> str:
    parts, end = [], 0
    for match in _WILD.finditer(pattern):
        parts += [re.escape(pattern[end : match.start()]), _varying(match.group())]
        end = match.end()
    return "".join([*parts, re.escape(pattern[end:])])


def _varying(token: str) -> str:
    if token == TOKEN or token[0] in "*\x00":
        return ".*"
    if token[0] == "{":
        return f"({'|'.join(map(re.escape, token[1:-1].split(',')))}|\x01)"
    return "." if token == "?" else f"({token}|\x01)"


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


def depends_on_slice(constant: Constant) -> bool:
    """Return whether the slice of a run decides what a path, or an option, is."""
    return any(
        isinstance(leaf, PartitionValue) or leaf.name in OF_SLICE for leaf in _values(constant)
    )


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
