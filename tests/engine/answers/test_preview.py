"""Tables, snapshots and columns that are not there are named at once, without starting Spark.

Tests ``engine/answers/sparkless_query.py`` (which queries start no Spark).
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from penstock.cli.main import main
from tests.engine.toy import write_project

# Run by a process that has not loaded Spark, in which functions may have been registered.
ASK = """
import sys
from click.testing import CliRunner
from penstock.cli.main import main
for text in sys.argv[2:]:
    print(CliRunner().invoke(main, ["sql", text, "--project", sys.argv[1]]).output)
"""
MODEL = """
    -- pipeline
    -- materialize ducklake://main/later
    ATTACH 'ducklake://main' AS dl;
    SELECT id, nmae FROM dl.orders
"""
# The text, what is said of it, and the hint.
WRONG = {
    "SELECT * FROM ordes": (
        "query:1:15: error: table main.ordes does not exist at snapshot 2",
        "did you mean main.orders?",
    ),
    "SELECT *\nFROM orders AT (VERSION => 99)": (
        "query:2:6: error: snapshot 99 does not exist",
        "snapshots 0 to 2 remain",
    ),
    "SELECT count(*)\nFROM orders AS o\nWHERE o.nmae = 'ada'": (
        "query:3:9: error: column 'nmae' does not exist in main.orders",
        "did you mean name?",
    ),
    "SELECT upper(nmae) FROM orders": (
        "query:1:14: error: column 'nmae' does not exist in main.orders",
        "did you mean name?",
    ),
    'SELECT * FROM orders WHERE name = "ada"': (
        "query:1:35: error: column 'ada' does not exist in main.orders",
        "\"ada\" is a name: write 'ada' for the text",
    ),
    "SELECT * FROM table_changes('orders', 1)": (
        "query:1:15: error: table_changes: the argument to is missing",
        "write table_changes(table, from, to)",
    ),
    "SELECT * FROM later": (
        "query:1:15: error: table main.later does not exist at snapshot 2",
        "run it first: penstock run --select +later",
    ),
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = write_project(tmp_path_factory.mktemp("unresolved") / "toy", {"models/later": MODEL})
    made = ask(root, "sql", "CREATE TABLE orders (id INT, name VARCHAR); CREATE TABLE t (id INT)")
    assert made.exit_code == 0, made.output
    return root


def ask(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments, "--project", str(root)])


@pytest.mark.parametrize("options", [(), ("--explain",)], ids=["asked", "explained"])
@pytest.mark.parametrize("text", WRONG)
def test_is_named_with_its_place(text: str, options: tuple[str, ...], shop: Path) -> None:
    answer = ask(shop, "sql", text, *options)
    message, hint = WRONG[text]
    assert answer.exit_code == 2
    assert message in answer.output
    assert hint in answer.output
    assert "starting Spark" not in answer.output


def test_a_misspelt_function(shop: Path) -> None:
    texts = {
        "SELECT\n  uper(name) FROM orders": "query:2:3: error: function 'uper' does not exist",
        "UPDATE orders SET id = coalese(1)": "query:1:24: error: function 'coalese' does not exist",
        "SELECT * FROM table_chnges('t', 1, 2)": "did you mean table_changes?",
    }
    done = subprocess.run(
        [sys.executable, "-c", ASK, str(shop), *texts], capture_output=True, text=True, check=True
    )
    assert [said for said in texts.values() if said not in done.stdout] == []
    assert "starting Spark" not in done.stdout + done.stderr


def test_of_a_model_that_is_previewed(shop: Path) -> None:
    answer = ask(shop, "preview", "later")
    assert answer.exit_code == 2
    assert "models/later.sql:4:12: error: column 'nmae' does not exist" in answer.output
    assert "starting Spark" not in answer.output


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM ordes",
        "INSERT INTO orders SELECT * FROM ordes",
        "CREATE TABLE x AS SELECT * FROM ordes",
        "DELETE FROM orders WHERE id IN (SELECT id FROM ordes)",
        "DELETE FROM orders USING ordes WHERE orders.id = 1",
        "UPDATE orders SET id = (SELECT max(id) FROM ordes)",
        "MERGE INTO t USING orders o ON t.id = o.id AND o.id IN (SELECT id FROM ordes) "
        "WHEN MATCHED THEN DELETE",
        "MERGE INTO t USING orders o ON t.id = o.id WHEN MATCHED THEN UPDATE SET id = "
        "(SELECT 1 FROM ordes)",
    ],
)
def test_of_a_statement_on_one_lake(text: str, shop: Path) -> None:
    answer = ask(shop, "sql", text, "--lake", "main")
    assert answer.exit_code == 2
    assert f"query:1:{text.index('ordes') + 1}: error: table " in answer.output
    assert "starting Spark" not in answer.output


def test_a_plain_select_of_the_dialect_of_duckdb_starts_no_spark(shop: Path) -> None:
    rows = "INSERT INTO orders VALUES (2, 'bob'), (1, NULL), (3, 'it''s')"
    assert ask(shop, "sql", rows).exit_code == 0
    queries = {
        "SELECT name, id FROM orders ORDER BY name": "name,id\nbob,2\nit's,3\n,1\n",
        "SELECT id FROM orders WHERE name = 'bob'": "id\n2\n",
        "SELECT count(*) FROM orders WHERE id > 1": "count_star()\n2\n",
    }
    code = (
        "import sys; from penstock.cli.main import main\nmain(sys.argv[1:], standalone_mode=False)"
    )
    code += "\nassert 'pyspark' not in sys.modules"
    for query, printed in queries.items():
        words = ["sql", query, "--dialect", "duckdb", "--format", "csv", "--project", str(shop)]
        done = subprocess.run(
            [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout) == (0, printed), done.stderr
