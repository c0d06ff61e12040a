"""A server program that speaks S3, on loopback: S3Proxy over a directory, in a process of its own.

``scripts/s3-jars.sh DIRECTORY`` fetches it, and ``PENSTOCK_TEST_S3`` names that directory; without
it what needs the server is skipped.
"""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import duckdb
import pytest
from pyarrow import fs

from tests import duck

BUCKET, KEY, SECRET = "lake", "penstock", "penstock-secret"
_STARTED = re.compile(r"Started [^\n]*\{127\.0\.0\.1:(\d+)\}")
_CONFIG = """
s3proxy.authorization=aws-v2-or-v4
s3proxy.identity={key}
s3proxy.credential={secret}
s3proxy.endpoint=http://127.0.0.1:0
jclouds.provider=filesystem-nio2
jclouds.filesystem.basedir={data}
"""


def jars() -> Path | None:
    """Where the jars are; ``None`` where these tests are not asked for."""
    given = os.environ.get("PENSTOCK_TEST_S3")
    return Path(given) if given else None


def spark_jars() -> list[str]:
    found = jars()
    return [] if found is None else sorted(map(str, (found / "spark").glob("*.jar")))


@contextmanager
def server(folder: Path, bucket: str = BUCKET) -> Iterator[dict[str, object]]:
    """What `Lake.attach` takes as ``storage`` for a server with this bucket.

    Spark keeps what it opened by the bucket's name: two servers of one session need two names.
    """
    found = jars()
    if found is None:
        pytest.skip("S3 is tested when PENSTOCK_TEST_S3 is what scripts/s3-jars.sh filled")
    (folder / "data").mkdir()
    config, log = folder / "s3.conf", folder / "s3.log"
    config.write_text(_CONFIG.format(key=KEY, secret=SECRET, data=folder / "data"))
    (program,) = (found / "server").glob("*.jar")
    command = ["java", "-jar", str(program), "--properties", str(config)]
    with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=output) as job:
        try:
            port = _port(job, log)
            _make_bucket(port, bucket)
            yield {
                "access_key": KEY,
                "secret_key": SECRET,
                "region": "us-east-1",
                "endpoint": f"http://127.0.0.1:{port}",
                "path_style": True,
            }
        finally:
            job.terminate()


@contextmanager
def duckdb_on(uri: str, store: dict[str, object]) -> Iterator[duckdb.DuckDBPyConnection | None]:
    """The real DuckDB with this lake attached as ``lk``, its files read with httpfs.

    ``None`` where that extension is not installed: it is in no extra of ours.
    """
    try:
        package = importlib.import_module("duckdb_extension_httpfs")
    except ImportError:
        yield None
        return
    folder = Path(package.__path__[0]) / "extensions" / f"v{duckdb.__version__}"
    with closing(duck.connect()) as con:
        con.execute(f"LOAD '{folder / 'httpfs'}.duckdb_extension'")
        host = str(store["endpoint"]).removeprefix("http://")
        con.execute(
            f"CREATE SECRET (TYPE s3, KEY_ID '{KEY}', SECRET '{SECRET}', REGION 'us-east-1', "
            f"ENDPOINT '{host}', USE_SSL false, URL_STYLE 'path')"
        )
        con.execute(f"ATTACH '{uri}' AS lk")
        yield con


def _port(job: subprocess.Popen[bytes], log: Path) -> int:
    for _ in range(600):
        if match := _STARTED.search(log.read_text(errors="replace")):
            return int(match[1])
        assert job.poll() is None, log.read_text(errors="replace")[-2000:]
        time.sleep(0.1)
    raise AssertionError("the server did not start in a minute")


def _make_bucket(port: int, bucket: str) -> None:
    fs.S3FileSystem(
        access_key=KEY,
        secret_key=SECRET,
        endpoint_override=f"127.0.0.1:{port}",
        scheme="http",
        region="us-east-1",
        allow_bucket_creation=True,
    ).create_dir(bucket)
