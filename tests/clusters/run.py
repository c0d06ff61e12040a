"""The flights example on clusters, by hand: what each makes must be what this machine makes.

    PENSTOCK_TEST_S3=DIRECTORY python -m tests.clusters.run [--days N] [standalone|connect|store]

``standalone`` is a master with two workers, ``connect`` a Connect server that asks for a token (and
refuses another one), ``store`` a standalone cluster with its catalog on PostgreSQL and its files in
S3. Without a name all of them; three days, without ``--days``.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests import postgres, s3
from tests.clusters.flights import DAYS, STORE, contents, make_project, penstock
from tests.clusters.processes import connect_server, standalone

_LAKE = """
[environments.{0}.lakes.main]
catalog = "sqlite:{0}/meta.sqlite"
data_path = "{0}/data"
"""
_CLUSTER = """
[environments.{0}.spark]
master = "${{CLUSTER}}"
conf."spark.driver.host" = "127.0.0.1"
conf."spark.executor.memory" = "700m"
conf."spark.jars" = "${{JARS:-}}"
"""
_CONNECT = """
[environments.connect.spark]
master = "${CLUSTER}"
"""
_ENVIRONMENTS = (
    *(_LAKE.format("standalone"), _CLUSTER.format("standalone")),
    *(_LAKE.format("connect"), _CONNECT),
    *(STORE.format("store"), _CLUSTER.format("store")),
)


def run_days(project: Path, environment: str, environ: Mapping[str, str] | None = None) -> Any:
    """Run the days; returns what the tables hold then."""
    for day in DAYS[: _options().days]:
        begun = time.monotonic()
        penstock(project, environment, "run", "--partition", day, environ=environ)
        print(f"{environment}: {day} in {time.monotonic() - begun:.1f} s", flush=True)
    return contents(project, environment, environ)


def on_standalone(project: Path, folder: Path) -> Any:
    with standalone(folder) as address:
        return run_days(project, "standalone", {"CLUSTER": address})


def on_connect(project: Path, folder: Path) -> Any:
    conf = {"spark.sql.session.timeZone": "UTC", "spark.driver.memory": "1g"}
    with connect_server(folder, "open-sesame", conf) as address:
        wrong = {"CLUSTER": address, "SPARK_CONNECT_AUTHENTICATE_TOKEN": "guessed"}
        try:
            penstock(project, "connect", "run", "--partition", DAYS[0], environ=wrong)
        except RuntimeError as error:
            print(f"connect: a wrong token is refused: {str(error)[-600:]}")
        else:
            raise AssertionError("a wrong token was taken")
        right = {"CLUSTER": address, "SPARK_CONNECT_AUTHENTICATE_TOKEN": "open-sesame"}
        return run_days(project, "connect", right)


def on_store(project: Path, folder: Path) -> Any:
    with postgres.server() as server, s3.server(folder) as store, standalone(folder) as address:
        environ = {
            "CLUSTER": address,
            "JARS": ",".join(s3.spark_jars()),
            "POSTGRES": server,
            "S3_ENDPOINT": str(store["endpoint"]),
            "S3_KEY": s3.KEY,
            "S3_SECRET": s3.SECRET,
        }
        return run_days(project, "store", environ)


CLUSTERS: Mapping[str, Callable[[Path, Path], Any]] = {
    "standalone": on_standalone,
    "connect": on_connect,
    "store": on_store,
}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--days", type=int, default=len(DAYS))
    parser.add_argument("clusters", nargs="*", default=list(CLUSTERS))
    return parser.parse_args()


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        project = make_project(folder / "shop", "".join(_ENVIRONMENTS))
        expected = run_days(project, "default")
        for name in _options().clusters:
            (folder / name).mkdir()
            found = CLUSTERS[name](project, folder / name)
            assert found == expected, f"{name}: {found}\nthis machine: {expected}"
            print(f"{name}: the same {len(expected['rows'])} tables", flush=True)


if __name__ == "__main__":
    main()
