"""The models that `range_sequences` runs: one of every strategy but history, drawn by chance."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, time
from typing import Any
from zoneinfo import ZoneInfo

from tests.engine.strategies.range_reference import BOOM, DAY, HOUR, MOST, Form

PARIS = "Europe/Paris"
#: the first moments of sequences, and how many days or hours: two have a day of 23 or 25 hours
WINDOWS = (datetime(2026, 3, 27, tzinfo=UTC), datetime(2026, 10, 24, tzinfo=UTC))
DAYS, HOURS = 4, 5

_V = f"CASE WHEN v = {BOOM} THEN CAST(raise_error('boom') AS INT) ELSE v END AS v"
_RANGE = f"-- data_test accepted_range v max={MOST}\n"
_AUDIT = f"audits (accepted_range(column := v, max_v := {MOST}))"

#: time columns: in Spark's SQL, what DuckDB reads of them, and the format
FAMILIES: Mapping[str, tuple[str, Callable[[datetime], Any], str | None]] = {
    "zoned": ("at", lambda at: at, None),
    "ntz": ("CAST(at AS TIMESTAMP_NTZ)", lambda at: at.replace(tzinfo=None), None),
    "date": ("CAST(at AS DATE)", lambda at: at.date(), None),
    "text": ("date_format(at, 'yyyy-MM-dd')", lambda at: f"{at:%Y-%m-%d}", None),
    "german": ("date_format(at, 'dd.MM.yyyy')", lambda at: f"{at:%d.%m.%Y}", "%d.%m.%Y"),
    "digits": (
        "CAST(date_format(at, 'yyyyMMdd') AS INT)",
        lambda at: int(f"{at:%Y%m%d}"),
        "%Y%m%d",
    ),
    "epoch": ("unix_seconds(at)", lambda at: int(at.timestamp()), "epoch"),
    "expression": ("date_format(at, 'd/M/yyyy')", lambda at: f"{at.day}/{at.month}/{at.year}", ""),
}
_HOURLY = ("zoned", "ntz", "epoch")


def form_of(chance: random.Random, name: str) -> Form:
    return FORMS[name](chance)


def _time_range(chance: random.Random) -> Form:
    hourly = chance.random() < 0.25
    family = chance.choice(_HOURLY if hourly else tuple(FAMILIES))
    expression, value, written = FAMILIES[family]
    window = _window(chance, hourly=hourly)
    start = window[0] if hourly or chance.random() < 0.8 else None
    lookback, batch = chance.choice((0, 0, 1, 2)), chance.choice((None, None, 1, 2))
    zone = PARIS if chance.random() < 0.3 and not hourly else "UTC"
    reads = chance.choice(("own", "own", "got", "all"))
    column = "at" if written is None else f"(at, '{written}')"
    if family == "expression":
        column = "to_date(at, 'd/M/yyyy')"
    select = f"SELECT n, id, {expression} AS at, {_V}, g FROM raw{_WHERE_INTERVAL[reads]}"
    kind = [f"time_column {column}", *_options(lookback, batch)]
    kind += ["partition_by_time_column false"] if chance.random() < 0.3 else []
    head = [f"kind INCREMENTAL_BY_TIME_RANGE ({', '.join(kind)})", _AUDIT, *_start(start)]
    head += [f"cron_tz '{zone}'"] if zone != "UTC" else []
    head += ["cron '@hourly'"] if hourly else []
    script = f"MODEL (name main.t, {', '.join(head)}); {select}"
    if written is None and start is not None and zone == "UTC" and chance.random() < 0.3:
        script = _annotated(start, lookback, batch, select, hourly=hourly)
    return Form(
        f"time range of {family}",
        "time_range",
        "interval",
        script,
        reads=reads,
        value=value,
        zone=zone,
        unit=HOUR if hourly else DAY,
        start=start,
        lookback=lookback,
        batch_size=batch,
        window=window,
    )


_WHERE_INTERVAL = {
    "own": " WHERE at BETWEEN @start_tstz AND @end_tstz",
    "got": " WHERE got BETWEEN @start_tstz AND @end_tstz",
    "all": "",
}


def _window(chance: random.Random, *, hourly: bool) -> tuple[datetime, int]:
    first = chance.choice(WINDOWS)
    if not hourly:
        return first, DAYS
    return (first + 2 * DAY if first.month == 3 else first + DAY), HOURS


def _options(lookback: int, batch: int | None) -> list[str]:
    return ([f"lookback {lookback}"] if lookback else []) + (
        [f"batch_size {batch}"] if batch else []
    )


def _start(start: datetime | None) -> list[str]:
    return [] if start is None else [f"start '{start:%Y-%m-%d}'"]


def _annotated(
    start: datetime, lookback: int, batch: int | None, select: str, *, hourly: bool
) -> str:
    options = f" lookback={lookback}" if lookback else ""
    options += f" batch_size={batch}" if batch else ""
    unit = "hourly" if hourly else "daily"
    return (
        f'-- pipeline\n-- partitioned {unit} start="{start:%Y-%m-%d}"\n'
        f"-- materialize ducklake://main/t time=at{options}\n{_RANGE}{select}"
    )


def _partition(strategy: str, words: str) -> Callable[[random.Random], Form]:
    def form(chance: random.Random) -> Form:
        hourly = chance.random() < 0.25
        zone = chance.choice((PARIS, PARIS, "UTC"))
        where = chance.choice(
            ("at >= $partition_start AND at < $partition_end", "d = '{partition}'")
        )
        where = where.replace("d =", "h =") if hourly else where
        apart = chance.random() < 0.4
        not_empty = chance.random() < 0.2
        window = _window(chance, hourly=hourly)
        start = f' start="{window[0]:%Y-%m-%d}"' if chance.random() < 0.3 else ""
        tz = "" if zone == "UTC" else f' tz="{zone}"'
        count = "-- data_test row_count min=1\n" if not_empty else ""
        script = (
            f"-- pipeline\n-- partitioned {'hourly' if hourly else 'daily'}{tz}{start}\n"
            f"-- materialize ducklake://main/t{words}\n{_RANGE}{count}"
            f"SELECT n, id, at, {_V}, g FROM raw WHERE {where}{' LIMIT 1000' if apart else ''}"
        )
        begins = _midnight(window[0], zone) if start else None
        return Form(
            f"partitions, {strategy}",
            strategy,
            "partition",
            script,
            zone=zone,
            unit=HOUR if hourly else DAY,
            start=begins,
            not_empty=not_empty,
            window=window,
        )

    return form


def _midnight(day: datetime, zone: str) -> datetime:
    return datetime.combine(day.date(), time(), ZoneInfo(zone)).astimezone(UTC)


def _whole(strategy: str, *heads: str) -> Callable[[random.Random], Form]:
    def form(chance: random.Random) -> Form:
        head = chance.choice(heads)
        if head.startswith("MODEL"):
            head = head.replace(")", f"), {_AUDIT});", 1)
        else:
            head = f"-- pipeline\n-- materialize ducklake://main/t{head}\n{_RANGE}"
        script = f"{head} SELECT n, id, at, {_V}, g FROM raw"
        return Form(f"whole, {strategy}", strategy, "whole", script, reads="all")

    return form


def _by_interval(strategy: str, kind: str) -> Callable[[random.Random], Form]:
    """A model that only reads by intervals."""

    def form(chance: random.Random) -> Form:
        window = _window(chance, hourly=False)
        start = window[0] if chance.random() < 0.8 else None
        batch = chance.choice((None, 1, 2)) if strategy == "merge" else None
        lookback = chance.choice((0, 1)) if strategy == "merge" else 0
        key = ["unique_key id"] if strategy == "merge" else []
        options = ", ".join((*key, *_options(lookback, batch)))
        options = f" ({options})" if options else ""
        head = ", ".join(("name main.t", f"kind {kind}{options}", _AUDIT, *_start(start)))
        where = _WHERE_INTERVAL["own"]
        return Form(
            f"intervals, {strategy}",
            strategy,
            "interval",
            f"MODEL ({head}); SELECT n, id, at, {_V}, g FROM raw{where}",
            start=start,
            lookback=lookback,
            batch_size=batch,
            window=window,
        )

    return form


FORMS: Mapping[str, Callable[[random.Random], Form]] = {
    "time range": _time_range,
    "partitions, replace": _partition("replace", ""),
    "partitions, append": _partition("append", " append"),
    "partitions, merge": _partition("merge", " key=id"),
    "intervals, merge": _by_interval("merge", "INCREMENTAL_BY_UNIQUE_KEY"),
    "intervals, append": _by_interval("append", "INCREMENTAL_UNMANAGED"),
    "whole, replace": _whole("replace", "", "MODEL (name main.t, kind FULL ()"),
    "whole, append": _whole(
        "append", " append", "MODEL (name main.t, kind INCREMENTAL_UNMANAGED ()"
    ),
    "whole, merge": _whole(
        "merge",
        " key=id",
        "MODEL (name main.t, kind INCREMENTAL_BY_UNIQUE_KEY (unique_key id)",
        " key=id\n-- incremental changes",
    ),
    "whole, partitions": _whole(
        "partitions",
        "MODEL (name main.t, partitioned_by g, kind INCREMENTAL_BY_PARTITION ()",
    ),
}
