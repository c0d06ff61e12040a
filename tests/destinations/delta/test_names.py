"""What models say of Delta roots, and what a plan refuses: nothing runs.

Tests ``model/values/asset.py``, ``model/headers/annotation.py`` and
``destinations/capabilities.py``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.destinations.capabilities import DELTA, refusals
from penstock.errors import ArgumentError, ModelError
from penstock.model.values.asset import parse_asset, table_of
from penstock.project.project import Project
from tests.destinations.delta.test_models import DELTA as CONFIG
from tests.engine.toy import write_project

HEADER = "-- pipeline\n-- materialize {}\nSELECT 1 AS id\n"


def project_of(root: Path, **targets: str) -> Project:
    scripts = {f"models/{name}": HEADER.format(target) for name, target in targets.items()}
    return Project.load(write_project(root / "p", scripts, CONFIG))


@pytest.mark.parametrize("path", ["sales/shop/t", "sales/shop.t", 'sales/"shop"."t"'])
def test_uris(path: str) -> None:
    asset = parse_asset(f"delta://{path}")
    assert asset is not None
    assert (asset.kind, str(asset)) == ("delta", f"delta://{path}")
    table = table_of(asset)
    assert table is not None
    assert table.full == "sales.shop.t"


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("delta://main/main/t", "main is a lake, and no Delta root"),
        ("ducklake://sales/t", "sales is a Delta root"),
        ("delta://sales", "delta://sales names no table"),
        ("delta://sale/main/t", "lake `sale` does not exist"),
    ],
)
def test_a_wrong_target(tmp_path: Path, target: str, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        project_of(tmp_path, t=target)


def test_names_without_a_lake_are_those_of_the_lake(tmp_path: Path) -> None:
    project = project_of(tmp_path, t="ducklake://main/t", d="delta://sales/main/d")
    assert [str(model.target) for model in project.models] == ["sales.main.d", "main.t"]
    plan = project.plan()
    assert sorted(step.name for step in plan.steps) == ["d", "t"]


def test_changes_of_a_delta_table_are_refused(tmp_path: Path) -> None:
    header = "-- pipeline\n-- materialize ducklake://main/t key=id\n-- incremental changes\n"
    place = write_project(
        tmp_path / "p", {"models/t": f"{header}SELECT id FROM sales.main.d"}, CONFIG
    )
    project = Project.load(place)
    (refused,) = refusals(project.models, {"sales": DELTA})
    assert "sales is a destination of the kind Delta, which cannot tell which rows" in str(refused)
    with pytest.raises(ArgumentError, match="cannot tell which rows of a table changed"):
        project.plan()
