"""Two days of the flights example, served; `flights_month` plays a month.

Tests ``server/watching.py`` and ``server/opening.py`` too.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.server.flights_month import run, text_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_days_after_those_of_the_example_have_their_dates() -> None:
    header, row, *_ = text_of(date(2013, 1, 16)).splitlines()
    fields = dict(zip(header.split(","), row.split(","), strict=True))
    assert (fields["month"], fields["day"], fields["flight"]) == ("1", "16", "707")
    assert fields["time_hour"] == "2013-01-17T04:00:00Z"


@pytest.mark.slow
@pytest.mark.spark
def test_two_days_with_a_late_file(spark: SparkSession, tmp_path: Path) -> None:
    month, different = run(tmp_path, spark, days=2)
    assert different == []
    (failure,) = month.failures
    assert failure.startswith("raw/flights 2013-01-02: ")
    assert failure.endswith("flights-2013-01-02.csv.gz does not exist")
    assert month.restarts > 3
