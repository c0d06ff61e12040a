"""What the example's tables must hold, computed from the CSV files by plain Python."""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "flights"
NEW_YORK = ZoneInfo("America/New_York")


@dataclass(frozen=True, slots=True)
class Flight:
    """One line of a day's file; ``departed_at`` is an instant in UTC."""

    flight_date: date
    carrier: str
    flight: int
    origin: str
    departed_at: datetime | None
    delay: int | None
    status: str


def flights(day: str) -> list[Flight]:
    """A day's flights, in the order of the file."""
    path = EXAMPLE / "data" / f"flights-{day}.csv.gz"
    with gzip.open(path, "rt", newline="", encoding="utf-8") as text:
        return [_flight(line) for line in csv.DictReader(text)]


def _flight(line: dict[str, str]) -> Flight:
    day = date(int(line["year"]), int(line["month"]), int(line["day"]))
    delay = _number(line["dep_delay"])
    clock = f"{int(line['sched_dep_time']):04}"
    local = datetime.combine(day, datetime.min.time(), NEW_YORK).replace(
        hour=int(clock[:2]), minute=int(clock[2:])
    )
    departed = None if delay is None else local.astimezone(UTC) + timedelta(minutes=delay)
    return Flight(
        day,
        line["carrier"],
        int(line["flight"]),
        line["origin"],
        departed,
        delay,
        _status(line),
    )


def _status(line: dict[str, str]) -> str:
    if line["dep_time"] == "NA":
        return "cancelled"
    return "diverted" if line["arr_delay"] == "NA" else "flown"


def _number(text: str) -> int | None:
    return None if text == "NA" else int(text)


@dataclass(frozen=True, slots=True)
class Delays:
    """One airline on one day, or on all days when they are added up."""

    flights: int
    cancelled: int
    late: int


def delays(day: str) -> dict[str, Delays]:
    """By carrier."""
    found: dict[str, list[Flight]] = defaultdict(list)
    for flight in flights(day):
        found[flight.carrier].append(flight)
    return {
        carrier: Delays(
            len(group),
            sum(one.status == "cancelled" for one in group),
            sum(one.delay is not None and one.delay > 15 for one in group),
        )
        for carrier, group in found.items()
    }


def ranking(days: Sequence[str], min_flights: int) -> list[tuple[str, int, Decimal]]:
    """Carrier, flights and share of late departures, the best first."""
    flown: dict[str, int] = defaultdict(int)
    late: dict[str, int] = defaultdict(int)
    for day in days:
        for carrier, one in delays(day).items():
            flown[carrier] += one.flights
            late[carrier] += one.late
    places = sorted((late[carrier] / count, carrier) for carrier, count in flown.items())
    digits = Decimal("0.0001")
    return [
        (carrier, flown[carrier], Decimal(share).quantize(digits, "ROUND_HALF_UP"))
        for share, carrier in places
        if flown[carrier] >= min_flights
    ]


def lines(name: str) -> int:
    """Rows of a CSV file that is not compressed."""
    with (EXAMPLE / "data" / name).open(newline="", encoding="utf-8") as text:
        return sum(1 for _ in csv.DictReader(text))
