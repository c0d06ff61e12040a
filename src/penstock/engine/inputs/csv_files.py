"""CSV files as DuckDB reads them: Spark splits them into texts, and SQL converts the texts.

The files of this machine are inspected before Spark reads them: how each is written
(`csv_sniffer`), where its lines and quotes end (`csv_form`), and the names in its header.
Files that are written in the same way are a part; the columns of all parts are put together by
name.

CSV files that are not looked at before Spark reads them: in S3, or in another compression.

Their first rows are read by Spark, and say how all of them are written. Spark compares the header
of each file with that of the first.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, reduce
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from penstock.engine.inputs.csv_form import (
    UTF8,
    CsvOptions,
    Encoding,
    Quoting,
    TextForm,
    require_encoded,
    scan,
)
from penstock.engine.inputs.csv_sniffer import (
    DECLARED_SAMPLE,
    SAMPLE,
    Columns,
    Places,
    Sniffed,
    Unsniffed,
    declared_places,
    inferred_columns,
    sample_of,
    sniff,
    uneven,
)
from penstock.engine.inputs.input_files import UNREAD, Fault, Unfit, csv_rows, open_file
from penstock.engine.inputs.text_values import Formats, key_of, misfit_in, value_of
from penstock.errors import Location, PenstockError, QueryFailed
from penstock.spark.failures import FILE, cause_of, innermost, is_about, path_in
from penstock.spark.functions import expr, fn
from penstock.sql.identifiers import quote_identifier
from penstock.sql.literals import text_literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


PATH = "penstock_files_path"
_NULL = "\x01"  # stands for a value without a character, where another text is NULL
_CORRECT = "correct the row, or say how the file is written: delim, quote, header, columns"
_RECORD, _WORDS = "penstock_record", "penstock_words"


@dataclass(frozen=True, slots=True)
class CsvForm:
    """The form of the files of a part.

    Args:
        header: the names of the first row; None where the first row has values.
        width: the number of columns.
        formats: how its texts are dates and numbers.
        lines: Spark reads line by line, not the file as a whole.
        checked: the header of each file is compared by Spark, as nobody has looked at all.
    """

    quoting: Quoting
    encoding: Encoding
    header: tuple[str, ...] | None
    width: int
    text: TextForm
    formats: Formats
    comment: str = ""
    lines: bool = True
    checked: bool = False

    def options(self, call: CsvOptions) -> dict[str, str]:
        """Return Spark's options; nothing depends on a default of Spark's."""
        ends = {} if self.lines else {"lineSep": "\n" if self.text.feeds else "\r"}
        comment = {"comment": self.comment} if self.comment else {}
        return {
            "header": str(self.header is not None).lower(),
            "sep": self.quoting.separator,
            "quote": self.quoting.quote,
            "escape": self.quoting.escape or "\\",
            "encoding": self.encoding.spark,
            "multiLine": str(not self.lines).lower(),
            "nullValue": _NULL if call.null else "",
            "emptyValue": "",
            "ignoreLeadingWhiteSpace": "false",
            "ignoreTrailingWhiteSpace": "false",
            "inferSchema": "false",
            "enforceSchema": str(not self.checked).lower(),
            "columnPruning": "false",  # else rows of another width pass unseen
            "mode": "FAILFAST",
            **ends,
            **comment,
        }

    @property
    def strips_returns(self) -> bool:
        """Return whether Spark leaves the CR of a line's end in the last column."""
        return self.text.returns and self.text.feeds and not self.lines


@dataclass(frozen=True, slots=True)
class Inspected:
    """A file that has been looked at; ``sniffed.types`` is empty where it has no rows."""

    path: str
    form: CsvForm
    sniffed: Sniffed


@dataclass(frozen=True, slots=True)
class CsvPart:
    """Files that are written in the same way; ``places`` has the index, among their columns, of
    each column of all files, None for one that they lack.
    """

    form: CsvForm
    places: Places
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CsvFiles:
    """Files of a call, inspected: ``columns``, names and Spark's types, are those of all ``parts``.

    ``base`` is a directory below which directories like ``day=2026-05-16`` are columns too;
    ``root`` the project's directory, below which messages have paths.
    """

    options: CsvOptions
    columns: Columns
    parts: tuple[CsvPart, ...]
    base: str | None = None
    root: Path = field(default=Path(), compare=False)

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(path for part in self.parts for path in part.paths)

    @property
    def key(self) -> str:
        """A text that tells the errors of this call from those of others."""
        return key_of(self.columns, self.paths)

    def read(self, session: SparkSession, *, with_path: bool = False) -> DataFrame:
        """The rows of all files; ``with_path``: with the path of its file as the last column."""
        if not self.parts:
            columns = (*self.columns, *([(PATH, "STRING")] if with_path else []))
            return session.createDataFrame([], ddl(columns))
        frames = [self._part(session, part, with_path=with_path) for part in self.parts]
        return reduce(lambda frame, other: frame.unionAll(other), frames)

    def notices(self) -> tuple[str, ...]:
        return ()

    def blamed(self, error: PenstockError) -> QueryFailed | None:
        """Return Spark's error about one of the files in the user's words; None for others."""
        fault = self._misfit(cause_of(error))
        if fault is None and not is_about(error, self.paths):
            return None
        fault = fault or self._uneven(error)
        data = {**error.data, FILE: str(fault.path)}
        return QueryFailed(fault.text(self.root), hint=_CORRECT, data=data)

    def _uneven(self, error: PenstockError) -> Fault:
        """Return the fault of a row that Spark finds malformed."""
        path = path_in(error)
        for part in self.parts:
            for text in part.paths:
                if path in (None, Path(text)) and Path(text).is_file():
                    fault = width_fault(Path(text), part.form, padded=self.options.padded)
                    if fault is not None:
                        return fault
        why = "the file is gone" if path and not path.exists() else innermost(error)
        return Fault(path or Path(self.paths[0]), why or error.message)

    def _misfit(self, message: str) -> Fault | None:
        """Return the fault of a text that is no value of its column, where an error is about it."""
        misfit = misfit_in(message, self.key)
        if misfit is None:
            return None
        name, kind = self.columns[misfit.column]
        reason = f"{misfit.text!r} is not of its column's type: `{name}` is {kind}"
        for part in self.parts:
            place = part.places[misfit.column]
            for path in () if place is None or part.form.checked else part.paths:
                line = line_of_value(Path(path), part.form, place or 0, misfit.text)
                if line is not None:
                    return Fault(Path(path), reason, line)
        return Fault(Path(self.paths[0]), reason)

    def _part(self, session: SparkSession, part: CsvPart, *, with_path: bool) -> DataFrame:
        frame, directories = self._texts(session, part)
        others = [*map(_quoted, directories), *([PATH] if with_path else [])]
        paths = [fn.col("_metadata.file_path").alias(PATH)] if with_path else []
        frame = frame.select(
            *(
                expr(f"{self._text(part.form, index)} AS c{index}")
                for index in range(part.form.width)
            ),
            *map(_quoted, directories),
            *paths,
        )
        return frame.select(
            *(expr(self._value(part, index)) for index in range(len(self.columns))), *others
        )

    def _texts(self, session: SparkSession, part: CsvPart) -> tuple[DataFrame, list[str]]:
        """Return the texts of the files as ``c0``, ``c1``, ..., and columns of directories."""
        form, options = part.form, part.form.options(self.options)
        names = [f"c{index}" for index in range(form.width)]
        if form.checked and form.header is not None:
            names = list(form.header)
        columns = [(name, "STRING") for name in names]
        if self.base is not None:
            options["basePath"] = self.base
        if self.options.padded:
            options |= {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _RECORD}
            columns.append((_RECORD, "STRING"))
        reader = session.read.format("csv").options(**options).schema(ddl(columns))
        frame = reader.load([_escaped(path) for path in part.paths])
        directories = frame.columns[len(columns) :]
        if self.options.padded:
            frame = _padded(frame, form, options)
        if form.checked:
            renamed = {name: f"c{index}" for index, name in enumerate(names)}
            frame = frame.withColumnsRenamed(renamed)
        return frame, directories

    def _text(self, form: CsvForm, index: int) -> str:
        """Return the SQL of a column's text, as the file means it; NULL for a NULL."""
        text = f"c{index}"
        if index == form.width - 1 and form.strips_returns:
            text = f"regexp_replace({text}, '\\\\r$', '')"
            text = text if self.options.null else f"nullif({text}, '')"
        if form.encoding.table is not None:
            latin = "".join(map(chr, range(128, 256)))
            text = f"translate({text}, {text_literal(latin)}, {text_literal(form.encoding.table)})"
        if self.options.null:
            text = f"nullif(coalesce({text}, ''), {text_literal(self.options.null)})"
        return text

    def _value(self, part: CsvPart, index: int) -> str:
        """Return the SQL of a column's value, under its name."""
        (name, kind), place = self.columns[index], part.places[index]
        if place is None:
            return f"CAST(NULL AS {kind}) AS {_quoted(name)}"
        text = f"c{place}"
        if self.options.null and kind != "STRING":
            text = f"nullif({text}, '')"
        value = value_of(text, kind, part.form.formats, self.key, index)
        return f"{value} AS {_quoted(name)}"


def _quoted(name: str) -> str:
    return quote_identifier(name, mark="`")


def ddl(columns: Iterable[tuple[str, str]]) -> str:
    """Return a schema of names and Spark's types."""
    return ", ".join(f"{_quoted(name)} {kind}" for name, kind in columns)


def _escaped(path: str) -> str:
    """Return a path of which Spark takes no character for a pattern."""
    return path if "://" in path else _PATTERN.sub(r"\\\g<0>", path)


_PATTERN = re.compile(r"[*?\[\]{}\\]")


def _padded(frame: DataFrame, form: CsvForm, options: Mapping[str, str]) -> DataFrame:
    """Return rows of which short ones end with NULL; one that is too long fails when it is read.

    Spark marks both as malformed. The text of such a row is split once more.
    """
    words = ", ".join(f"w{index} STRING" for index in range(form.width + 1))
    format_options = {name: options[name] for name in ("sep", "quote", "escape")}
    split = fn.from_csv(
        fn.col(_RECORD), words, {**format_options, "mode": "PERMISSIVE", "nullValue": _NULL}
    )
    # Spark refuses a query that needs no other column than that of the record.
    message = fn.concat(
        fn.lit("reading file "),
        fn.col("_metadata.file_path"),
        fn.lit(". Malformed CSV record. "),
        fn.coalesce(fn.col("c0"), fn.lit("")),
    )
    too_long = fn.col(_RECORD).isNotNull() & fn.col(f"{_WORDS}.w{form.width}").isNotNull()
    wrong = fn.when(too_long, fn.raise_error(message).cast("boolean")).otherwise(fn.lit(True))
    return frame.withColumn(_WORDS, split).where(wrong)


def line_of_value(path: Path, form: CsvForm, place: int, text: str) -> int | None:
    """Return the line of the first row that has a text in one of its columns."""
    for line, row in rows_of(path, form):
        if place < len(row) and row[place] == text:
            return line
    return None


def width_fault(path: Path, form: CsvForm, *, padded: bool) -> Fault | None:
    """Return the first row that has more values than there are columns, or fewer."""
    for line, row in rows_of(path, form, header=True):
        if len(row) > form.width or (len(row) < form.width and not padded):
            return Fault(path, uneven(row, form.width), line)
    return None


def rows_of(path: Path, form: CsvForm, *, header: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a file, each with its line; blank ones are left out."""
    options = {"sep": form.quoting.separator, "quote": form.quoting.quote}
    options |= {"escape": form.quoting.escape, "comment": form.comment}
    encoding = "utf-8-sig" if form.encoding == UTF8 else form.encoding.name
    with open_file(path) as file, suppress(csv.Error, TypeError):
        text = io.TextIOWrapper(file, encoding, "replace", newline="")
        rows = csv_rows(text, options)
        skips = form.header is not None and not header
        for row in filter(None, rows):
            if skips:
                skips = False
                continue
            yield rows.line_num, row


def csv_files(paths: Sequence[str], options: CsvOptions, root: Path) -> CsvFiles:
    """Inspect the files of a call, which are on this machine. Raises Unfit."""
    base = paths[0] if len(paths) == 1 and Path(paths[0]).is_dir() else None
    listed = [file for path in paths for file in files_below(Path(path))]
    files = _looked_at(listed, options)
    if options.by_name and options.header is False and listed:
        raise Unfit(
            Fault(listed[0], "union_by_name needs the header of each file"),
            "take header = false away",
        )
    if not files:
        return CsvFiles(options, _columns_of_nothing(listed, options), (), None, root)
    sniffed = {Path(file.path): file.sniffed for file in files}
    columns = options.columns or inferred_columns(sniffed, by_name=options.by_name)
    grouped: dict[tuple[CsvForm, Places], list[str]] = {}
    for file in files:
        by_name = options.by_name or not options.columns
        own = declared_places(
            Path(file.path), file.sniffed, columns, by_name=by_name, padded=options.padded
        )
        grouped.setdefault((file.form, own), []).append(file.path)
    parts = tuple(CsvPart(form, own, tuple(texts)) for (form, own), texts in grouped.items())
    return CsvFiles(options, columns, parts, base, root)


def united(calls: Sequence[CsvFiles]) -> CsvFiles:
    """Return the files of calls that have the same options and columns, as those of one."""
    grouped: dict[tuple[CsvForm, Places], list[str]] = {}
    for call in calls:
        for part in call.parts:
            grouped.setdefault((part.form, part.places), []).extend(part.paths)
    parts = tuple(CsvPart(form, places, tuple(texts)) for (form, places), texts in grouped.items())
    return replace(calls[0], parts=parts)


def _looked_at(paths: Iterable[Path], options: CsvOptions) -> list[Inspected]:
    files: list[Inspected] = []
    quoting: Quoting | None = None
    for path in paths:
        file = inspected(path, options, quoting)
        if file is not None:
            files.append(file)
            quoting = quoting or (file.form.quoting if file.form.width > 1 else None)
    return files


def _columns_of_nothing(paths: Sequence[Path], options: CsvOptions) -> Columns:
    """Return the declared columns, where no file has a character. Raises Unfit."""
    if options.columns:
        return options.columns
    path = paths[0] if paths else Path()
    raise Unfit(
        Fault(path, "the file is empty: it says nothing of its columns"),
        "say them: columns = {'id': 'INTEGER', 'name': 'VARCHAR'}",
    )


def files_below(path: Path) -> list[Path]:
    """Return a file, or the files in a directory, and in those below like ``day=2026-05-16``.

    Raises Unfit for a directory that has others in it.
    """
    if not path.is_dir():
        return [path]
    files: list[Path] = []
    for inside in sorted(path.iterdir()):
        if inside.name[0] in "._":
            continue
        if inside.is_file():
            files.append(inside)
        elif "=" in inside.name:
            files += files_below(inside)
        else:
            reason = f"the directory has directories in it, as {inside.name}"
            raise Unfit(
                Fault(path, reason), f"read their files by a pattern: '{path.name}/*/*.csv'"
            )
    return files


def inspected(path: Path, options: CsvOptions, known: Quoting | None) -> Inspected | None:
    """Look at a file; None for one without a character. Raises Unfit."""
    status = path.stat()
    return _inspected(path, status.st_size, status.st_mtime_ns, options, known)


@lru_cache(maxsize=4096)
def _inspected(
    path: Path, _size: int, _time: int, options: CsvOptions, known: Quoting | None
) -> Inspected | None:
    encoding = options.encoding or UTF8
    require_encoded(path, encoding)
    sample = sample_of(path, encoding, DECLARED_SAMPLE if options.columns else SAMPLE)
    if not sample.strip():
        if sample and len(options.columns) == 1:  # rows of NULL to DuckDB
            raise Unfit(Fault(path, "the file has only blank lines"), "remove them")
        return None
    try:
        sniffed = sniff(path, sample, options, known)
    except Unsniffed as unfit:
        scan(path, encoding, unfit.quoting, columns=2)  # which may see why
        raise
    width = len(sniffed.names)
    text = scan(path, encoding, sniffed.quoting, columns=width)
    formats = Formats(
        options.dateformat or sniffed.dateformat,
        options.timestampformat or sniffed.timestampformat,
        options.decimal_separator,
    )
    lines = text.in_lines and not encoding.is_wide and not options.multiline
    form = CsvForm(
        sniffed.quoting, encoding, sniffed.header, width, text, formats, options.comment, lines
    )
    return Inspected(str(path), form, sniffed)


_ROWS = 20_480  # as many as DuckDB looks at


def is_local(path: str) -> bool:
    """Return whether a file can be looked at before Spark reads it."""
    if "://" in path:
        return False
    files = [path] if Path(path).is_file() else [str(file) for file in files_below(Path(path))]
    return not any(file.endswith(UNREAD) for file in files)


@dataclass(slots=True)
class RemoteCsv:
    """Files of a call, of which the first rows are looked at when they are read."""

    paths: tuple[str, ...]
    options: CsvOptions
    root: Path
    location: Location | None = None
    _files: CsvFiles | None = field(default=None, init=False)

    def read(self, session: SparkSession) -> DataFrame:
        """The rows of all files. Raises QueryFailed where they cannot be read so."""
        if self._files is None:
            try:
                self._files = self._inspected(session)
            except Unfit as unfit:
                text = unfit.fault.text(self.root)
                raise QueryFailed(text, hint=unfit.hint, location=self.location) from None
        return self._files.read(session)

    def notices(self) -> tuple[str, ...]:
        return ()

    def blamed(self, error: PenstockError) -> QueryFailed | None:
        """Return Spark's error about one of the files in the user's words; None for others."""
        return None if self._files is None else self._files.blamed(error)

    def _inspected(self, session: SparkSession) -> CsvFiles:
        options, path = self.options, Path(self.paths[0])
        encoding = options.encoding or UTF8
        if encoding.is_wide:
            raise Unfit(
                Fault(path, f"{encoding.name} is read on this machine only"), "copy it here"
            )
        uris = sorted(session.read.text(list(self.paths)).inputFiles())
        path = Path(uris[0]) if uris else path
        lines = session.read.text([unquote(uri) for uri in uris[:1]]).limit(_ROWS).collect()
        sample = "".join(f"{row[0]}\n" for row in lines).removeprefix("\ufeff")
        if not sample.strip():
            raise Unfit(Fault(path, "the file is empty: it says nothing of its columns"), _SAY)
        sniffed = sniff(path, sample, options)
        by_name = options.by_name or not options.columns
        columns = options.columns or inferred_columns({path: sniffed}, by_name=False)
        places = declared_places(path, sniffed, columns, by_name=by_name, padded=options.padded)
        width = len(sniffed.names)
        breaks = options.multiline or options.padded or width == 1
        formats = Formats(
            options.dateformat or sniffed.dateformat,
            options.timestampformat or sniffed.timestampformat,
            options.decimal_separator,
        )
        form = CsvForm(
            sniffed.quoting,
            encoding,
            sniffed.header,
            width,
            TextForm(breaks=breaks, returns=True),
            formats,
            options.comment,
            lines=not breaks,
            checked=True,
        )
        return CsvFiles(options, columns, (CsvPart(form, places, self.paths),), None, self.root)


_SAY = "say them: columns = {'id': 'INTEGER', 'name': 'VARCHAR'}"
