"""CSV files that are not looked at before Spark reads them: in S3, or in another compression.

Their first rows are read by Spark, and say how all of them are written. Spark compares the header
of each file with that of the first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from penstock.engine.inputs.csv_columns import declared_places, inferred_columns
from penstock.engine.inputs.csv_files import CsvFiles, CsvForm, CsvPart, files_below
from penstock.engine.inputs.csv_options import UTF8, CsvOptions
from penstock.engine.inputs.csv_scan import TextForm
from penstock.engine.inputs.csv_sniffer import sniff
from penstock.engine.inputs.csv_values import Formats
from penstock.engine.inputs.input_files import UNREAD, Fault, Unfit
from penstock.errors import Location, PenstockError, QueryFailed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
