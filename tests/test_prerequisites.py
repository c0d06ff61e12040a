"""What `make` checks before it installs anything: Java 17+, Python 3.11+."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "prerequisites.sh"


def java_home(directory: Path, says: str, code: int = 0) -> Path:
    """A JAVA_HOME whose java answers ``says``."""
    java = directory / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit {code}\n")
    java.chmod(0o755)
    return directory


def check(home: Path, python: str = sys.executable) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "JAVA_HOME": str(home), "PYTHON": python}
    return subprocess.run(["sh", SCRIPT], env=environ, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("version", ["17.0.15", "21", "25-ea", "17.0.2+8"])
def test_a_java_new_enough_passes(version: str, tmp_path: Path) -> None:
    done = check(java_home(tmp_path, f'openjdk version "{version}" 2025-04-15'))
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == sys.executable


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.2", "16"])
def test_an_old_java_is_one_message_with_what_to_install(version: str, tmp_path: Path) -> None:
    done = check(java_home(tmp_path, f'openjdk version "{version}"'))
    assert done.returncode == 2
    assert f"is version {version}" in done.stderr
    assert "apt-get install openjdk-17-jre-headless" in done.stderr


def test_a_java_that_only_says_there_is_none_counts_as_missing(tmp_path: Path) -> None:
    done = check(java_home(tmp_path, "Unable to locate a Java Runtime.", code=1))
    assert done.returncode == 2
    assert "does not run" in done.stderr


def test_no_java_at_all(tmp_path: Path) -> None:
    assert check(tmp_path).returncode == 2


def test_no_python_new_enough(tmp_path: Path) -> None:
    done = check(java_home(tmp_path, 'openjdk version "17"'), python="no-such-python")
    assert done.returncode == 2
    assert "Penstock needs Python 3.11" in done.stderr
