"""Download the jars of S3A for Spark with the script of the package."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from penstock.errors import ArgumentError, EnvironmentMissing

_SCRIPT = Path(__file__).with_name("s3-jars.sh")
_NO_MAVEN = 2  # the script's exit code
_LINES = 5
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")  # which Maven resets even where it writes none
_ADVICE = "[ERROR] To see the full stack trace"  # how Maven's advice begins, after the cause


def download_s3_jars(directory: Path) -> list[str]:
    """Fill ``directory`` with the jars, by Maven; returns their names.

    Raises EnvironmentMissing without Maven, and ArgumentError with what it says when it fails.
    """
    try:
        done = subprocess.run(
            ["sh", str(_SCRIPT), str(directory)], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise EnvironmentMissing(
            "there is no `sh` to run the script that downloads the jars",
            hint=f"download what {_SCRIPT} names, and set spark.jars to it",
        ) from None
    if done.returncode == _NO_MAVEN:
        raise EnvironmentMissing(
            "Maven (`mvn`) downloads the jars, and is not on PATH",
            hint="install it (apt install maven, brew install maven)",
        )
    if done.returncode != 0:
        said = "\n".join(islice(_causes(f"{done.stderr}\n{done.stdout}"), _LINES))
        raise ArgumentError(
            f"the jars could not be downloaded:\n{said}",
            hint=f"see that {directory} can be written and that Maven reaches a repository",
        )
    return sorted(path.name for path in directory.glob("*.jar"))


def _causes(output: str) -> Iterator[str]:
    """Yield the lines that say why: Maven writes errors to its output, and what to read last."""
    for line in _COLOURS.sub("", output).splitlines():
        if line.startswith(_ADVICE):
            return
        if line.removeprefix("[ERROR]").strip():
            yield line
