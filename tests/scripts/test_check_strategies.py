"""No module outside the home of strategies compares with one."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts.check_strategies import comparisons, main

HEAD = "from penstock.model.values.strategy import FILES, MERGE, VIEW, Output\n"


def test_no_module_compares_with_a_strategy() -> None:
    assert main() == 0


@pytest.mark.parametrize(
    "text",
    [
        "model.strategy == MERGE",
        "model.strategy.name != MERGE.name",
        "record.strategy == 'merge'",
        "model.strategy in (VIEW, FILES)",
        "x = ('append', 'merge')",
        "x = {VIEW: 'a view', FILES: 'files'}",
        "match strategy:\n    case 'merge':\n        pass",
    ],
)
def test_a_comparison_is_found(text: str) -> None:
    assert list(comparisons(HEAD + text))


@pytest.mark.parametrize(
    "text",
    [
        "model.strategy.merges",
        "model.strategy.output is Output.VIEW",
        "known.strategy == model.strategy.name",
        "table.append(df, mode='append')",
    ],
)
def test_a_property_is_not(text: str) -> None:
    assert not list(comparisons(HEAD + text))


def test_a_comparison_fails_the_gate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "plan.py").write_text("is_merge = strategy == 'merge'\n")
    assert main(tmp_path) == 1
    said = capsys.readouterr().out
    assert "plan.py:1: `strategy == 'merge'` compares with a strategy" in said
    assert "is allowed and does not occur" in said
