"""README and the guide tell the truth: their commands run, their files are read, their code works.

A block is run as it stands: ``sh`` line by line, ``python`` with what earlier blocks made, ``sql``
on the ``lake`` that one of these made. The line before a block may say otherwise:
``<!-- not run: why -->``, ``<!-- exit 1 -->``, or ``<!-- file: path -->`` for a block that is
the content of a file of the project.
"""

from __future__ import annotations

import configparser
import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import sqlglot
import yaml
from click import Context
from click.testing import CliRunner
from sqlglot import ErrorLevel

from penstock.cli.main import COMMANDS, main
from penstock.settings.config import load_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[1]
# These begin with nothing; all other pages speak of the flights example with its first day loaded.
FROM_NOTHING = ("docs/environments.md", "docs/getting-started.md", "README.md")
PAGES = ("README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md"))))
FENCE = re.compile(r"(?:<!-- (?P<note>[^\n]*) -->\n)?```(?P<kind>\w*)\n(?P<text>.*?)```\n", re.S)


@dataclass(frozen=True)
class Block:
    kind: str
    text: str
    note: str

    @property
    def is_run(self) -> bool:
        return not self.note.startswith("not run:")

    @property
    def file(self) -> str | None:
        return self.note.removeprefix("file: ") if self.note.startswith("file: ") else None

    @property
    def exit_code(self) -> int:
        return int(self.note.removeprefix("exit ")) if self.note.startswith("exit ") else 0


def blocks(page: str) -> Iterator[Block]:
    for block in FENCE.finditer((ROOT / page).read_text()):
        yield Block(block["kind"], block["text"], block["note"] or "")


def pages_with(*kinds: str) -> list[str]:
    return [p for p in PAGES if any(b.is_run and b.kind in kinds for b in blocks(p))]


@pytest.fixture(scope="module")
def flights(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example with its first day loaded."""
    project = tmp_path_factory.mktemp("docs") / "flights"
    penstock(f"penstock init {project} --example flights")
    penstock(f"penstock run --project {project} --partition 2013-01-01")
    return project


@pytest.mark.spark
@pytest.mark.xdist_group("spark")  # asked for as they run
@pytest.mark.parametrize("page", pages_with("sh", "python"))
def test_page(
    page: str,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.chdir(tmp_path if page in FROM_NOTHING else request.getfixturevalue("flights"))
    written: list[Path] = []
    names: dict[str, Any] = {}
    for block in blocks(page):
        if block.file:
            written.append(Path(block.file).absolute())
            written[-1].parent.mkdir(parents=True, exist_ok=True)
            written[-1].write_text(block.text)
        elif block.is_run and block.kind == "python":
            exec(block.text, names)
        elif block.is_run and block.kind == "sql" and "lake" in names:
            names["lake"].sql(block.text)
        elif block.is_run and block.kind == "sh":
            for line in block.text.splitlines():
                command(line, block.exit_code)
    for path in dict.fromkeys(written):
        path.unlink()


def command(line: str, exit_code: int = 0) -> None:
    """One line of a ``sh`` block."""
    program, *arguments = shlex.split(line)
    if program == "cd":
        os.chdir(arguments[0])
    elif program == "make":
        assert f"\n{arguments[0]}:" in (ROOT / "Makefile").read_text()
    else:
        penstock(line, exit_code)


def penstock(line: str, exit_code: int = 0) -> None:
    program, *arguments = shlex.split(line, comments=True)
    assert program == "penstock", f"{line}: say why it is not run"
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == exit_code, f"{line}\n{result.output}\n{result.exception!r}"


@pytest.mark.parametrize(
    "page",
    [
        *PAGES,
        "CONTRIBUTING.md",
        "SECURITY.md",
        "bench/README.md",
        "docs/adr/README.md",
        "docs/contributing/packages.md",
        "docs/contributing/tests.md",
    ],
)
def test_links_lead_somewhere(page: str) -> None:
    directory = (ROOT / page).parent
    links = re.findall(r"\]\((?!https?:)([^)#\s]+)", (ROOT / page).read_text())
    assert [link for link in links if not (directory / link).exists()] == []


def test_getting_started_shows_the_model_that_init_writes() -> None:
    (shown,) = (
        block.text for block in blocks("docs/getting-started.md") if "order_id," in block.text
    )
    written = ROOT / "src/penstock/cli/template/models/orders.sql"
    assert shown == written.read_text()


def test_every_command_is_in_the_table_of_cli_md() -> None:
    rows = re.findall(r"^\| `penstock ([a-z0-9-]+)", (ROOT / "docs/cli.md").read_text(), re.M)
    assert set(rows) == set(COMMANDS)


def test_the_page_of_packages_names_files_that_exist() -> None:
    page = (ROOT / "docs/contributing/packages.md").read_text()
    _, _, rest = page.partition("## Where is ...?")
    answers = [line for line in rest.partition("\n## ")[0].splitlines() if line.startswith("| ")][
        1:
    ]
    named = [path for line in answers for path in re.findall(r"`([\w/]+(?:\.py|/))`", line)]
    missing = [path for path in named if not (ROOT / "src" / "penstock" / path).exists()]
    assert len(answers) >= 15
    assert missing == []


_CALL = re.compile(r"(?:^|[/ \"])penstock ([a-z][^\"\n|;&>]*)", re.M)


@pytest.mark.parametrize("page", ["nightly.md", "clusters.md"])
def test_examples_for_schedulers_ask_for_what_there_is(page: str) -> None:
    """Cron, systemd, GitHub Actions, Airflow, containers: each command and its options exist."""
    text = (ROOT / "docs" / page).read_text()
    texts = re.findall(r"```.*?```", text.replace("{{ ds }}", "2026-11-01"), re.S)
    found = [shlex.split(line) for block in texts for line in _CALL.findall(block)]
    commands = [line for line in found if line[0] in COMMANDS]
    assert commands
    for name, *rest in commands:
        command = main.get_command(Context(main), name)
        assert command is not None
        command.make_context(name, rest)


def test_the_unit_of_serve_starts_and_stops_it_as_the_page_says(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "serve.md").read_text()
    (unit,) = re.findall(r"```ini\n(.*?)```", text, re.S)
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(unit)
    service = parser["Service"]
    assert (service["KillMode"], service["Restart"]) == ("mixed", "on-failure")
    penstock(f"penstock init {tmp_path / 'shop'}")
    drain = load_settings(tmp_path / "shop").serve.drain_timeout
    assert drain is not None
    assert int(service["TimeoutStopSec"]) > drain
    program, name, *rest = shlex.split(service["ExecStart"])
    command = main.get_command(Context(main), name)
    assert program.endswith("/penstock")
    assert command is not None
    command.make_context(name, rest)


def test_containers_that_serve_ask_for_what_there_is() -> None:
    text = (ROOT / "docs" / "serve.md").read_text()
    lines = [shlex.split(line) for line in text.splitlines() if line.startswith("podman run")]
    assert len(lines) == 2
    for words in lines:
        name, *rest = words[words.index("shop") + 1 :]
        command = main.get_command(Context(main), name)
        assert command is not None
        context = command.make_context(name, rest)
        if name == "serve":
            assert context.params["host"] == "0.0.0.0"
            assert int(words[words.index("--stop-timeout") + 1]) > 60


def test_workflows_are_yaml_and_code_is_python() -> None:
    text = (ROOT / "docs" / "nightly.md").read_text()
    (workflow,) = (yaml.safe_load(each) for each in re.findall(r"```yaml\n(.*?)```", text, re.S))
    assert [step["run"] for step in workflow["jobs"]["models"]["steps"] if "run" in step]
    for code in re.findall(r"```python\n(.*?)```", text, re.S):
        compile(code, "nightly.md", "exec")


def test_sqlglot_writes_what_the_page_shows() -> None:
    """A version that writes another form asks for a look at the page."""
    page = (ROOT / "docs/from-sqlmesh.md").read_text().partition("## SQL that sqlglot")[2]
    rows = re.findall(r"^\| (\w+) \| `(.+?)` \| `(.+?)` \|", page, re.M)
    assert len(rows) == 8
    for dialect, form, written in rows:
        query = f"SELECT x FROM t {form}" if "JOIN" in form else f"SELECT {form} FROM t"
        (text,) = sqlglot.transpile(query, dialect, "spark", unsupported_level=ErrorLevel.IGNORE)
        assert written in text


def test_values_of_what_sqlglot_writes(spark: SparkSession) -> None:
    """As the page shows them, of a Monday and of 1 and 2."""
    cut = "CAST(DATE_FORMAT(d, 'yyyy-MM-dd HH:mm:ss') AS VARCHAR(10))"
    days = f"DAYOFWEEK(d), EXTRACT(DOW FROM d), ((DAYOFWEEK(d) % 7) + 1), {cut}"
    (row,) = spark.sql(f"SELECT {days} FROM VALUES (DATE '2026-01-05') AS t (d)").collect()
    assert tuple(row) == (2, 2, 3, "2026-01-05 00:00:00")
    numbers = "FROM VALUES (array(1, 2)) AS t (l) LATERAL VIEW POSEXPLODE(l) u AS n, x"
    (row,) = spark.sql(f"SELECT min(n), PERCENTILE_APPROX(x, 0.5) {numbers}").collect()
    assert tuple(row) == (0, 1)
