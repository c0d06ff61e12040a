"""What the writing of a model's rows says of errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.engine.running.writing import of_several_intervals
from penstock.errors import MergeKeyError
from penstock.project.project import Project
from tests.engine.toy import write_project

QUERY = "SELECT id FROM src WHERE day BETWEEN @start_ds AND @end_ds"


@pytest.mark.parametrize(
    ("options", "query", "duplicates", "said"),
    [
        ("", QUERY, 1, True),
        (", batch_size 1", QUERY, 1, False),
        ("", "SELECT id FROM src", 1, False),
        ("", QUERY, 0, False),
    ],
)
def test_a_key_of_several_intervals(
    tmp_path: Path, options: str, query: str, duplicates: int, said: bool
) -> None:
    kind = f"INCREMENTAL_BY_UNIQUE_KEY (unique_key id{options})"
    text = f"MODEL (name t, kind {kind}, start '2026-01-01');\n{query}"
    model = Project.load(write_project(tmp_path / "p", {"models/t": text})).model("t")
    data = {"duplicate_count": duplicates}
    hint = of_several_intervals(MergeKeyError("twice", hint="select one", data=data), model)
    assert hint == (
        "select one" + "; a key that comes in several intervals needs batch_size 1" * said
    )
