"""`make`: its targets explain themselves, and what it installs is pinned and announced."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from penstock.distribution import NAME

ROOT = Path(__file__).parents[1]
PYTHON = """#!/bin/sh
# For `-m venv VENV` an environment with this program in it, for `-m pip` what {says} says.
case "$*" in
*venv*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
*pip*) cat '{says}'; exit {code} ;;
esac
"""


def test_help_explains_every_target() -> None:
    targets = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.M)
    said = subprocess.run(
        ["make", "--no-print-directory", "help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert targets
    explained = dict(line.split(maxsplit=2)[1:] for line in said.stdout.splitlines())
    assert set(explained) == set(targets[1].split()) - {"prerequisites"}


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = (line.split("==") for line in lines if not line.startswith("#"))
    return {canonicalize_name(name): version for name, version in pinned}


def test_every_dependency_is_pinned_within_its_range() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    wanted = [Requirement(text) for texts in (project["dependencies"], *extras) for text in texts]
    wrong = [
        str(requirement)
        for requirement in wanted
        if requirement.name != NAME
        and not requirement.specifier.contains(pins().get(requirement.name, "0"))
    ]
    assert wrong == [], "run `make lock`"


@pytest.mark.parametrize("code", [0, 3])
def test_an_installation_says_what_it_downloads_and_ends_as_pip_does(
    tmp_path: Path, code: int
) -> None:
    says, python = tmp_path / "says", tmp_path / "python"
    says.write_text(
        "Collecting click\n  Downloading click-8.5.1-py3-none-any.whl (126 kB)\n"
        "  Downloading pyspark-4.3.0.tar.gz (434.1 MB)\n"
        "  Building wheel for pyspark (pyproject.toml): started\n"
        "Installing collected packages: py4j, pyspark\n"
    )
    python.write_text(PYTHON.format(says=says, code=code))
    python.chmod(0o755)
    done = subprocess.run(
        ["sh", ROOT / "scripts" / "install.sh", tmp_path / "venv", "penstock"],
        env={**os.environ, "PYTHON": str(python)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    steps = [line.strip() for line in done.stdout.splitlines() if line.startswith("  ")]
    assert steps == [
        "downloading pyspark-4.3.0 (434.1 MB)",
        "building pyspark",
        "unpacking 2 packages",
    ]
    assert ("Installed in" in done.stdout) == (code == 0)
