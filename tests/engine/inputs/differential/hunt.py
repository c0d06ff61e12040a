"""Look for CSV files that Penstock reads otherwise than DuckDB, as many as one likes.

    python -m tests.engine.inputs.differential.hunt --cases 3000 --first 0

Prints each case in which the rows differ, and how many are the same, refused, or read although
DuckDB fails (``--show refused`` prints those).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

from penstock.engine.session.spark import start_session
from penstock.settings.config import SparkSettings
from tests.engine.inputs.differential.compare import Compared, compare
from tests.engine.inputs.differential.csv_cases import case


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--show", action="append", default=["differs"])
    options = parser.parse_args()
    session = start_session(SparkSettings(master="local[2]"), "penstock-hunt")
    outcomes = Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.first, options.first + options.cases):
            compared = compare(case(number), Path(folder), session)
            outcomes[compared.outcome] += 1
            if compared.outcome in options.show or "NOT BLAMED" in compared.penstock.error:
                print(described(compared), flush=True)
    print(dict(outcomes))
    sys.exit(outcomes["differs"] > 0)


def described(compared: Compared) -> str:
    lines = [f"{compared.outcome}: {compared.case.text()}"]
    for name, answer in (("penstock", compared.penstock), ("duckdb", compared.duckdb)):
        lines.append(f"  {name}: {answer.columns} {answer.rows} {answer.error[:300]}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
