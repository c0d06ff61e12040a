from __future__ import annotations

import json
from pathlib import Path

import pytest
from bench import harness


def recorded(name: str, log: list[str]) -> harness.Side:
    return harness.Side(
        name,
        run=lambda: log.append(f"{name} run"),
        prepare=lambda: log.append(f"{name} prepare"),
        clean=lambda: log.append(f"{name} clean"),
    )


def test_sides_take_turns_and_the_order_turns_round() -> None:
    log: list[str] = []
    seconds = harness.race([recorded("a", log), recorded("b", log)], 2, warmup=1)
    assert [line for line in log if line.endswith("run")] == [
        *("b run", "a run"),
        *("a run", "b run"),
        *("b run", "a run"),
    ]
    assert log[:3] == ["b prepare", "b run", "b clean"]
    assert {name: len(found) for name, found in seconds.items()} == {"a": 2, "b": 2}


def test_a_side_is_cleaned_up_after_it_failed() -> None:
    log: list[str] = []

    def fail() -> None:
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011 - the side's own, raised just above
        harness.race([harness.Side("a", fail, clean=lambda: log.append("clean"))], 1)
    assert log == ["clean"]


def test_a_ratio_is_of_medians() -> None:
    assert harness.ratio({"a": [1, 2, 100], "b": [4, 4, 4]}, "a", "b") == 0.5


def test_peak_memory_is_of_this_process() -> None:
    assert 10 < harness.peak_memory_mb() < 10_000


def test_a_report_is_written_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figure = harness.Figure("Append", 1.2, 1.15)
    report = harness.Report("append", (figure,), {"a": [1.0]}, 10, 1, 0.1, 0.2)
    harness.publish(report, tmp_path)
    found = json.loads((tmp_path / "append.json").read_text())
    assert found["figures"][0]["value"] == 1.2
    assert found["packages"]["pyspark"]
    assert "Append: 1.20 x  (goal 1.15 x: MISSED)" in capsys.readouterr().out
