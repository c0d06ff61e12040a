"""The options of a lake: which there are, what values they take, and what text the catalog holds.

Keys and texts are those of ``CALL lake.set_option`` in DuckDB 1.5.5 (measured). Where that is
stricter than necessary (``'true'`` for a flag, a size without a unit) Penstock accepts more.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from penstock.errors import ArgumentError, UnsupportedFeature
from penstock.lakes.format.values.duck_text import Interval, parse_interval
from penstock.sql.identifiers import nearest

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")
_UNITS: Mapping[str, int] = {
    **dict.fromkeys(("", "b", "byte", "bytes"), 1),
    **{unit: 1000**power for power, unit in enumerate(("kb", "mb", "gb", "tb"), 1)},
    **{unit: 1024**power for power, unit in enumerate(("kib", "mib", "gib", "tib"), 1)},
}
INLINING_ROW_LIMIT = "data_inlining_row_limit"
_FLAGS = {"true": "true", "false": "false", "1": "true", "0": "false"}
_CODECS = ("uncompressed", "snappy", "gzip", "zstd", "brotli", "lz4", "lz4_raw")
_UINT64 = 2**64

_Reader = Callable[[str, object], str]


@dataclass(frozen=True, slots=True)
class OptionKind:
    """One option. ``reads`` makes the catalog's text of a value, or raises ArgumentError.

    ``values`` says in words what it takes, ``honoured`` what acts on it.
    """

    name: str
    values: str
    honoured: str
    reads: _Reader


def option_kind(key: str) -> OptionKind:
    """The option of this name, letter case aside. Raises ArgumentError, UnsupportedFeature."""
    name = key.lower()
    if name in OPTIONS:
        return OPTIONS[name]
    if name in _FIXED:
        raise UnsupportedFeature(
            f"the option {name!r} cannot be set: {_FIXED[name][0]}",
            hint=_FIXED[name][1],
            data={"option": key},
        )
    close = nearest(name, OPTIONS)
    listed = ", ".join(sorted(OPTIONS))
    raise ArgumentError(
        f"option {key!r} does not exist",
        hint=f"did you mean {close}?" if close else f"there are: {listed}",
        data={"option": key},
    )


def option_text(key: str, value: object) -> tuple[str, str]:
    """The option's name and the value's text as the catalog holds them.

    Raises ArgumentError that names the option, the value and what it takes.
    """
    kind = option_kind(key)
    return kind.name, kind.reads(kind.name, value)


def bytes_of(text: str) -> int | None:
    """``512MB`` or ``1.5 GiB`` in bytes; ``None`` for what is not a size."""
    match = _SIZE.fullmatch(text)
    unit = _UNITS.get(match[2].lower()) if match else None
    return None if match is None or unit is None else int(Decimal(match[1]) * unit)


def _wrong(name: str, value: object, wanted: str) -> ArgumentError:
    return ArgumentError(
        f"the option {name} does not take {value!r}",
        hint=f"give {wanted}",
        data={"option": name, "value": value},
    )


def _whole(least: int) -> _Reader:
    wanted = "a whole number" if least == 0 else f"a whole number from {least} on"

    def read(name: str, value: object) -> str:
        try:
            number = Decimal(str(value)) if not isinstance(value, bool) else None
        except InvalidOperation:
            number = None
        if number is None or number != number.to_integral_value() or number < least:
            raise _wrong(name, value, wanted)
        if number >= _UINT64:
            raise _wrong(name, value, "a number below 2^64")
        return str(int(number))

    return read


def _size(name: str, value: object) -> str:
    size = None if isinstance(value, bool) else bytes_of(str(value))
    if not size or size >= _UINT64:
        raise _wrong(name, value, "a size such as '512MB', '64MiB', or a number of bytes")
    return str(size)


def _flag(name: str, value: object) -> str:
    flag = _FLAGS.get(str(value).lower())
    if flag is None:
        raise _wrong(name, value, "true or false")
    return flag


def _one_of(*known: str) -> _Reader:
    def read(name: str, value: object) -> str:
        if str(value).lower() not in known:
            raise _wrong(name, value, f"one of {', '.join(known)}")
        return str(value).lower()

    return read


def _parquet_version(name: str, value: object) -> str:
    text = str(value).upper().removeprefix("V")
    if text not in {"1", "2"}:
        raise _wrong(name, value, "1 or 2")
    return f"V{text}"


def _share(name: str, value: object) -> str:
    try:
        number = Decimal("-1") if isinstance(value, bool) else Decimal(str(value))
    except InvalidOperation:
        number = Decimal("-1")
    if not 0 <= number <= 1:
        raise _wrong(name, value, "a number between 0 and 1")
    return f"{number:.6f}"


def _age(name: str, value: object) -> str:
    """Check the text and store it unchanged, as DuckDB does; an empty one means "no default"."""
    if isinstance(value, dt.timedelta):
        whole = value // dt.timedelta(microseconds=1)
        days, rest = divmod(whole, 86_400_000_000)
        return Interval(0, days, rest).text()
    text = str(value)
    if text and parse_interval(text) is None:
        raise _wrong(name, value, "an interval such as '7 days', '24h' or '1 month'")
    return text


_MAINTENANCE = "expire_snapshots, CHECKPOINT"
_WRITES = "every write of data files"

_KINDS = (
    OptionKind(INLINING_ROW_LIMIT, "whole number of rows", "small writes", _whole(0)),
    OptionKind("target_file_size", "size: '512MB'", f"{_WRITES}, merge_adjacent_files", _size),
    OptionKind("parquet_compression", "codec", _WRITES, _one_of(*_CODECS)),
    OptionKind("parquet_compression_level", "whole number", _WRITES, _whole(0)),
    OptionKind("parquet_version", "1 or 2", _WRITES, _parquet_version),
    OptionKind("parquet_row_group_size", "whole number of rows", _WRITES, _whole(1)),
    OptionKind("parquet_row_group_size_bytes", "size: '64MB'", _WRITES, _size),
    OptionKind("hive_file_pattern", "true or false", "writes of partitioned tables", _flag),
    OptionKind("per_thread_output", "true or false", "DuckDB", _flag),
    OptionKind("sort_on_insert", "true or false", "writes of tables with sort keys", _flag),
    OptionKind("write_deletion_vectors", "true or false", "DuckDB", _flag),
    OptionKind("require_commit_message", "true or false", "every commit", _flag),
    OptionKind("rewrite_delete_threshold", "0 to 1", "rewrite_data_files", _share),
    OptionKind("expire_older_than", "interval: '30 days'", _MAINTENANCE, _age),
    OptionKind(
        "delete_older_than",
        "interval: '7 days'",
        "cleanup_old_files, delete_orphaned_files, CHECKPOINT",
        _age,
    ),
    OptionKind("auto_compact", "true or false", "CHECKPOINT", _flag),
)
OPTIONS: Mapping[str, OptionKind] = {kind.name: kind for kind in _KINDS}

_AT_CREATION = "give it when the lake is made"
_FIXED: Mapping[str, tuple[str, str]] = {
    "version": ("it is the format's version", "attach it with DuckDB to migrate it"),
    "created_by": ("it names the tool that created the lake", "leave it unchanged"),
    "data_path": ("it says where the files are", _AT_CREATION + ", or override it on attach"),
    "encrypted": ("it is fixed when the lake is made", "make a lake with DuckDB (ENCRYPTED)"),
    "compaction_schema": ("DuckDB 1.5 has given it up", "set auto_compact for a schema or table"),
    "compaction_table": ("DuckDB 1.5 has given it up", "set auto_compact for a schema or table"),
}
