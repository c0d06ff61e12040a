"""Read scripts packed as bytes, for a cache: what a file says, without reading its SQL again.

The words of statements are left out, which are most of it: they are read again when asked for.
What is unpacked comes from the user's own cache directory and from nowhere else (SECURITY.md).
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any

from penstock.model.query.query import Query
from penstock.model.script.script import Statement
from penstock.model.values.asset import Macros, TableName
from penstock.sql.macros import Book
from penstock.sql.tokens import Token, words

#: packed files by `key_of` what they were read from
Packed = MutableMapping[str, bytes]
_MACROS = "macros"  # stands for the function that looks into the catalogs, which is the project's
_OURS = "penstock."
_OTHERS = frozenset({"pathlib", "pathlib._local", "datetime", "decimal", "zoneinfo", "collections"})
_PLAIN = frozenset({"set", "frozenset", "dict", "list", "tuple"})


@dataclass(slots=True)
class AskedMacros:
    """Looks macros up, and counts how often: what depends on a catalog is not the file's alone."""

    macros: Macros
    count: int = field(default=0, compare=False)

    def __call__(self, home: TableName, called: frozenset[str], text: str) -> Book:
        self.count += 1
        return self.macros(home, called, text)


class PackedStatement(Statement):
    """A statement whose words are read from its text when they are asked for."""

    __slots__ = ("_dialect", "_end", "_start", "_text", "_words")
    _text: str
    _dialect: str
    _start: int
    _end: int
    _words: tuple[Token, ...]

    def __init__(self, text: str, dialect: str, start: int, end: int) -> None:
        for name, value in (("text", text), ("dialect", dialect), ("start", start), ("end", end)):
            object.__setattr__(self, f"_{name}", value)

    @property
    def tokens(self) -> tuple[Token, ...]:
        try:
            return self._words
        except AttributeError:
            read = tuple(words(self._text, self._dialect, self._start, self._end))
            object.__setattr__(self, "_words", read)
            return read

    @property
    def start(self) -> int:
        return self._start

    @property
    def end(self) -> int:
        return self._end

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Statement) and self.tokens == other.tokens

    def __hash__(self) -> int:
        return hash(self.tokens)

    def __reduce__(self) -> tuple[Any, ...]:
        return PackedStatement, (self._text, self._dialect, self._start, self._end)


def pack(value: object, queries: Iterable[Query]) -> bytes:
    """``queries`` are all that are in ``value``."""
    out = io.BytesIO()
    texts = {
        id(part.statement): (query.source.text, query.dialect)
        for query in queries
        for part in query.parts
    }
    _Pickler(out, texts).dump(value)
    return out.getvalue()


def unpack(data: bytes, macros: Macros | None) -> Any:
    """``None`` for what `pack` did not make of the current classes."""
    try:
        return _Unpickler(io.BytesIO(data), macros).load()
    except Exception:  # whatever is in the file: it is read again
        return None


def restore(kind: type, *values: object) -> object:
    """Return a value of a class with slots, of its fields in order.

    To set the state of such a dataclass, Python lists its fields each time.

    Args:
        kind: A dataclass that `pack` takes apart.
        *values: The values of its fields.

    Returns:
        The value, without a call of ``__init__``.
    """
    value: object = object.__new__(kind)
    for setter, field_value in zip(_setters(kind).values(), values, strict=True):
        setter(value, field_value)
    return value


@cache
def _setters(kind: type) -> Mapping[str, Callable[[object, object], None]]:
    """Return what sets each field of a dataclass that is packed by its fields; none of others."""
    is_plain = "__dataclass_fields__" in vars(kind) and "__reduce__" not in vars(kind)
    setstate = getattr(kind, "__setstate__", None)
    if not is_plain or getattr(setstate, "__module__", "") != "dataclasses":
        return {}
    return {item.name: getattr(kind, item.name).__set__ for item in fields(kind)}


class _Pickler(pickle.Pickler):
    def __init__(self, out: io.BytesIO, texts: dict[int, tuple[str, str]]) -> None:
        super().__init__(out, protocol=5)
        self._texts = texts

    def persistent_id(self, obj: object) -> str | None:
        return _MACROS if isinstance(obj, AskedMacros) else None

    def reducer_override(self, obj: object) -> Any:
        known = self._texts.get(id(obj)) if type(obj) is Statement else None
        if known is None:
            kind: type = type(obj)
            setters = _setters(kind)
            if not setters:
                return NotImplemented
            return restore, (kind, *(getattr(obj, name) for name in setters))
        assert isinstance(obj, Statement), "of that type"
        return PackedStatement, (*known, obj.start, obj.end)


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: io.BytesIO, macros: Macros | None) -> None:
        super().__init__(data)
        self._macros = macros

    def persistent_load(self, pid: str) -> Macros | None:
        if pid != _MACROS:
            raise pickle.UnpicklingError(pid)
        return self._macros

    def find_class(self, module: str, name: str) -> Any:
        if module.startswith(_OURS) or module in _OTHERS or (module, name) in _BUILTINS:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name}")


_BUILTINS = frozenset(("builtins", name) for name in _PLAIN)
