"""The CSV file of a SEED: read on the driver as pandas would read it, since seeds are small.

Rows that do not have as many values as the header has columns are errors that name their line.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.engine.inputs.input_files import Fault
from penstock.errors import ArgumentError, Location, PenstockError, QueryFailed
from penstock.model.query.query import Query
from penstock.model.script.constants import Bindings
from penstock.model.values.seed import FUNCTION, CsvSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LONG = 2**63
_MISFIT = re.compile(
    r"The value '(?P<value>.*)' of the type \"STRING\" cannot be cast to \"(?P<type>\w+)"
)
_BOOLEANS = {
    **dict.fromkeys(("True", "TRUE", "true"), True),
    **dict.fromkeys(("False", "FALSE", "false"), False),
}


@dataclass(frozen=True, slots=True)
class SeedFile:
    """Read like `file_reader.Files`; ``location`` is that of the model's kind."""

    path: Path
    settings: CsvSettings
    root: Path
    location: Location | None = None

    def read(self, session: SparkSession) -> DataFrame:
        """The rows: text where ``columns`` are named, else of the types that the values have.

        Raises QueryFailed for a file that cannot be read as it is said to be written.
        """
        from pyspark.sql.types import StringType, StructField, StructType

        names, rows = self.texts()
        columns: list[Sequence[Any]] = []
        schema: list[StructField] = []
        for at, name in enumerate(names):
            nulls = self.settings.nulls(name)
            texts = [None if row[at] in nulls else row[at] for row in rows]
            kind, values = (StringType(), texts) if self.settings.columns else _typed(texts)
            schema.append(StructField(name, kind))
            columns.append(values)
        return session.createDataFrame(list(zip(*columns, strict=True)), StructType(schema))

    def notices(self) -> Iterator[str]:
        """The texts that are NULL although nobody has said so: a region ``NA`` may be one."""
        names, rows = self.texts()
        own = self.settings.na_values
        for at, name in enumerate(names):
            asked = own.get(name, ()) if isinstance(own, Mapping) else own
            nulls = self.settings.nulls(name) - {"", *asked}
            for text, count in Counter(row[at] for row in rows if row[at] in nulls).items():
                what = "1 value" if count == 1 else f"{count:,} values"
                yield (
                    f"{self.path.name}: {what} `{text}` of {name} read as NULL; to keep texts "
                    "like that, write csv_settings (keep_default_na = false, na_values = (''))"
                )

    def blamed(self, error: PenstockError) -> QueryFailed | None:
        """The error of a value that does not fit the type of its column, with its line."""
        misfit = _MISFIT.search(error.message)
        found = None if misfit is None else self._place_of(misfit["value"])
        if misfit is None or found is None:
            return None
        line, name = found
        return self._wrong(f"{misfit['value']!r} in column {name} is not {misfit['type']}", line)

    def _place_of(self, value: str) -> tuple[int, str] | None:
        """The line of the first row with a value, and the name of its column."""
        names, _ = self.texts()
        with self.path.open(encoding=self._encoding, newline="") as file:
            reader = csv.reader(file, strict=True, **self._form)
            for row in reader:
                if value in row:
                    return reader.line_num, names[row.index(value)]
        return None

    def texts(self) -> tuple[Sequence[str], list[list[str]]]:
        """The names of the columns, and the rows as they are written. Raises QueryFailed."""
        reader: Any = None
        try:
            with self.path.open(encoding=self._encoding, newline="") as file:
                reader = csv.reader(file, strict=True, **self._form)
                rows = list(self._checked(reader))
        except OSError as error:
            raise self._wrong(f"it cannot be read: {error.strerror}", None) from None
        except UnicodeError as error:
            reason = error.reason if isinstance(error, UnicodeDecodeError) else str(error)
            raise self._wrong(f"it is not {self.settings.encoding} ({reason})", None) from None
        except csv.Error as error:
            reason = f"it is not CSV: {error}"
            if "field limit" in str(error):
                reason = (
                    f"a value has more than {csv.field_size_limit():,} characters, which is the"
                )
                reason += " most that a seed may have; read the file by read_csv in a model"
            raise self._wrong(reason, reader.line_num) from None
        names = list(self.settings.columns) or rows[0]
        if "" in names:
            raise self._wrong(f"the header has no name for column {names.index('') + 1}", 1)
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise self._wrong(f"the header has {twice!r} twice", 1)
        own = self.settings.na_values
        unknown = [name for name in own if name not in names] if isinstance(own, Mapping) else []
        if unknown:
            raise self._wrong(f"na_values has {unknown[0]!r}, which is not a column of it", None)
        return names, rows[1:]

    def _checked(self, reader: Any) -> Iterator[list[str]]:
        """The rows with the header; blank lines are left out."""
        width, header = len(self.settings.columns) or None, False
        for row in reader:
            if row:
                header, width = True, width or len(row)
                if len(row) != width:
                    reason = f"the row has {len(row)} of {width} columns"
                    raise self._wrong(reason, reader.line_num)
                yield row
        if not header:
            raise self._wrong("the file is empty: it has no header", None)

    @property
    def _encoding(self) -> str:
        utf8 = codecs.lookup(self.settings.encoding).name == "utf-8"
        return "utf-8-sig" if utf8 else self.settings.encoding  # a byte order mark is not a letter

    @property
    def _form(self) -> dict[str, Any]:
        settings = self.settings
        return {
            "delimiter": settings.delimiter,
            "quotechar": settings.quotechar,
            "doublequote": settings.doublequote,
            "escapechar": settings.escapechar,
            "skipinitialspace": settings.skipinitialspace,
        }

    def _wrong(self, reason: str, line: int | None) -> QueryFailed:
        return QueryFailed(
            Fault(self.path, reason, line).text(self.root),
            hint="correct the file, or say how it is written: csv_settings (delimiter = ';')",
            location=self.location,
        )


def seed_file(
    path: str, options: Mapping[str, Any], *, root: Path, location: Location | None
) -> SeedFile:
    """The file of a call of `read_seed`. Raises QueryFailed where there is none."""
    found = root / path
    if not found.is_file():
        raise QueryFailed(
            f"file {path} does not exist",
            hint=f"`path` of a SEED is relative to its script, or $root/...: looked for {found}",
            location=location,
        )
    try:
        return SeedFile(found, CsvSettings(**options), root, location)
    except TypeError as error:
        raise ArgumentError(f"read_seed: {error}", location=location) from None


def seeds_of(query: Query, root: Path) -> Iterator[SeedFile]:
    """The files of a SEED's query. Raises QueryFailed where one is not there."""
    none = Bindings()
    for source in query.files:
        if source.function == FUNCTION:
            options = {name: value.evaluate(none) for name, value in source.options}
            path = str(source.path.evaluate(none))
            yield seed_file(path, options, root=root, location=source.location)


def _typed(texts: Sequence[str | None]) -> tuple[Any, Sequence[Any]]:
    """The type that all values have, and the values; text where they have none in common."""
    from pyspark.sql import types as t

    forms: tuple[tuple[Any, Callable[[str], Any]], ...] = (
        (t.LongType(), _integer),
        (t.DoubleType(), _double),
        (t.BooleanType(), _BOOLEANS.__getitem__),
    )
    if any(text is not None for text in texts):
        for kind, read in forms:
            try:
                return kind, [None if text is None else read(text) for text in texts]
            except (ValueError, KeyError):
                continue
    return t.StringType(), texts


def _integer(text: str) -> int:
    value = int(_plain(text))
    if not -_LONG <= value < _LONG:
        raise ValueError
    return value


def _double(text: str) -> float:
    return float(_plain(text))


def _plain(text: str) -> str:
    """Without what Python alone takes in a number: ``1_000``, and digits of other scripts."""
    if "_" in text or not text.isascii():
        raise ValueError
    return text
