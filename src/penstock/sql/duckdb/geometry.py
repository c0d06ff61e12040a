"""Well-known text of a geometry as well-known bytes."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping

_KINDS: Mapping[str, int] = {
    "POINT": 1,
    "LINESTRING": 2,
    "POLYGON": 3,
    "MULTIPOINT": 4,
    "MULTILINESTRING": 5,
    "MULTIPOLYGON": 6,
}
_WRITTEN = re.compile(r"\s*([A-Za-z]+)\s*(\(.*\))\s*", re.DOTALL)
_TOKEN = re.compile(r"\s*([(),]|[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)\s*")


class _NoGeometry(Exception):
    """The text is of another form."""


def well_known_bytes(text: str) -> bytes | None:
    """Return the bytes of a geometry of two dimensions that is not empty; ``None`` for others."""
    written = _WRITTEN.fullmatch(text)
    kind = "" if written is None else written[1].upper()
    if written is None or kind not in _KINDS:
        return None
    try:
        tree, rest = _tree(_tokens(written[2]))
        return None if rest else _WRITERS[kind](tree)
    except (_NoGeometry, IndexError, TypeError, ValueError):
        return None


def _tokens(text: str) -> list[str]:
    tokens = _TOKEN.findall(text)
    if "".join(tokens) != re.sub(r"\s", "", text):
        raise _NoGeometry
    return tokens


def _tree(tokens: list[str]) -> tuple[list[object], list[str]]:
    """Brackets as lists, in which a position is a tuple; and what follows the first."""
    if tokens[0] != "(":
        raise _NoGeometry
    items: list[object] = []
    numbers: list[float] = []
    at = 1
    while at < len(tokens):
        token = tokens[at]
        if token == "(":
            item, rest = _tree(tokens[at:])
            items.append(item)
            at = len(tokens) - len(rest)
            continue
        at += 1
        if token in {",", ")"}:
            if numbers:
                items.append(_position(numbers))
                numbers = []
            if token == ")":
                return items, tokens[at:]
            continue
        numbers.append(float(token))
    raise _NoGeometry


def _position(numbers: list[float]) -> tuple[float, float]:
    if len(numbers) != 2:
        raise _NoGeometry
    return numbers[0], numbers[1]


def _head(kind: str, *sizes: int) -> bytes:
    return struct.pack(f"<BI{'I' * len(sizes)}", 1, _KINDS[kind], *sizes)


def _point(tree: object) -> bytes:
    (position,) = tree if isinstance(tree, list) else (tree,)
    return _head("POINT") + struct.pack("<dd", *position)  # type: ignore[misc]  # checked above


def _positions(tree: object) -> bytes:
    if not isinstance(tree, list) or not all(isinstance(item, tuple) for item in tree):
        raise _NoGeometry
    return struct.pack("<I", len(tree)) + b"".join(struct.pack("<dd", *item) for item in tree)


def _line(tree: object) -> bytes:
    return _head("LINESTRING") + _positions(tree)


def _polygon(tree: object) -> bytes:
    if not isinstance(tree, list):
        raise _NoGeometry
    return _head("POLYGON", len(tree)) + b"".join(map(_positions, tree))


def _several(kind: str, write: Callable[[object], bytes]) -> Callable[[object], bytes]:
    def written(tree: object) -> bytes:
        if not isinstance(tree, list):
            raise _NoGeometry
        return _head(kind, len(tree)) + b"".join(map(write, tree))

    return written


_WRITERS: Mapping[str, Callable[[object], bytes]] = {
    "POINT": _point,
    "LINESTRING": _line,
    "POLYGON": _polygon,
    "MULTIPOINT": _several("MULTIPOINT", _point),
    "MULTILINESTRING": _several("MULTILINESTRING", _line),
    "MULTIPOLYGON": _several("MULTIPOLYGON", _polygon),
}
