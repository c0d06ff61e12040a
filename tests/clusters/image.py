"""The container image of docs/clusters.md, by hand: built and run as users do.

    PENSTOCK_TEST_S3=DIRECTORY python -m tests.clusters.image [--days N] [--podman PROGRAM]

Runs the flights example in it with its catalog on PostgreSQL and its files in S3; every table must
be what this machine makes. ``--podman`` is Podman or Docker, with options of its own; ``--flags``
are those of ``run``.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests import postgres, s3
from tests.clusters.flights import DAYS, ROOT, STORE, contents, make_project, penstock

_IMAGE = "penstock-test"
_CONTAINERFILE = re.compile(r"```dockerfile\n(# Containerfile\n.*?)```", re.DOTALL)
_SPARK = """
[environments.prod.spark]
conf."spark.jars" = "${JARS:-/opt/jars/*.jar}"
"""


def build(podman: Sequence[str], project: Path) -> None:
    found = _CONTAINERFILE.search((ROOT / "docs" / "clusters.md").read_text())
    assert found is not None, "docs/clusters.md has no Containerfile"
    (project / "Containerfile").write_text(found[1])
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps")
    subprocess.run([*pip, "--wheel-dir", str(project), str(ROOT)], check=True)
    command = [*podman, "build", "--tag", _IMAGE, "--file", str(project / "Containerfile")]
    subprocess.run([*command, str(project)], check=True)


def run_in_it(command: Sequence[str], environ: Mapping[str, str], days: Sequence[str]) -> None:
    """Run the days, the last one twice: the second time nothing is left to do."""
    given = [text for name, value in environ.items() for text in ("--env", f"{name}={value}")]
    for day in (*days, days[-1]):
        begun = time.monotonic()
        run = ("run", "--env", "prod", "--partition", day)
        subprocess.run([*command, *given, _IMAGE, *run], check=True)
        print(f"image: {day} in {time.monotonic() - begun:.1f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=len(DAYS))
    parser.add_argument("--podman", default="podman", type=shlex.split)
    parser.add_argument("--flags", default="--network host --memory 3g", type=shlex.split)
    parser.add_argument("--built", action="store_true", help="the image is there from before")
    options = parser.parse_args()
    days = DAYS[: options.days]
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        project = make_project(folder / "shop", STORE.format("prod") + _SPARK)
        if not options.built:
            build(options.podman, project)
        for day in days:
            penstock(project, "default", "run", "--partition", day)
        expected = contents(project, "default")
        with postgres.server() as server, s3.server(folder) as store:
            socket = dict(pair.split("=", 1) for pair in shlex.split(server))["host"]
            Path(socket).chmod(0o755)  # the container's user is another one
            environ = {
                "POSTGRES": server,
                "S3_ENDPOINT": str(store["endpoint"]),
                "S3_KEY": s3.KEY,
                "S3_SECRET": s3.SECRET,
            }
            run = [*options.podman, "run", "--rm", "--volume", f"{socket}:{socket}"]
            run_in_it([*run, *options.flags], environ, days)
            found = contents(project, "prod", {**environ, "JARS": ",".join(s3.spark_jars())})
    assert found == expected, f"image: {found}\nthis machine: {expected}"
    print(f"image: the same {len(expected['rows'])} tables", flush=True)


if __name__ == "__main__":
    main()
