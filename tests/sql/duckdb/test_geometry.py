"""Texts of geometries have the bytes that DuckDB makes of them."""

from __future__ import annotations

import duckdb
import pytest

from penstock.sql.duckdb.casts import well_known_bytes


@pytest.mark.parametrize(
    "text",
    [
        "POINT (1 2)",
        "point(-1.5 2e3)",
        "LINESTRING (0 0, 1 1.5, 2 0)",
        "POLYGON ((0 0, 4 0, 4 4, 0 0), (1 1, 2 1, 2 2, 1 1))",
        "MULTIPOINT (1 2, 3 4)",
        "MULTIPOINT ((1 2), (3 4))",
        "MULTILINESTRING ((0 0, 1 1), (2 2, 3 3))",
        "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)), ((2 2, 3 2, 3 3, 2 2)))",
    ],
)
def test_bytes(text: str) -> None:
    with duckdb.connect() as con:
        ((expected,),) = con.execute("SELECT ?::GEOMETRY", [text]).fetchall()
    assert well_known_bytes(text) == bytes(expected)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "POINT",
        "POINT EMPTY",
        "POINT (1)",
        "POINT (1 2",
        "POINT Z (1 2 3)",
        "POINT (1 2) x",
        "BOX (1 2)",
        "POINT ((1 2))",
        "POINT (1 2,)",
        "LINESTRING (0 0,, 1 1)",
        "LINESTRING ()",
        "POLYGON ((0 0, 1 1)(2 2, 3 3))",
    ],
)
def test_what_is_none(text: str) -> None:
    assert well_known_bytes(text) is None
