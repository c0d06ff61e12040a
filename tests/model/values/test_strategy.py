"""Strategies as values: what records name, and what the engine has to write each.

Tests ``engine/strategies/registry.py`` (each strategy that makes a table is in it).
"""

from __future__ import annotations

import pickle

import pytest

from penstock.engine.strategies import registry
from penstock.model.values.kinds import KINDS
from penstock.model.values.strategy import STRATEGIES, Output, Restate, strategy_named


def test_the_engine_writes_every_strategy_that_makes_a_table() -> None:
    tables = {name for name, each in STRATEGIES.items() if each.output is Output.TABLE}
    assert set(registry.STRATEGIES) == tables | {"upsert", "change_feed"}  # merges of their own


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=str)
def test_a_strategy_is_what_its_name_says(strategy: object) -> None:
    assert strategy_named(str(strategy)) is strategy
    assert pickle.loads(pickle.dumps(strategy)) is strategy


def test_a_strategy_of_a_later_version_is_known_by_name() -> None:
    later = strategy_named("sketch")
    assert (later.name, later.output, later.restores) == ("sketch", Output.TABLE, False)


def test_each_can_be_asked_for() -> None:
    """By a kind of MODEL, by a line of a header, or by a step in Python that writes files."""
    kinds = {kind.strategy for kind in KINDS.values()}
    others = [each for each in STRATEGIES.values() if each not in kinds and not each.annotated]
    assert [each.output for each in others] == [Output.FILES]


def test_what_removes_rows_of_others_restores_slices() -> None:
    for each in STRATEGIES.values():
        assert each.restores or not each.exact, each
        assert not (each.restores and each.may_repeat), each
        assert each.restate is not Restate.SLICES or each.irreplaceable is None, each
