# pipeline
# materialize ducklake://main/marts.doubling
# on ducklake://main/clean.indicators
# timeout 5m
# data_test unique iso
# data_test not_null years
# column iso VARCHAR
# column years DOUBLE
# column iso <- ducklake://main/clean.indicators.iso
# column years <- ducklake://main/clean.indicators.year, ducklake://main/clean.indicators.population
"""In how many years the population of a country doubles: a line through its logarithms."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from typing import Any


def main(indicators: list[dict[str, Any]]) -> list[dict[str, Any]]:
    by_country: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for row in indicators:
        by_country[row["iso"]].append((row["year"], math.log2(row["population"])))
    slopes = {iso: slope(points) for iso, points in sorted(by_country.items())}
    growing = {iso: rate for iso, rate in slopes.items() if rate > 0}
    print(f"{len(growing)} of {len(slopes)} countries grow")
    return [{"iso": iso, "years": round(1 / rate, 6)} for iso, rate in growing.items()]


def slope(points: list[tuple[int, float]]) -> float:
    years, sizes = zip(*points, strict=True)
    return statistics.linear_regression(years, sizes).slope
