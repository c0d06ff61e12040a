"""Python files as models: what their headers and helpers say that they make and read.

Tests ``model/python_steps.py`` (what a step's code reads).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.model.definition.graph import Graph
from penstock.model.definition.model import Model
from penstock.model.project.loader import Loaded, load_models
from tests.model.project.test_loader import LAKES, project, rules

USES = 'import penstock\nlake = penstock.lake("main")\n'


def load(root: Path, text: str, name: str = "t", **scripts: str) -> Loaded:
    path = project(root, **scripts) / "models" / f"{name}.py"
    path.write_text(text)
    return load_models(root, lakes=LAKES)


def step(root: Path, text: str, **scripts: str) -> Model:
    loaded = load(root, text, **scripts)
    assert not loaded.errors, loaded.errors
    return next(model for model in loaded.models if model.name == "t")


def test_a_header_with_code_is_a_model(tmp_path: Path) -> None:
    made = step(
        tmp_path,
        "# pipeline\n# materialize ducklake://main/t key=id\n# partitioned daily\n"
        "# data_test not_null id\n# timeout 5m\n# on ducklake://main/orders\n"
        "import pyarrow as pa\ndef main(partition: str, orders: pa.Table, n: int = 2): ...\n",
    )
    assert (made.strategy.name, made.keys, str(made.target)) == ("merge", ("id",), "main.t")
    assert (made.timeout, [str(table) for table in made.reads]) == ("5m", ["main.orders"])
    assert [argument.name for argument in made.query.arguments] == ["partition", "n"]
    assert made.python is not None
    assert made.python.place.line == 8


@pytest.mark.parametrize(
    ("call", "strategy", "keys"),
    [
        ('lake.upsert_partition("s.t", [], key="id")', "merge", ("id",)),
        ('lake.upsert_partition("s.t", [], ["id", "day"])', "merge", ("id", "day")),
        ('penstock.lake("main").append_partition("s.t", rows=[])', "append", ()),
        ('lake.append_partition(table="s.t", rows=[])', "append", ()),
    ],
)
def test_without_a_materialize_line_a_helper_says_it(
    tmp_path: Path, call: str, strategy: str, keys: tuple[str, ...]
) -> None:
    made = step(tmp_path, f"# pipeline\n{USES}def main():\n    {call}\n")
    assert (str(made.target), made.strategy.name, made.keys) == ("main.s.t", strategy, keys)


def test_helpers_say_what_is_read(tmp_path: Path) -> None:
    text = (
        f"# pipeline\n# materialize ducklake://main/t\n{USES}"
        'SQL = "SELECT * FROM orders JOIN s.days USING (day)"\n'
        'def main():\n    lake.read("customers")\n    return lake.query(SQL)\n'
    )
    made = step(tmp_path, text)
    assert {str(table) for table in made.reads} == {"main.customers", "main.orders", "main.s.days"}


FILES = """# pipeline
# partitioned daily
import penstock
RAW = "raw/{partition}/orders.json"
def main(partition: str):
    penstock.lake("main").write_file(RAW, [])
"""
READER = """# pipeline
# partitioned daily
# materialize ducklake://main/t
import json
RAW = "raw/{partition}/orders.json"
def main(partition: str):
    path = RAW.replace("{partition}", partition)
    with open(path) as file:
        return json.load(file)
"""


def test_files_are_assets_and_connect_steps(tmp_path: Path) -> None:
    writer = tmp_path / "models" / "writer.py"
    load(tmp_path, READER)
    writer.write_text(FILES)
    models = load_models(tmp_path, lakes=LAKES).models
    assert [(m.name, m.strategy.name, str(m.target)) for m in models] == [
        ("t", "replace", "main.t"),
        ("writer", "files", "raw/{partition}/orders.json"),
    ]
    assert Graph.of(models).order() == ("writer", "t")


@pytest.mark.parametrize(
    ("use", "written"),
    [
        ('open(URI.replace("{partition}", partition), "w")', True),
        ("open(URI)", False),
        ("client.upload_file('x', URI)", True),
        ("client.get_object(URI)", False),
        ("lake.read_file(URI)", False),
        ("place = URI.format(partition=partition); frame.to_parquet(place)", True),
    ],
)
def test_a_uri_is_read_or_written_as_the_code_uses_it(
    tmp_path: Path, use: str, written: bool
) -> None:
    made = step(
        tmp_path,
        f"# pipeline\n# partitioned daily\n# materialize ducklake://main/t\n{USES}"
        f'URI = "s3://bucket/{{partition}}/x"\ndef main(partition: str):\n    {use}\n',
    )
    uri = "s3://bucket/{partition}/x"
    assert made.python is not None
    assert (made.python.writes, [str(read) for read in made.reads]) == (
        ((uri,), []) if written else ((), [uri])
    )


HEAD = "# pipeline\n# materialize ducklake://main/t\n"


@pytest.mark.parametrize(
    ("text", "rule", "line", "message"),
    [
        ("# pipeline\ndef main(): return []\n", "no-target", 1, "makes no table and no file"),
        (f"{HEAD}x = 1\n", "python-main", 1, "has no function main"),
        (f"{HEAD}def main(:\n", "python", 3, "the file is not Python: invalid syntax"),
        (f"{HEAD}def main(x: set): ...\n", "python-main", 3, "has the type set"),
        (
            f'{HEAD}{USES}def main(): lake.append_partition("other", [])\n',
            "python-write", 5, "the step writes main.other, and its table is main.t",
        ),
        (
            f'{HEAD}{USES}def main(): lake.upsert_partition("t", [], key="id")\n',
            "python-write", 5, "upsert_partition is not how a table of replace is written",
        ),
        (
            f"# pipeline\n{USES}def main(name: str): lake.append_partition(name, [])\n",
            "python-write", 4, "the code computes which table it writes",
        ),
        (
            f'# pipeline\n{USES}def main(): lake.upsert_partition("t", [])\n',
            "python-write", 4, "upsert_partition has no key",
        ),
        (
            "# pipeline\n# materialize manual ducklake://main/t\ndef main(): ...\n",
            "python-manual", 2, "cannot be manual",
        ),
        (
            f'{HEAD}import penstock\ndef main(): penstock.lake("pond").read("t")\n',
            "unknown-lake", 4, "lake `pond` does not exist",
        ),
        (
            f'{HEAD}{USES}def main(): return lake.query("SELEC 1")\n',
            "script-statement", 5, "in the query: `SELEC` begins no statement",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_at_its_line(
    tmp_path: Path, text: str, rule: str, line: int, message: str
) -> None:
    finding = load(tmp_path, text).errors[0]
    assert (finding.rule, finding.location.line) == (rule, line), finding
    assert message in finding.message


def test_a_module_without_a_header_is_no_step(tmp_path: Path) -> None:
    loaded = load(tmp_path, "# helpers of the pipeline\nimport json\n# on schedule\n")
    assert (loaded.models, loaded.diagnostics) == ((), ())


def test_two_steps_of_one_name(tmp_path: Path) -> None:
    text = "# pipeline\n# materialize ducklake://main/u\ndef main(): ...\n"
    script = "-- pipeline\n-- materialize ducklake://main/t\nSELECT 1 AS id"
    found = load(tmp_path, text, models__t=script)
    assert rules(found)[0][:2] == ("error", "name")


def test_an_embedded_model_cannot_be_read(tmp_path: Path) -> None:
    text = f'{HEAD}{USES}def main(): return lake.read("e")\n'
    embedded = "MODEL (name main.e, kind EMBEDDED);\nSELECT 1 AS id"
    finding = load(tmp_path, text, models__e=embedded).errors[0]
    assert finding.message == "a step in Python cannot read main.e, which is EMBEDDED and no table"


def test_a_partition_that_nothing_uses(tmp_path: Path) -> None:
    text = f"{HEAD}# partitioned daily\ndef main(): return []\n"
    (finding,) = load(tmp_path, text).diagnostics
    assert (finding.rule, finding.hint) == (
        "partition-unused",
        "write def main(partition: str, ...), unless each slice is meant to hold everything",
    )


WRITER = (
    '# pipeline\n# partitioned daily\nimport penstock\nBASE = "exports"\n'
    'U = f"{BASE}/" + "{partition}/x.json"\n'
    "def main(partition: str) -> None:\n"
    '    penstock.lake("main").write_file(U, b"{}")\n'
)


@pytest.mark.parametrize(
    "header_and_path",
    [
        ("partitioned daily", "'exports/' || '{partition}' || '/x.json'"),
        ("partitioned monthly", "'./exports/' || '{partition}' || '-*/x.json'"),
        ("tag whole", "'exports/*/x.json'"),
        ("tag whole", "['other.json', 'exports/2026-01-01/x.json']"),
        ("tag whole", "'exports'"),
    ],
)
def test_a_query_comes_after_the_step_that_writes_its_file(
    tmp_path: Path, header_and_path: tuple[str, str]
) -> None:
    header, path = header_and_path
    reader = f"-- {header}\n-- materialize ducklake://main/a\nSELECT * FROM read_json({path})"
    loaded = load(
        tmp_path,
        WRITER,
        "z",
        models__a=reader,
        models__b="-- materialize ducklake://main/b\nSELECT 1",
    )
    assert not loaded.errors
    assert Graph.of(loaded.models).parents == {"a": ("z",), "b": (), "z": ()}


def test_s3_files_of_queries_and_on_lines(tmp_path: Path) -> None:
    text = WRITER.replace('"exports"', '"s3://lake/raw"')
    reader = "-- materialize ducklake://main/a\nSELECT * FROM read_json('s3a://lake/raw/1/x.json')"
    on = "-- on s3://lake/raw/{partition}/x.json\n-- materialize ducklake://main/b\nSELECT 1 AS n"
    loaded = load(tmp_path, text, "z", models__a=reader, models__b=on)
    assert Graph.of(loaded.models).order() == ("z", "a", "b")
    assert not [finding for finding in loaded.diagnostics if finding.rule == "idle"]


def test_a_test_reads_a_file_where_that_closes_no_circle(tmp_path: Path) -> None:
    reader = "-- materialize ducklake://main/a\n-- data_test tests/same\nSELECT 1 AS n"
    same = "SELECT * FROM read_json('exports/*/x.json')"
    loaded = load(tmp_path, WRITER, "z", models__a=reader, tests__same=same)
    assert Graph.of(loaded.models).parents == {"a": ("z",), "z": ()}
    after = WRITER.replace("import penstock", "# on ducklake://main/a\nimport penstock")
    loaded = load(tmp_path, after, "z", models__a=reader, tests__same=same)
    assert Graph.of(loaded.models).parents == {"a": (), "z": ("a",)}


def test_a_circle_through_a_file_is_an_error(tmp_path: Path) -> None:
    text = WRITER.replace("import penstock", "# on ducklake://main/a\nimport penstock")
    reader = "-- partitioned daily\n-- materialize ducklake://main/a\n"
    reader += "SELECT * FROM read_json('exports/' || '{partition}' || '/x.json')"
    (found,) = load(tmp_path, text, "z", models__a=reader).errors
    assert found.rule == "cycle"
    assert Path(found.location.path).name == "a.sql"


def test_a_step_by_time_has_no_one_slice(tmp_path: Path) -> None:
    header = "# partitioned daily\n# materialize ducklake://main/t time=d\n"
    (found,) = load(tmp_path, f"{header}def main(partition: str): ...\n").errors
    assert found.message.startswith("a parameter partition has no value in a step with `time=`")
    assert found.location.line == 3
