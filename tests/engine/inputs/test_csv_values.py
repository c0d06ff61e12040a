"""SQL that converts texts of CSV files; what it does is tested with the files."""

from __future__ import annotations

import pytest

from penstock.engine.inputs.csv_values import Formats, Misfit, is_readable, misfit_in, value_of

NONE = Formats()


def test_texts_are_their_own_values() -> None:
    assert value_of("c0", "STRING", NONE, "k", 0) == "c0"


@pytest.mark.parametrize("kind", ["BIGINT", "DECIMAL(9, 2)", "DOUBLE", "DATE", "TIMESTAMP_NTZ"])
def test_another_text_raises_an_error_with_its_column(kind: str) -> None:
    sql = value_of("c3", kind, NONE, "abc", 3)
    assert "raise_error(concat('penstock_csv abc 3 ', hex(c3), ' penstock_csv_end'))" in sql
    assert sql.startswith("coalesce(")


def test_the_text_of_an_error() -> None:
    message = (
        f"[USER_RAISED_EXCEPTION] penstock_csv abc 3 {b'1,50 x'.hex().upper()} penstock_csv_end"
    )
    assert misfit_in(message, "abc") == Misfit(3, "1,50 x")
    assert misfit_in(message, "other") is None
    assert misfit_in("another error", "abc") is None


def test_types_without_texts() -> None:
    assert [is_readable(kind) for kind in ("INT", "DECIMAL(38, 0)", "ARRAY<INT>", "VARIANT")] == [
        True,
        True,
        False,
        False,
    ]


def test_formats_are_javas() -> None:
    formats = Formats("%d/%m/%y", "%d.%m.%Y %H:%M", ",")
    assert "try_to_date(c0, 'd/M/yy')" in value_of("c0", "DATE", formats, "k", 0)
    assert "'d.M.yyyy H:m'" in value_of("c0", "TIMESTAMP_NTZ", formats, "k", 0)
    assert "translate(c0, ',.', '.#')" in value_of("c0", "DECIMAL(9, 2)", formats, "k", 0)
