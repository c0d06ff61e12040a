"""Values by models are derived when they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from penstock.model.definition.by_model import ByModel
from penstock.model.definition.model import Model
from tests.model.project.test_loader import scan

STEP = "-- materialize ducklake://main/{}\nSELECT 1 AS n"


def load(root: Path) -> tuple[Model, ...]:
    return scan(root, **{f"models__{name}": STEP.format(name) for name in "abc"}).models


def test_each_is_derived_once_when_it_is_asked_for(tmp_path: Path) -> None:
    asked: list[list[str]] = []

    def derive(models: Sequence[Model]) -> dict[str, str]:
        asked.append([model.name for model in models])
        return {model.name: model.name.upper() for model in models if model.name != "c"}

    values = ByModel(load(tmp_path), derive)
    assert asked == []
    assert (values["b"], values["b"], values.get("d")) == ("B", "B", None)
    assert asked == [["b"]]
    assert values.derived == {"b"}
    assert values == {"a": "A", "b": "B"}
    assert len(values) == 2
    assert "c" not in values
    assert asked == [["b"], ["a", "c"]]
    with pytest.raises(KeyError, match="c"):
        values["c"]
