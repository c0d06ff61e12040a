"""What a catalog says of merged files, in the forms of all versions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.errors import CatalogCorrupt
from penstock.lakes.catalog.files.files import partial_of
from penstock.lakes.format.files import Partial


def row(last: int | None = None, info: str | None = None) -> Any:
    return SimpleNamespace(data_file_id=4, partial_max=last, partial_file_info=info)


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        (row(), None),
        (row(info=""), None),
        (row(last=6), Partial(6)),
        (row(info="partial_max:6"), Partial(6)),
        (row(info="15:3|16:6|17:9"), Partial(17, ((15, 3), (16, 6), (17, 9)))),
        (row(info="7:3|7:7"), Partial(7, ((7, 3), (7, 7)))),
    ],
)
def test_forms(stored: Any, expected: Partial | None) -> None:
    assert partial_of(stored) == expected


@pytest.mark.parametrize("text", ["15", "15:6|16:3", "partial_max:", "15:3|", "x:1", "-1:3"])
def test_what_is_in_no_format_is_named(text: str) -> None:
    with pytest.raises(CatalogCorrupt, match="data file 4 is merged of"):
        partial_of(row(info=text))
