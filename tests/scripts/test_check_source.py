"""What the check of the source finds, and that its list of debts only shrinks."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import replace
from pathlib import Path

from scripts.check_source import (
    Findings,
    circles,
    listed,
    look,
    opening_lines,
    problems,
    shrunk,
)

CLEAN = Findings(Counter(), {}, frozenset())
DEBTS = Findings(Counter(["What it is."]), {"Run.go": 80}, frozenset({"plan slices"}))


def test_a_docstring_that_begins_with_a_question_is_found() -> None:
    text = '"""Read it."""\nclass A:\n    """What it is.\n\n    More.\n    """\n'
    assert list(opening_lines(ast.parse(text))) == ["What it is."]


def test_modules_that_reach_each_other_are_a_circle() -> None:
    imports = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set(), "e": {"d"}}
    assert list(circles(imports)) == [{"a", "b", "c"}]
    assert list(circles({"a": {"b"}, "b": set()})) == []


def test_a_long_method_is_found_by_its_name(tmp_path: Path) -> None:
    body = "        pass\n" * 70
    (tmp_path / "run.py").write_text(f"class Run:\n    def go(self):\n{body}")
    assert look(tmp_path, {"x.plan": {"x.slices"}, "x.slices": {"x.plan"}}) == Findings(
        Counter(), {"Run.go": 71}, frozenset({"plan slices"}), p95=71
    )


def test_a_long_file_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "run.py").write_text("import os\n" * 601)
    findings = look(tmp_path, {})
    assert list(problems(findings, CLEAN)) == ["run.py has 601 lines, more than 600"]


def test_what_is_listed_passes_and_nothing_beyond() -> None:
    assert list(problems(DEBTS, DEBTS)) == []
    worse = Findings(
        Counter({"What it is.": 2}), {"Run.go": 81}, frozenset({"plan slices", "a b"}), p95=36
    )
    assert len(list(problems(worse, DEBTS))) == 4


def test_an_entry_that_no_longer_applies_fails_until_it_is_removed(tmp_path: Path) -> None:
    assert len(list(problems(CLEAN, DEBTS))) == 3
    better = replace(DEBTS, functions={"Run.go": 75}, cycles=frozenset({"new one"}))
    debts = tmp_path / "debts.toml"
    debts.write_text(shrunk(better, DEBTS))
    assert listed(debts) == replace(better, cycles=frozenset())
