"""``penstock lineage`` on a small project with a lake; nothing runs, and no Spark is started.

Tests ``engine/answers/lineage.py`` (columns that the lake knows) and ``model/lineage/trace.py``
(several hops, both ways).
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from penstock import Lake, Project
from penstock.cli.main import main
from penstock.errors import ArgumentError
from penstock.lakes.format.changes import ChangeSet, NewView

CONFIG = """\
[lakes.main]
catalog = "ducklake:sqlite:meta.sqlite"
data_path = "data"
"""
MODELS = {
    "raw/orders": """\
-- materialize ducklake://main/orders
-- column paid <- ducklake://main/payments.amount
SELECT w.id, upper(who) AS who, w.price AS paid, at FROM source AS w
""",
    "daily": """\
-- materialize ducklake://main/daily
SELECT at, count(*) AS orders, sum(paid) AS paid FROM orders WHERE who IS NOT NULL GROUP BY at
""",
    "seen": "-- materialize ducklake://main/seen\nSELECT * FROM big_orders",
    "file": "-- materialize ducklake://main/file\nSELECT * FROM read_csv('x.csv')",
    "after": "-- materialize ducklake://main/after\nSELECT p FROM file",
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with a table that no model makes, and a view."""
    root = tmp_path_factory.mktemp("lineage")
    (root / "penstock.toml").write_text(CONFIG)
    for name, text in MODELS.items():
        path = root / "models" / f"{name}.sql"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    uri = f"ducklake:sqlite:{root / 'meta.sqlite'}"
    with Lake.attach(uri, data_path=str(root / "data")) as lake:
        lake.sql("CREATE TABLE source (id BIGINT, who VARCHAR, price DOUBLE, at DATE)")
        view = NewView("main", "big_orders", "SELECT * EXCLUDE (at) FROM source")
        lake.catalog.commit(lake.catalog.latest(), ChangeSet(create_views=(view,)))
    return root


def lineage(project: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["lineage", "--project", str(project), *arguments])


def test_a_model(shop: Path) -> None:
    assert lineage(shop, "daily").stdout.splitlines() == [
        "main.daily.at",
        "└── main.orders.at",
        "    └── main.source.at",
        "main.daily.orders",
        "└── main.orders.*",
        "main.daily.paid",
        "└── main.orders.paid [declared] [the query says main.source.price]",
        "    └── main.payments.amount",
        "rows of main.daily: main.orders.at (group), main.orders.who (filter)",
    ]


def test_a_column_with_what_decides_the_rows(shop: Path) -> None:
    assert lineage(shop, "main.daily.at", "--rows").stdout.splitlines() == [
        "main.daily.at",
        "├── main.orders.at",
        "│   └── main.source.at",
        "├── main.orders.at (group) (above)",
        "└── main.orders.who (filter)",
        "    └── main.source.who",
        "rows of main.daily: main.orders.at (group), main.orders.who (filter)",
    ]


def test_downstream_of_a_table_that_no_model_makes(shop: Path) -> None:
    assert lineage(shop, "source.who", "--downstream").stdout.splitlines() == [
        "main.source.who",
        "├── main.orders.who",
        "│   └── main.daily.* (filter)",
        "└── main.big_orders.who",
        "    └── main.seen.who",
    ]
    assert "main.daily.paid" in lineage(shop, "source.who", "--downstream", "--rows").stdout


def test_a_view_is_a_step(shop: Path) -> None:
    assert lineage(shop, "seen.id").stdout.splitlines() == [
        "main.seen.id",
        "└── main.big_orders.id",
        "    └── main.source.id",
    ]


def test_what_is_not_known_is_said(shop: Path) -> None:
    why = "a star cannot be expanded: the columns of x.csv are not known without reading it"
    assert lineage(shop, "after").stdout.splitlines() == [
        "main.after.p",
        f"└── main.file.p [not known: {why}]",
    ]
    found = lineage(shop, "file")
    assert found.stdout.splitlines() == [
        f"main.file.p [not known: {why}]",
        f"not known of main.file: {why}",
    ]


def test_a_column_that_only_the_table_still_has(tmp_path: Path) -> None:
    (tmp_path / "penstock.toml").write_text(CONFIG)
    (tmp_path / "models").mkdir()
    orders = "-- materialize ducklake://main/orders key=id\nSELECT 1 AS id, 'a' AS cust"
    (tmp_path / "models" / "orders.sql").write_text(orders)
    reader = "-- materialize ducklake://main/reader\nSELECT customer FROM orders"
    (tmp_path / "models" / "reader.sql").write_text(reader)
    uri = f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}"
    with Lake.attach(uri, data_path=str(tmp_path / "data")) as lake:
        lake.sql("CREATE TABLE orders (id INT, customer VARCHAR)")
    assert lineage(tmp_path, "reader.customer").stdout.splitlines()[0] == (
        "main.reader.customer [not known: line 2: main.orders no longer returns customer]"
    )


def test_json(shop: Path) -> None:
    found = json.loads(lineage(shop, "daily.paid", "--json").stdout)
    assert [(each["asset"], each["column"], each["model"]) for each in found["columns"]] == [
        ("main.daily", "paid", "daily"),
        ("main.orders", "paid", "raw/orders"),
        ("main.payments", "amount", None),
    ]
    assert found["columns"][1]["contradicts"] == [
        {"asset": "main.source", "column": "price", "kind": "value"}
    ]
    assert found["rows"][1] == {"asset": "main.orders", "column": "who", "kind": "filter"}


BAD = {
    "dayly": "error: model or column 'dayly' does not exist\n  → did you mean 'daily'?\n",
    "dayly.at": "error: model or column 'dayly.at' does not exist\n  → did you mean 'daily'?\n",
    "daily.payd": "error: main.daily has no column 'payd'\n  → did you mean paid?\n",
    "daily.": "error: model or column 'daily.' does not exist\n  → did you mean 'daily'?\n",
    "source.whom": "error: main.source has no column 'whom'\n  → did you mean who?; of what no "
    "model makes, those that models read\n",
    "file.q": "error: main.file has no column 'q'\n  → the columns there are: p; they are not all "
    "known\n",
}


@pytest.mark.parametrize("of", BAD)
def test_names_that_are_not_there(of: str, shop: Path) -> None:
    found = lineage(shop, of)
    assert (found.exit_code, found.stderr) == (2, BAD[of])


def test_a_model_of_which_nothing_is_known(shop: Path, tmp_path: Path) -> None:
    (tmp_path / "penstock.toml").write_text(CONFIG)
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "file.sql").write_text(MODELS["file"])
    found = lineage(tmp_path, "file")
    assert found.exit_code == 2
    assert found.stderr == (
        "error: the columns of main.file are not known: a star cannot be expanded: the columns of "
        "x.csv are not known without reading it\n"
        "  → run it once, describe what it reads in external_models.yaml, or declare them: "
        "-- column name <- ducklake://main/table.column\n"
    )


def test_the_api_refuses_other_directions(shop: Path) -> None:
    with Project.load(shop) as project, pytest.raises(ArgumentError) as raised:
        project.lineage("daily", "sideways")
    assert str(raised.value).startswith("'sideways' is not a direction")


def test_no_spark_is_loaded(shop: Path) -> None:
    code = (
        "import sys; from penstock import Project\n"
        f"with Project.load({str(shop)!r}) as project: project.lineage('daily')\n"
        "print([name for name in ('pyspark', 'py4j', 'pyarrow') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_what_python_makes_is_to_be_declared(tmp_path: Path) -> None:
    (tmp_path / "penstock.toml").write_text(CONFIG)
    (tmp_path / "models").mkdir()
    header = "# pipeline\n# materialize ducklake://main/scores\n"
    (tmp_path / "models" / "scores.py").write_text(f"{header}def main():\n    return []\n")
    found = lineage(tmp_path, "scores.amount")
    assert found.exit_code == 2
    assert "Python makes them: declare them by `# column" in found.stderr
    assert "run it once" not in found.stderr
