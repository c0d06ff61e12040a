"""Hints about commands and penstock.toml. Each row: what is wrong, its hint, what that leads to."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from penstock.cli.main import main
from penstock.errors import ConfigError
from penstock.settings.config import load_settings
from tests.engine.toy import write_project

LAKE = '[lakes.main]\ncatalog = "sqlite:m"\ndata_path = "d"\n'
CONFIGS = (
    (LAKE + '[project]\nnme = "x"', "did you mean 'name'?", LAKE + '[project]\nname = "x"'),
    (LAKE.replace("data_path", "datapath"), "did you mean 'data_path'?", LAKE),
    (LAKE.replace("lakes", "lake"), "did you mean 'lakes'?", LAKE),
    (
        "",
        'catalog = "sqlite:lake/meta.sqlite" and data_path = "lake/data"',
        '[lakes.main]\ncatalog = "sqlite:lake/meta.sqlite"\ndata_path = "lake/data"',
    ),
    (LAKE + "[run]\njob = 2", "did you mean 'jobs'?", LAKE + "[run]\njobs = 2"),
    (LAKE + '[spark]\nmaster = "lokal"', "local[4]", LAKE + '[spark]\nmaster = "local[4]"'),
    (LAKE + '[python]\ntimeout = "soon"', '"10m"', LAKE + '[python]\ntimeout = "10m"'),
    (
        LAKE + '[spark.conf]\nspark.ui.enabled = "true"',
        'quote the whole name: "spark.',
        LAKE + '[spark.conf]\n"spark.ui.enabled" = "true"',
    ),
)
COMMANDS = (
    ("chek", "'check'", "check"),
    ("plan --partion 2026-01-01", "'--partition'", "plan --partition 2026-01-01"),
    ("status day", "did you mean 'days'?", "status days"),
    ("plan --select dys", "did you mean 'days'?", "plan --select days"),
    ("plan --arg n", "--arg carrier=UA", "plan --arg n=1"),
    ("plan --arg m=1", "declared: n", "plan --arg n=1"),
    ("plan --payload x", '--payload \'{"region": "eu"}\'', 'plan --payload \'{"n": "1"}\''),
    ("plan --partition 01.02.2026", "2026-05-16", "plan --partition 2026-05-16"),
    (
        "plan --all",
        "--from 2026-01-01 --to 2026-01-31 --all",
        "plan --from 2026-01-01 --to 2026-01-31 --all",
    ),
    ("plan --from 2026-02-01 --to 2026-01-01", "earlier", "plan --from 2026-01-01 --to 2026-02-01"),
    ("plan --to 2026-01-03", "--from 2026-01-01", "plan --from 2026-01-01 --to 2026-01-03"),
    ("plan --full-refresh", "penstock run MODEL --full-refresh", "plan days --full-refresh"),
    ("snapshots --lake maim", "did you mean 'main'?", "snapshots --lake main"),
    ("show days --tests --as model", "keep one of them", "show days --as annotations"),
    ("show days --failed", "add --tests", "show days --tests --failed"),
    ("lineage dys", "did you mean 'days'?", "lineage days"),
    ("lineage days.dya", "did you mean", "lineage days.day"),
    ("ls", "Write `penstock status`", "status"),
    ("plan --date 2026-01-01", "'--partition'", "plan --partition 2026-01-01"),
    (
        "why days 2026-01-01 --partition 2026-01-02",
        "penstock why days 2026-01-01",
        "why days 2026-01-01",
    ),
    ("init p --example flight", "flights", "init q --example flights"),
)
DAYS = """
-- pipeline
-- partitioned daily
-- materialize ducklake://main/days
-- $n (int) = 1
SELECT '{partition}' AS day, $n AS n
"""


@pytest.mark.parametrize(("wrong", "hint", "right"), CONFIGS)
def test_the_settings_as_hinted_are_read(wrong: str, hint: str, right: str, tmp_path: Path) -> None:
    path = tmp_path / "penstock.toml"
    path.write_text(wrong)
    with pytest.raises(ConfigError) as caught:
        load_settings(tmp_path)
    assert hint in str(caught.value.hint)
    path.write_text(right)
    load_settings(tmp_path)


@pytest.mark.parametrize(("wrong", "hint", "right"), COMMANDS, ids=[case[0] for case in COMMANDS])
def test_the_command_as_hinted_works(
    wrong: str, hint: str, right: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(write_project(tmp_path / "p", {"models/days": DAYS}))
    refused = command(wrong)
    assert (refused.exit_code, hint in refused.stderr) == (2, True), refused.stderr
    done = command(right)
    assert done.exit_code == 0, done.output


def command(line: str) -> Result:
    return CliRunner().invoke(main, shlex.split(line))
