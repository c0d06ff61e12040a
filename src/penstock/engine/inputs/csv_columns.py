"""Put the columns of CSV files together: by name where files have headers, else by position.

Declared columns name those of a file by position, unless its header has these names in another
order. Files whose headers have other names are refused, or united by ``union_by_name``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from penstock.engine.inputs.csv_sniffer import Sniffed
from penstock.engine.inputs.input_files import Fault, Unfit
from penstock.sql.identifiers import fold
from penstock.sql.types import spark_type

Columns = tuple[tuple[str, str], ...]  # names and Spark's types
Places = tuple[int | None, ...]
_NUMBERS = ("BIGINT", "DOUBLE")
_MOMENTS = ("DATE", "TIMESTAMP")
_UNITE = "give each file these columns, or match them by name: union_by_name = true"
_HEADERS = "give each file its header: union_by_name needs one"


def declared_places(
    path: Path, sniffed: Sniffed, columns: Columns, *, by_name: bool, padded: bool = False
) -> Places:
    """Return where a file has each of the declared columns; ``padded``: it may have fewer.

    Raises Unfit.
    """
    names = [name for name, _ in columns]
    if sniffed.header is None:
        return _by_position(path, sniffed, names, padded=padded)
    places = {fold(name): index for index, name in enumerate(sniffed.header)}
    new = [name for name in sniffed.header if fold(name) not in set(map(fold, names))]
    if by_name and new:
        reason = _difference(sniffed.header, names)
        raise Unfit(Fault(path, reason), "declare all columns of the files, or none")
    if by_name or not (new or len(places) != len(names)):
        return tuple(places.get(fold(name)) for name in names)
    by_position = _by_position(path, sniffed, names, padded=padded)
    moved = [name for index, name in enumerate(names) if places.get(fold(name), index) != index]
    if moved:
        reason = f"column `{moved[0]}` has another position in `columns`"
        raise Unfit(Fault(path, reason, 1), f"the header is {', '.join(sniffed.header)}")
    return by_position


def _by_position(path: Path, sniffed: Sniffed, names: Sequence[str], *, padded: bool) -> Places:
    width = len(sniffed.names)
    if width > len(names) or (width < len(names) and not padded):
        header = sniffed.header or [""] * width
        raise Unfit(Fault(path, _difference(header, names)), "declare the columns that it has")
    return tuple(index if index < width else None for index in range(len(names)))


def _difference(header: Sequence[str], names: Sequence[str]) -> str:
    """Return how the columns of a file differ from those that a call declares."""
    details = ""
    if any(header):
        declared, present = set(map(fold, names)), set(map(fold, header))
        new = [f"`{name}` is new" for name in header if fold(name) not in declared]
        gone = [f"`{name}` is missing" for name in names if fold(name) not in present]
        details = f": {', '.join((*new, *gone))}" if new or gone else ""
    count = "1 column" if len(header) == 1 else f"{len(header)} columns"
    return f"the file has {count}, `columns` has {len(names)}{details}"


def inferred_columns(files: Mapping[Path, Sniffed], *, by_name: bool) -> Columns:
    """Return the columns of all files, in the order of first mention; where all have the same, as
    the first one with a row has them. Raises Unfit.
    """
    names: dict[str, str] = {}
    types: dict[str, str] = {}
    for path, sniffed in files.items():
        own = [fold(name) for name in sniffed.names]
        if by_name and sniffed.header is None:
            raise Unfit(Fault(path, "the file has no header"), _HEADERS)
        if names and not by_name:
            _require_same(path, sniffed, next(iter(files)), names, files)
        for key, name in zip(own, sniffed.names, strict=True):
            names.setdefault(key, name)
        for key, kind in zip(own, sniffed.types, strict=False):
            if kind:
                types[key] = wider(types.get(key, kind), kind)
    filled = next((each for each in files.values() if any(each.types)), None)
    if filled is not None and not by_name:
        names = {fold(name): name for name in filled.names}
    return tuple((name, spark_type(types.get(key, "VARCHAR"))) for key, name in names.items())


def _require_same(
    path: Path,
    sniffed: Sniffed,
    other: Path,
    names: Mapping[str, str],
    files: Mapping[Path, Sniffed],
) -> None:
    same_kind = (sniffed.header is None) == (files[other].header is None)
    if same_kind and set(map(fold, sniffed.names)) == names.keys():
        return
    headed = "" if sniffed.header else ", without a header"
    reason = (
        f"its columns are {', '.join(sniffed.names)}{headed}, and those of {other.name} are "
        f"{', '.join(names.values())}"
    )
    raise Unfit(Fault(path, reason), _UNITE)


def wider(one: str, other: str) -> str:
    """Return the type that holds the values of two that DuckDB infers."""
    if one == other:
        return one
    for ladder in (_NUMBERS, _MOMENTS):
        if one in ladder and other in ladder:
            return ladder[-1]
    return "VARCHAR"
