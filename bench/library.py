"""A library's project: 16 models, 60 days of files, a column that is new in the files of 41 days.

The first backfill of the whole project by the command line: seconds, and lines of output. With
``--against CHECKOUT`` the code of another checkout takes turns with this one. The lake is on
PostgreSQL where Debian's binaries are installed, else on SQLite.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path

from tests import postgres

from bench import harness
from bench.commits import _database

FIRST = date(2026, 9, 1)
DAYS = 60
NEW_COLUMN = date(2026, 9, 21)
MEMBERS, LOANS, FINES = 200, 60, 6  # rows of a day
BRANCHES = ("north", "south", "harbour", "station")
CONFIG = """\
[project]
name = "library"

[lakes.main]
catalog = "{catalog}"
data_path = "lake"

[spark]
memory = "2g"
"""
DAILY = '-- pipeline\n-- partitioned daily start="2026-09-01"\n'
#: model -> its script; files of a day are `data/<kind>/<day>.csv`
MODELS = {
    "raw/members.sql": DAILY
    + """\
-- materialize ducklake://main/raw.members
-- data_test unique member_id
-- data_test not_null member_id, name
SELECT member_id, name, branch, tier
FROM read_csv('data/members/{partition}.csv',
  columns = {'member_id': 'BIGINT', 'name': 'VARCHAR', 'branch': 'VARCHAR', 'tier': 'VARCHAR'})
""",
    "raw/loans.sql": DAILY
    + """\
-- materialize ducklake://main/raw.loans
-- data_test unique loan_id
-- data_test row_count min=1
SELECT * FROM read_csv('data/loans/{partition}.csv', columns = {
  'loan_id': 'BIGINT', 'member_id': 'BIGINT', 'book_id': 'BIGINT', 'at': 'TIMESTAMP',
  'due': 'DATE'})
""",
    "raw/fines.sql": DAILY
    + """\
-- materialize ducklake://main/raw.fines
-- data_test relationships member_id -> ducklake://main/raw.members.member_id severity=warn
SELECT * FROM read_csv('data/fines/{partition}.csv', columns = {
  'fine_id': 'BIGINT', 'member_id': 'BIGINT', 'day': 'DATE', 'amount': 'DECIMAL(9,2)'})
""",
    "raw/books.sql": """\
-- materialize ducklake://main/raw.books
-- data_test unique book_id
SELECT * FROM read_csv('data/books.csv',
  columns = {'book_id': 'BIGINT', 'title': 'VARCHAR', 'copies': 'INTEGER'})
""",
    "clean/branches.sql": """\
MODEL (name clean.branches, kind SEED (path '$root/data/branches.csv'));
""",
    "clean/loans.sql": DAILY
    + """\
-- materialize ducklake://main/clean.loans
-- data_test not_null loan_id, branch
WITH loans AS (
  SELECT * FROM raw.loans WHERE _wm_partition = '{partition}'
), members AS (
  SELECT member_id, branch FROM raw.members WHERE _wm_partition = '{partition}'
)
SELECT l.loan_id, l.member_id, l.book_id, l.at, l.due, coalesce(m.branch, 'north') AS branch
FROM loans l LEFT JOIN members m ON m.member_id = l.member_id
""",
    "clean/current_loans.sql": """\
MODEL (
  name clean.current_loans,
  kind INCREMENTAL_BY_UNIQUE_KEY (unique_key member_id, batch_size 1),
  start '2026-09-01',
  audits (not_null(columns := (member_id)))
);
SELECT member_id, max(loan_id) AS loan_id, max(at) AS at
FROM raw.loans WHERE at BETWEEN @start_dt AND @end_dt GROUP BY member_id
""",
    "dim/members.sql": """\
MODEL (
  name dim.members,
  kind SCD_TYPE_2_BY_COLUMN (
    unique_key member_id, columns (name, branch, tier), invalidate_hard_deletes true, batch_size 1),
  start '2026-09-01'
);
SELECT member_id, name, branch, tier FROM raw.members WHERE _wm_partition = @start_ds
""",
    "clean/fines.sql": DAILY
    + """\
-- materialize ducklake://main/clean.fines
-- data_test not_null fine_id
SELECT f.fine_id, f.member_id, f.day, f.amount, m.tier
FROM raw.fines f
ASOF LEFT JOIN dim.members m ON f.member_id = m.member_id AND f.day >= m.valid_from
WHERE f._wm_partition = '{partition}'
""",
    "marts/loans_by_day.sql": """\
MODEL (
  name marts.loans_by_day,
  kind INCREMENTAL_BY_TIME_RANGE (time_column day),
  start '2026-09-01',
  audits (not_null(columns := (day, branch)), number_of_rows(threshold := 0))
);
SELECT CAST(at AS DATE) AS day, branch, count(*) AS loans
FROM clean.loans WHERE at BETWEEN @start_dt AND @end_dt GROUP BY ALL
""",
    "marts/fines_by_month.sql": """\
-- pipeline
-- partitioned monthly start="2026-09-01"
-- materialize ducklake://main/marts.fines_by_month
SELECT tier, sum(amount) AS amount
FROM clean.fines
WHERE day >= $partition_start AND day < $partition_end
GROUP BY tier
""",
    "marts/branch_report.sql": """\
-- pipeline
-- partitioned dynamic key="$.branch"
-- materialize ducklake://main/marts.branch_report
SELECT branch, count(*) AS loans FROM clean.loans WHERE branch = '{partition}' GROUP BY branch
""",
    "marts/scores.py": """\
# pipeline
# partitioned daily start="2026-09-01"
# on ducklake://main/raw.loans
# materialize ducklake://main/marts.scores
# column loans BIGINT
import penstock


def main(partition: str) -> list[dict]:
    loans = penstock.lake("main").read("raw.loans", partition, form="rows")
    counts: dict[int, int] = {}
    for loan in loans:
        counts[loan["member_id"]] = counts.get(loan["member_id"], 0) + 1
    return [{"member_id": member, "loans": loans} for member, loans in sorted(counts.items())]
""",
    "marts/top_books.sql": """\
-- materialize ducklake://main/marts.top_books
SELECT b.title, count(*) AS loans
FROM clean.loans l JOIN raw.books b ON b.book_id = l.book_id GROUP BY b.title
""",
    "marts/tiers.sql": """\
-- materialize ducklake://main/marts.tiers
SELECT tier, count(*) AS members FROM dim.members WHERE valid_to IS NULL GROUP BY tier
""",
    "marts/overdue.sql": """\
MODEL (name marts.overdue, kind VIEW);
SELECT member_id, count(*) AS loans FROM clean.loans
WHERE due < DATE '2026-10-15' GROUP BY member_id
""",
}
_PENSTOCK = "from penstock.cli.main import main; main()"
#: the model of a dynamic partition, which has no range
DYNAMIC = "marts/branch_report"


def write_project(root: Path, catalog: str, *, days: int = DAYS) -> None:
    """Write the project and the files of ``days`` days."""
    for name, text in MODELS.items():
        _write(root / "models" / name, text)
    _write(root / "penstock.toml", CONFIG.format(catalog=catalog))
    (root / "lake").mkdir()
    rows = "\n".join(f"{name},{number}" for number, name in enumerate(BRANCHES))
    _write(root / "data" / "branches.csv", f"branch,number\n{rows}\n")
    rows = "\n".join(f"{book},title {book},{book % 3 + 1}" for book in range(300))
    _write(root / "data" / "books.csv", f"book_id,title,copies\n{rows}\n")
    for number in range(days):
        _write_day(root / "data", number)


def _write_day(data: Path, number: int) -> None:
    day = FIRST + timedelta(days=number)
    is_new = day >= NEW_COLUMN
    lines = [f"member_id,name,branch,tier{',newsletter' if is_new else ''}"]
    for member in range(MEMBERS):
        tier = "gold" if (member + number) % 40 == 0 else "plain"
        newsletter = f",{member % 2 == 0}".lower() if is_new else ""
        lines.append(f"{member},name {member},{BRANCHES[member % 4]},{tier}{newsletter}")
    _write(data / "members" / f"{day}.csv", "\n".join([*lines, ""]))
    lines = ["loan_id,member_id,book_id,at,due"]
    for loan in range(LOANS):
        member, book = (loan * 7 + number) % MEMBERS, (loan * 11 + number) % 300
        due = day + timedelta(days=21)
        lines.append(f"{number * LOANS + loan},{member},{book},{day} 10:{loan:02d}:00,{due}")
    _write(data / "loans" / f"{day}.csv", "\n".join([*lines, ""]))
    lines = ["fine_id,member_id,day,amount"]
    for fine in range(FINES):
        lines.append(f"{number * FINES + fine},{(fine * 13 + number) % MEMBERS},{day},{fine}.50")
    _write(data / "fines" / f"{day}.csv", "\n".join([*lines, ""]))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def backfill(root: Path, checkout: Path, *, days: int = DAYS) -> list[str]:
    """Run the whole range by the code of ``checkout``; return the lines that it prints."""
    until = FIRST + timedelta(days=days - 1)
    command = [sys.executable, "-c", _PENSTOCK, "run"]
    command += [
        "--from",
        str(FIRST),
        "--to",
        str(until),
        "--exclude",
        DYNAMIC,
        "--project",
        str(root),
    ]
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src"), "COLUMNS": "120"}
    ended = subprocess.run(
        command,
        cwd=root,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if ended.returncode != 1:  # 41 days have a column that is not declared
        raise SystemExit(f"the run ended with {ended.returncode}:\n{ended.stdout}")
    return ended.stdout.splitlines()


@contextmanager
def _server() -> Iterator[str | None]:
    if postgres.why_not():
        yield None
        return
    with postgres.server(durable=True) as conninfo:
        yield conninfo


def _catalog(conninfo: str | None, name: str) -> str:
    if conninfo is None:
        return "sqlite:lake/meta.sqlite"
    return f"postgres:{_database(conninfo, name)}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.library", description=__doc__)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--rows", type=int, default=DAYS, help="days of files")
    parser.add_argument("--against", type=Path, default=None, help="another checkout to compare")
    parser.add_argument("--keep", type=Path, default=None, help="directory of the runs' output")
    parser.add_argument("--out", type=Path, default=harness.RESULTS)
    parser.add_argument("--work", type=Path, default=None)
    return parser.parse_args()


def sides(
    checkouts: dict[str, Path], work: Path, conninfo: str | None, options: argparse.Namespace
) -> tuple[list[harness.Side], dict[str, int]]:
    """One side a checkout, and the lines of output of each, filled in as they run."""
    lines: dict[str, int] = {}
    roots: dict[str, list[Path]] = {name: [] for name in checkouts}

    def prepare(name: str) -> None:
        number = len(roots[name])
        root = work / f"{name}-{number}"
        catalog = _catalog(conninfo, f"library_{name}_{number}")
        write_project(root, catalog, days=options.rows)
        roots[name].append(root)

    def run(name: str) -> None:
        output = backfill(roots[name][-1], checkouts[name], days=options.rows)
        lines[name] = len(output)
        if options.keep is not None:
            options.keep.mkdir(parents=True, exist_ok=True)
            (options.keep / f"{name}.txt").write_text("\n".join([*output, ""]))

    return [
        harness.Side(
            name,
            lambda name=name: run(name),  # type: ignore[misc]  # mypy does not infer a lambda's default
            prepare=lambda name=name: prepare(name),  # type: ignore[misc]  # as above
        )
        for name in checkouts
    ], lines


def main() -> None:
    options = _options()
    checkouts = {"now": Path(__file__).resolve().parent.parent}
    if options.against is not None:
        checkouts["before"] = options.against.resolve()
    before = harness.load()
    with harness.scratch(options.work) as work, _server() as conninfo:
        contenders, lines = sides(checkouts, work, conninfo, options)
        seconds = harness.race(contenders, options.rounds, warmup=0)
    figures = [harness.Figure("Lines of the library's first backfill", lines["now"], 60, "lines")]
    if "before" in checkouts:
        ratio = harness.ratio(seconds, "now", "before")
        figures.append(harness.Figure("The library's first backfill against before", ratio, 0.5))
    report = harness.Report(
        "library", tuple(figures), seconds, options.rows, options.rounds, before, harness.load()
    )
    harness.publish(report, options.out)


if __name__ == "__main__":
    main()
