"""Clusters of processes on this machine: a standalone one with workers, and a Connect server.

Started by the programs of PySpark's own wheel, on loopback and free ports.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

_HOST = "127.0.0.1"
_MASTER = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED = re.compile(r"(Successfully registered) with master")
_CONNECT = re.compile(r"Spark Connect server started at: \S*?:(\d+)")
_SECONDS = 90  # that a start may take on a busy machine


def _home() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent


@contextmanager
def _running(
    command: Sequence[str], log: Path, ready: re.Pattern[str], environ: Mapping[str, str]
) -> Iterator[str]:
    """Run a program until the block ends; yields what its log says when it is ready."""
    with log.open("w") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env={**os.environ, **environ}
        )
    try:
        yield _wait(process, log, ready)
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(process: subprocess.Popen[bytes], log: Path, ready: re.Pattern[str]) -> str:
    until = time.monotonic() + _SECONDS
    while time.monotonic() < until:
        found = ready.search(log.read_text())
        if found:
            return found[1]
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise RuntimeError(f"{log.stem} is not ready:\n{log.read_text()[-2000:]}")


@contextmanager
def standalone(folder: Path, workers: int = 2) -> Iterator[str]:
    """The address of a master, ``spark://...``, with workers of one core and 1 GB each."""
    spark_class = str(_home() / "bin" / "spark-class")
    environ = {"SPARK_LOCAL_IP": _HOST, "SPARK_DAEMON_MEMORY": "256m"}
    quiet = ("--host", _HOST, "--webui-port", "0")
    master = [spark_class, "org.apache.spark.deploy.master.Master", *quiet, "--port", "0"]
    with ExitStack() as running:
        address = running.enter_context(_running(master, folder / "master.log", _MASTER, environ))
        for number in range(workers):
            work = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"work{number}"))
            worker = [spark_class, "org.apache.spark.deploy.worker.Worker", *quiet, *work, address]
            log = folder / f"worker{number}.log"
            running.enter_context(_running(worker, log, _REGISTERED, environ))
        yield address


@contextmanager
def connect_server(folder: Path, token: str, conf: Mapping[str, str]) -> Iterator[str]:
    """The address of a Connect server, ``sc://...``, that asks for a token."""
    settings = {
        "spark.connect.grpc.binding.address": _HOST,
        "spark.connect.grpc.binding.port": "0",
        "spark.ui.enabled": "false",
        **conf,
    }
    options = [text for key, value in settings.items() for text in ("--conf", f"{key}={value}")]
    name = "org.apache.spark.sql.connect.service.SparkConnectServer"
    submit = str(_home() / "bin" / "spark-submit")
    command = [submit, "--class", name, "--master", "local[2]", *options, "spark-internal"]
    environ = {"SPARK_LOCAL_IP": _HOST, "SPARK_CONNECT_AUTHENTICATE_TOKEN": token}
    with _running(command, folder / "connect.log", _CONNECT, environ) as port:
        yield f"sc://localhost:{port}"  # by no other name does a client with a token go without TLS
