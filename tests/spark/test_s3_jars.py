"""Jars for S3: what is downloaded, by a program that stands in for Maven, and who has none.

Also of ``cli/s3_jars.py``.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from penstock.cli.main import main
from penstock.errors import ArgumentError, EnvironmentMissing
from penstock.spark.s3_jars import _SCRIPT, download_s3_jars

MAVEN = """#!/bin/sh
for option; do case "$option" in -DoutputDirectory=*) to="${option#*=}" ;; esac; done
echo jar > "$to/hadoop-aws-3.5.0.jar"
"""


def maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str = MAVEN) -> None:
    """Put a program on PATH that is called as Maven is."""
    program = tmp_path / "bin" / "mvn"
    program.parent.mkdir()
    program.write_text(script)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")


def test_the_jars_are_in_the_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    maven(tmp_path, monkeypatch)
    assert download_s3_jars(tmp_path / "jars") == ["hadoop-aws-3.5.0.jar"]


def test_without_maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("sh", "dirname", "mkdir", "mktemp", "rm", "cat"):
        (tmp_path / name).symlink_to(f"/usr/bin/{name}")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentMissing, match="Maven"):
        download_s3_jars(tmp_path / "jars")


MAVEN_FAILS = """#!/bin/sh
printf '\\033[0m\\033[0m' >&2
printf '\\033[0m[ERROR] No plugin found for prefix dependency\\n[ERROR] \\n'
echo '[ERROR] To see the full stack trace of the errors, re-run Maven with the -e switch.'
exit 1
"""


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("#!/bin/sh\necho 'no route to the store' >&2\nexit 1\n", "no route to the store"),
        (MAVEN_FAILS, "[ERROR] No plugin found for prefix dependency"),
    ],
)
def test_what_maven_says_when_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, said: str
) -> None:
    maven(tmp_path, monkeypatch, script)
    with pytest.raises(ArgumentError) as raised:
        download_s3_jars(tmp_path / "jars")
    assert raised.value.message == f"the jars could not be downloaded:\n{said}"


def test_the_command_says_what_to_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    maven(tmp_path, monkeypatch)
    jars = tmp_path / "jars"
    result = CliRunner().invoke(main, ["s3-jars", str(jars)])
    assert result.stdout == f'1 jar in {jars}\n[spark.conf]\n"spark.jars" = "{jars}/*.jar"\n'
    printed = json.loads(CliRunner().invoke(main, ["s3-jars", str(jars), "--json"]).stdout)
    assert printed == {
        "schema_version": 1,
        "directory": str(jars),
        "jars": ["hadoop-aws-3.5.0.jar"],
        "spark.jars": f"{jars}/*.jar",
    }


def test_the_script_is_a_script() -> None:
    assert subprocess.run(["sh", "-n", _SCRIPT], check=False).returncode == 0
