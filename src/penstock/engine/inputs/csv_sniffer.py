"""Find how CSV files are written: the form of each, the types of its values, the columns of all.

DuckDB looks at the first rows of a file, in a copy of its beginning in UTF-8 with one kind of line
ends. What it leaves out (rows before a table, a header of one column although it has separators)
is not left out here: the row that does not fit is refused with its line.

Put the columns of CSV files together: by name where files have headers, else by position.

Declared columns name those of a file by position, unless its header has these names in another
order. Files whose headers have other names are refused, or united by ``union_by_name``.
"""

from __future__ import annotations

import codecs
import csv
import io
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.engine.inputs.csv_form import CsvOptions, Encoding, Quoting
from penstock.engine.inputs.input_files import SEPARATORS, Fault, Unfit, csv_rows, open_file
from penstock.sql.identifiers import fold
from penstock.sql.types import spark_type

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


SAMPLE = 4 * 1024 * 1024  # bytes of a file that DuckDB sees; it reads 20,480 rows of them
DECLARED_SAMPLE = 256 * 1024  # where types are declared, and only the form is looked for
_FIRST = 64 * 1024  # characters in which separators are compared
_NONE = "(empty)"  # DuckDB's word for no quote
_UNHOLDABLE = {"TIME": "VARCHAR"}  # types of DuckDB that Spark lacks


@dataclass(frozen=True, slots=True)
class Sniffed:
    """The form of a file, as DuckDB sniffs it.

    Args:
        header: the names in its first row, as DuckDB makes them unique; None without a header.
        names: the names of its columns.
        types: DuckDB's types; empty for a column without a value.
        dateformat, timestampformat: strftime's patterns; None for ISO 8601.
    """

    quoting: Quoting
    header: tuple[str, ...] | None
    names: tuple[str, ...]
    types: tuple[str, ...]
    dateformat: str | None = None
    timestampformat: str | None = None


def sample_of(path: Path, encoding: Encoding, size: int = SAMPLE) -> str:
    """Return the beginning of a file, without a row that is cut."""
    decoder = codecs.getincrementaldecoder(encoding.name)("replace")
    with open_file(path) as file:
        content = file.read(size)
        whole = not file.read(1)
    text = decoder.decode(content).removeprefix("\ufeff")
    if whole:
        return text
    end = _line_end(text, len(text))
    if text.count('"', 0, end) % 2:  # the last row goes on in quotes
        end = _line_end(text, text.rfind('"', 0, end))
    return text[:end]


def _line_end(text: str, before: int) -> int:
    """Return where the last whole line ends."""
    return max(text.rfind("\n", 0, before), text.rfind("\r", 0, before - 1)) + 1


def sniff(path: Path, sample: str, options: CsvOptions, known: Quoting | None = None) -> Sniffed:
    """Find how a file is written by its ``sample``; ``known`` is how another file of the call is.

    Raises Unfit for a row that has more or fewer values than the first, and where two separators
    fit.
    """
    if not options.infer:
        return _fixed(sample, options)
    answer = None
    if {options.separator, options.quote, options.escape} == {None}:
        likely = known or _likely(sample)
        answer = None if likely is None else _asked(sample, options, likely)
    if answer is None or answer.is_doubtful:
        answer = _asked(sample, options, None)
    quoting = _quoting(answer, options)
    if options.separator is None:
        _require_one_separator(path, sample, options, quoting)
    if answer is None or answer.is_doubtful:
        quoting = _by_first_row(path, sample, options, quoting)
        fault = _uneven(path, sample, options, quoting)
        if fault is not None:
            raise Unfit(fault, _SAY)
        if answer is None or answer.skipped or quoting.separator != answer.separator:
            answer = _asked(sample, options, quoting)
    if answer is None or answer.skipped:
        raise Unsniffed(Fault(path, "DuckDB's sniffer finds no rows and columns"), quoting)
    return _sniffed(sample, answer, options, quoting)


def _likely(sample: str) -> Quoting | None:
    """Return the one way in which DuckDB can read a sample; to try them all takes it four times as
    long.
    """
    if "'" in sample or "\\" in sample:
        return None
    first = sample.partition("\n")[0]
    marks = [mark for mark in SEPARATORS if mark in first]
    return Quoting(marks[0], '"', '"') if len(marks) == 1 else None


_SAY = "correct the row, or say how the file is written: delim, quote, header, null_padding"


class Unsniffed(Unfit):
    """A file in which DuckDB finds no rows and columns; ``quoting`` is how it may be written."""

    def __init__(self, fault: Fault, quoting: Quoting) -> None:
        super().__init__(fault, _SAY)
        self.quoting = quoting


@dataclass(frozen=True, slots=True)
class _Answer:
    """DuckDB's answer: a row of ``sniff_csv``."""

    separator: str
    quote: str
    escape: str
    skipped: int
    header: bool
    columns: tuple[tuple[str, str], ...]
    dateformat: str | None
    timestampformat: str | None

    @property
    def is_doubtful(self) -> bool:
        """Return whether DuckDB leaves rows out, or sees one column where there may be more."""
        return self.skipped > 0 or len(self.columns) == 1


def _fixed(sample: str, options: CsvOptions) -> Sniffed:
    """Return how the call says that a file is written, without looking for more."""
    quote = '"' if options.quote is None else options.quote
    escape = quote if options.escape is None else options.escape
    quoting = Quoting(options.separator or ",", quote, escape)
    _, row = next(_rows(sample, options, quoting), (0, []))
    has_header = options.header is not False
    names = _unique(row) if has_header else tuple(f"column{index}" for index in range(len(row)))
    return Sniffed(quoting, names if has_header else None, names, ())


def _unique(names: list[str]) -> tuple[str, ...]:
    """Return names as DuckDB makes them unique: ``a``, ``a_1``, and ``column2`` for none."""
    counts: dict[str, int] = {}
    unique: list[str] = []
    for index, text in enumerate(names):
        name = text.strip() or f"column{index}"
        count = counts.get(fold(name), 0)
        counts[fold(name)] = count + 1
        unique.append(f"{name}_{count}" if count else name)
    return tuple(unique)


def _asked(sample: str, options: CsvOptions, known: Quoting | None) -> _Answer | None:
    """Ask DuckDB; return None where it finds no way to read the sample.

    It refuses lines that end in several ways; their text is looked at with one.
    """
    answer = _answer(sample, options, known)
    if answer is None and "\r" in sample:
        even = sample.replace("\r\n", "\n").replace("\r", "\n")
        return _answer(even, options, known)
    return answer


def _answer(sample: str, options: CsvOptions, known: Quoting | None) -> _Answer | None:
    import duckdb

    handle, name = tempfile.mkstemp(suffix=".csv", prefix="penstock_")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="", errors="replace") as file:
            file.write(sample)
        call = ", ".join([_text(name), *_arguments(options, known)])
        cursor = _connection().cursor()
        row = cursor.execute(f"SELECT {_FIELDS} FROM sniff_csv({call})").fetchone()
    except duckdb.Error:
        return None
    finally:
        Path(name).unlink(missing_ok=True)
    if row is None:
        return None
    separator, quote, escape, skipped, header, columns, *formats = row
    quote, escape = (text if text != _NONE else "" for text in (quote, escape))
    pairs = tuple((column["name"], str(column["type"])) for column in columns)
    return _Answer(separator, quote, escape, skipped, header, pairs, *formats)


_FIELDS = "Delimiter, Quote, Escape, SkipRows, HasHeader, Columns, DateFormat, TimestampFormat"


@cache
def _connection() -> DuckDBPyConnection:
    """Open the database in memory that sniffs; it loads nothing from elsewhere."""
    import duckdb

    settings = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    return duckdb.connect(config={"threads": "1", **settings})


def _arguments(options: CsvOptions, known: Quoting | None) -> list[str]:
    quoting = known or Quoting(options.separator or "", "", "")
    texts = {
        "delim": quoting.separator or None,
        "quote": known.quote if known else options.quote,
        "escape": known.escape if known else options.escape,
        "comment": options.comment or None,
        "nullstr": options.null or None,
        "dateformat": options.dateformat,
        "timestampformat": options.timestampformat,
        "decimal_separator": None if options.decimal_separator == "." else ",",
    }
    arguments = [f"{name} = {_text(value)}" for name, value in texts.items() if value is not None]
    flags = {"null_padding": options.padded, "all_varchar": options.all_text}
    arguments += [f"{name} = true" for name, value in flags.items() if value]
    if options.header is not None:
        arguments.append(f"header = {str(options.header).lower()}")
    return arguments


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _quoting(answer: _Answer | None, options: CsvOptions) -> Quoting:
    """Return DuckDB's answer; a quote and its escape where it has seen none."""
    separator = options.separator or (answer.separator if answer else ",")
    quote = options.quote
    if quote is None:
        quote = (answer.quote if answer else "") or '"'
    escape = options.escape
    if escape is None:
        escape = (answer.escape if answer else "") or quote
    return Quoting(separator, quote, escape)


def _rows(sample: str, options: CsvOptions, quoting: Quoting) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a sample with their lines; blank ones are left out."""
    form = {"sep": quoting.separator, "quote": quoting.quote, "escape": quoting.escape}
    rows = csv_rows(io.StringIO(sample, newline=""), form | {"comment": options.comment})
    with suppress(csv.Error, TypeError):  # a separator or a quote of several characters
        for row in rows:
            if row:
                yield rows.line_num, row


def _require_one_separator(path: Path, sample: str, options: CsvOptions, quoting: Quoting) -> None:
    """Raise Unfit where two separators give each row the same number of columns."""
    part = sample[:_FIRST]
    part = part[: part.rfind("\n") + 1] or part
    marks = [mark for mark in SEPARATORS if mark in part and _splits(part, options, quoting, mark)]
    if len(marks) > 1:
        raise _ambiguous(path, marks)


def _splits(sample: str, options: CsvOptions, quoting: Quoting, separator: str) -> bool:
    widths = set[int]()
    for _, row in _rows(sample, options, replace(quoting, separator=separator)):
        widths.add(len(row))
        if len(widths) > 1:
            return False
    return bool(widths) and widths.pop() > 1


def _ambiguous(path: Path, marks: Sequence[str]) -> Unfit:
    both = " and ".join(map(repr, marks))
    reason = f"{both} could each be its separator"
    return Unfit(Fault(path, reason), "say which it is: delim = ';'")


def _by_first_row(path: Path, sample: str, options: CsvOptions, quoting: Quoting) -> Quoting:
    """Return the separator that the first row has, where it has one of the usual ones."""
    if options.separator is not None:
        return quoting
    marks = []
    for mark in SEPARATORS:
        trial = replace(quoting, separator=mark)
        _, row = next(_rows(sample, options, trial), (0, [""]))
        marks += [mark] if len(row) > 1 else []
    if len(marks) > 1 and quoting.separator not in marks:
        raise _ambiguous(path, marks)
    if not marks or quoting.separator in marks:
        return quoting
    return replace(quoting, separator=marks[0])


def _uneven(path: Path, sample: str, options: CsvOptions, quoting: Quoting) -> Fault | None:
    """Return the first row that has more or fewer values than the first one."""
    width = 0
    for line, row in _rows(sample, options, quoting):
        width = width or len(row)
        if len(row) > width or (len(row) < width and not options.padded):
            return Fault(path, uneven(row, width), line)
    return None


def uneven(row: Sequence[str], width: int) -> str:
    """Return how a row differs from ``width`` columns."""
    ends = "; it ends with a separator" if len(row) == width + 1 and not row[-1] else ""
    return f"the row has {len(row)} of {width} columns{ends}"


def _sniffed(sample: str, answer: _Answer, options: CsvOptions, quoting: Quoting) -> Sniffed:
    """Return an answer with the types that Spark can hold."""
    names, types = zip(*answer.columns, strict=True)
    rows = _rows(sample, options, quoting)
    _, first = next(rows, (0, []))
    has_header = answer.header
    if not has_header and options.header is None and options.columns:
        declared = {fold(name) for name, _ in options.columns}
        has_header = set(map(fold, first)) == declared
        names = tuple(first) if has_header else names
    if not has_header:
        rows = chain([(0, first)], rows)
    empty = {index for index, kind in enumerate(types) if kind == "VARCHAR"}
    for _, row in rows:
        empty -= {
            index for index in empty if index < len(row) and row[index] not in ("", options.null)
        }
        if not empty:
            break
    held = tuple(
        "" if index in empty else _UNHOLDABLE.get(kind, kind) for index, kind in enumerate(types)
    )
    header = names if has_header else None
    return Sniffed(quoting, header, names, held, answer.dateformat, answer.timestampformat)


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
