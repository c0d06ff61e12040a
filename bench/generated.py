"""A project of many generated models, for the figures of commands that start no Spark.

Each model has 25 lines, 3 common table expressions, 2 windows and 12 columns, and reads two that
come before it (the first ones read a table that no model makes). A partitioned one makes a slice a
day, of the same day of one of them and of the week before it of the other.
"""

from __future__ import annotations

from pathlib import Path

COLUMNS = 12
_CONFIG = """\
[project]
name = "generated"

[lakes.main]
catalog = "ducklake:sqlite:meta.ducklake"
data_path = "data"
"""
_HEAD = "-- materialize ducklake://main/m{number:04}\n"
_DAILY = f"-- pipeline\n-- partitioned daily\n{_HEAD}"
_MODEL = """\
WITH first AS (
    SELECT id, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, day
    FROM {left} WHERE c1 > {number}{same}
),
second AS (
    SELECT b.id, b.c1 + b.c2 AS both, upper(b.c3) AS name, b.c4, b.c5
    FROM {right} AS b WHERE b.day >= {since}
),
joined AS (
    SELECT f.*, s.both, s.name, coalesce(s.c4, f.c4) AS either,
        row_number() OVER (PARTITION BY f.day ORDER BY f.c2 DESC, f.id) AS place,
        sum(f.c1) OVER (PARTITION BY f.c3 ORDER BY f.day) AS running
    FROM first AS f LEFT JOIN second AS s ON f.id = s.id AND s.c5 <> 0
)
SELECT id,
    c1 + 1 AS c1, c2 * 2 AS c2,
    CASE WHEN c3 = 'a' THEN name ELSE c3 END AS c3,
    either AS c4, c5, c6,
    coalesce(c7, running) AS c7,
    c8, CAST(c9 AS BIGINT) AS c9, both AS c10,
    day
FROM joined
WHERE place = 1
    AND c8 IS NOT NULL
"""


def write(directory: Path, count: int, *, partitioned: bool = False) -> None:
    """The project, of ``count`` models in directories of a hundred."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "penstock.toml").write_text(_CONFIG)
    head, same, since = _HEAD, "", "DATE '2026-01-01'"
    if partitioned:
        same = " AND _wm_partition = '{partition}'"
        since = "DATE '{partition}' - INTERVAL 7 DAYS AND b._wm_partition <= '{partition}'"
        head = _DAILY
    for number in range(count):
        path = directory / "models" / f"g{number // 100}" / f"m{number:04}.sql"
        path.parent.mkdir(parents=True, exist_ok=True)
        left, right = (_table(number - step) for step in (1 + number % 7, 3 + number % 11))
        text = f"{head}{_MODEL}".format(
            number=number, left=left, right=right, same=same, since=since
        )
        path.write_text(text)


def _table(number: int) -> str:
    return f"m{number:04}" if number >= 0 else "raw_events"
