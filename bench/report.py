"""Write the last results into two pages: all to bench/README.md, some to README.md."""

from __future__ import annotations

import ast
import json
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.harness import RESULTS

BENCH = Path(__file__).resolve().parent
ALL, SOME = BENCH / "README.md", BENCH.parent / "README.md"
BEGIN, END = "<!-- bench -->", "<!-- /bench -->"
PROGRAMS = (  # in the order of the table
    "append",
    "scan",
    "scan_deletes",
    "small_files",
    "compaction",
    "merge",
    "update_delete",
    "delta",
    "delta_opening",
    "data_tests",
    "step_overhead",
    "kinds",
    "small_steps",
    "asof",
    "backfill",
    "files_a_day",
    "read_csv",
    "history",
    "changes",
    "planning",
    "time_travel",
    "commits",
    "commits_parallel",
    "add_files",
    "no_spark",
    "nothing_to_do",
    "cold",
)


@dataclass(frozen=True, slots=True)
class Highlight:
    """A line of README's table: the median of a side, and of others by what they are called.

    ``what`` may hold ``{rows}`` of the run, and ``{tenth}`` of them.
    """

    what: str
    program: str
    side: str
    others: Mapping[str, str]


_REWRITE, _DUCKDB = "Spark, rewriting the table", "DuckDB"
HIGHLIGHTS = (
    Highlight(
        "append {rows:,} rows",
        "append",
        "penstock append",
        {"Spark, writing Parquet alone": "spark write.parquet"},
    ),
    Highlight(
        "read and aggregate {rows:,} rows",
        "scan",
        "penstock scan",
        {"Spark, reading the files alone": "spark.read.parquet"},
    ),
    Highlight(
        "merge {tenth:,} rows into {rows:,} by key",
        "merge",
        "penstock merge",
        {
            _DUCKDB: "duckdb ducklake merge",
            "delta-rs": "delta-rs merge",
            _REWRITE: "spark copy on write",
        },
    ),
    Highlight(
        "update 1% of {rows:,} rows",
        "update_delete",
        "penstock update",
        {_DUCKDB: "duckdb update", _REWRITE: "rewrite update"},
    ),
    Highlight(
        "delete 1% of {rows:,} rows",
        "update_delete",
        "penstock delete",
        {_DUCKDB: "duckdb delete", _REWRITE: "rewrite delete"},
    ),
    Highlight(
        "make {rows} commits of one row, catalog in PostgreSQL",
        "commits",
        "Penstock, PostgreSQL",
        {_DUCKDB: "DuckDB, PostgreSQL"},
    ),
    Highlight(
        "find a query's files among 1,000,000 (PostgreSQL)",
        "planning",
        "PostgreSQL, 1,000,000 files, predicate",
        {},
    ),
    Highlight(
        "read a table as it was 5,000 snapshots ago",
        "time_travel",
        "half of the snapshots back",
        {"the latest snapshot": "the latest snapshot"},
    ),
)


def read(directory: Path) -> list[Mapping[str, Any]]:
    """The results that are there, in the order of the programs."""
    files = (directory / f"{program}.json" for program in PROGRAMS)
    return [json.loads(file.read_text()) for file in files if file.exists()]


def table(results: Iterable[Mapping[str, Any]]) -> str:
    """A Markdown table, a line a figure. A figure that misses its goal says so."""
    lines = [
        "| figure | measured | at most | rows, rounds | day, load before |",
        "|---|---|---|---|---|",
    ]
    for result in results:
        size = f"{_rows(result['rows'])}{result['rounds']}"
        when = f"{result['when']}, {result['load_before']:.1f}"
        for figure in result["figures"]:
            measured = _value(figure["value"], figure["unit"])
            missed = "" if figure["value"] <= figure["goal"] else " (missed)"
            note = f" ({figure['note']})" if figure["note"] else ""
            goal = _value(figure["goal"], figure["unit"])
            lines.append(
                f"| {figure['title']}{note} | {measured}{missed} | {goal} | {size} | {when} |"
            )
    return "\n".join(lines)


def programs(names: Iterable[str] = PROGRAMS) -> str:
    """How each program measures, in the words of its docstring."""
    sections = []
    for name in names:
        doc = ast.get_docstring(ast.parse((BENCH / f"{name}.py").read_text())) or ""
        sections.append(f"### bench.{name}\n\n{doc}")
    return "\n\n".join(sections)


def highlights(results: Iterable[Mapping[str, Any]]) -> str:
    """README's table. A side that the last run did not measure is left out, and so is its line."""
    runs = {result["program"]: result for result in results}
    medians = {
        (program, side): statistics.median(seconds)
        for program, result in runs.items()
        for side, seconds in result["seconds"].items()
    }
    lines = ["| to | takes | in comparison |", "|---|---|---|"]
    for line in HIGHLIGHTS:
        own = medians.get((line.program, line.side))
        others = (
            f"{name}: {medians[line.program, side]:.2f} s"
            for name, side in line.others.items()
            if (line.program, side) in medians
        )
        if own is not None:
            rows = runs[line.program]["rows"] or 0
            what = line.what.format(rows=rows, tenth=rows // 10)
            lines.append(f"| {what} | **{own:.2f} s** | {'; '.join(others)} |")
    return "\n".join(lines)


def _rows(rows: int | None) -> str:
    return "" if rows is None else f"{rows:,}, "


def _value(value: float, unit: str) -> str:
    return f"{value:.0f} {unit}" if unit == "MB" else f"{value:.2f} {unit}"


def insert(text: str, content: str) -> str:
    """``text`` with what stands between the marks replaced.

    Raises SystemExit when a mark is missing.
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"the page needs the marks {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{content}\n{END}{after}"


def main() -> None:
    results = read(RESULTS)
    everything = f"{table(results)}\n\n## How each is measured\n\n{programs()}"
    ALL.write_text(insert(ALL.read_text(), everything))
    SOME.write_text(insert(SOME.read_text(), highlights(results)))
    print(table(results))


if __name__ == "__main__":
    main()
