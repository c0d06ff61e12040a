"""Write the table of the last results between the bench marks of README.md."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bench.harness import RESULTS

README = Path(__file__).resolve().parents[1] / "README.md"
BEGIN, END = "<!-- bench -->", "<!-- /bench -->"
PROGRAMS = (  # in the order of the table
    "append",
    "scan",
    "scan_deletes",
    "small_files",
    "compaction",
    "merge",
    "update_delete",
    "step_overhead",
    "planning",
    "time_travel",
    "commits",
    "commits_parallel",
    "add_files",
)


def read(directory: Path) -> list[Mapping[str, Any]]:
    """The results that are there, in the order of the programs."""
    found = (directory / f"{program}.json" for program in PROGRAMS)
    return [json.loads(file.read_text()) for file in found if file.exists()]


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
        raise SystemExit(f"README.md needs the marks {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{content}\n{END}{after}"


def main() -> None:
    content = table(read(RESULTS))
    README.write_text(insert(README.read_text(), content))
    print(content)


if __name__ == "__main__":
    main()
