"""Download the jars of S3A for Spark with the script of the package."""

from __future__ import annotations

import subprocess
from pathlib import Path

from penstock.errors import ArgumentError, EnvironmentMissing

_SCRIPT = Path(__file__).with_name("s3-jars.sh")
_NO_MAVEN = 2  # the script's exit code
_LINES = 5  # of Maven's, which says why at its end


def download_s3_jars(directory: Path) -> list[str]:
    """Fill ``directory`` with the jars, by Maven; returns their names.

    Raises EnvironmentMissing without Maven, and ArgumentError with its last lines when it fails.
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
        last = "\n".join((done.stderr or done.stdout).strip().splitlines()[-_LINES:])
        raise ArgumentError(
            f"the jars could not be downloaded:\n{last}",
            hint=f"see that {directory} can be written and that Maven reaches a repository",
        )
    return sorted(path.name for path in directory.glob("*.jar"))
