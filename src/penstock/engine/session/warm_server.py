"""The process of a warm Spark server: ``python -m penstock.engine.session.warm_server``.

It starts Spark with a Connect server in it, says in its file how to reach that, and ends when
nobody has used it for its idle time, when its Java process has ended, or at SIGTERM. Java ends with
this process, however that ends: it reads its input, which closes.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import IO, Any

from penstock.engine.session.warm_files import ServerPlace, ServerRecord, spark_version

_TICK = 1.0  # seconds between two looks at who uses the server
_PLUGIN = "org.apache.spark.sql.connect.SparkConnectPlugin"
_LOCAL = "127.0.0.1"
OCCUPIED = 3  # the exit code of a server that finds another one living at its place
TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"  # in the environment: arguments are seen by all users


def main(source: IO[str]) -> int:
    """Serve until idle. ``source`` has the order as JSON: see `order`. Return the exit code."""
    given = json.load(source)
    place = ServerPlace(Path(given["place"]))
    life = place.hold_server()
    if life is None:
        return OCCUPIED
    stopped = threading.Event()

    def stop(_signal: int, _frame: FrameType | None) -> None:
        stopped.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the user's Ctrl-C is not meant for it
    os.environ[TOKEN] = given["token"]
    with life:
        record = _start(place, given)
        try:
            watch(place, record, given["idle"], stopped.wait)
        finally:
            if place.has_record(record):
                place.remove_record()
        _end()
    return 0


def order(place: ServerPlace, conf: Mapping[str, str], token: str, idle: float) -> str:
    """Return what a server is told at its start, as `main` reads it."""
    return json.dumps({"place": str(place.path), "conf": dict(conf), "token": token, "idle": idle})


def server_conf(conf: Mapping[str, str], place: ServerPlace, port: int) -> dict[str, str]:
    """The configuration of the server: the project's, and what makes it one."""
    plugins = [each for each in (conf.get("spark.plugins"), _PLUGIN) if each]
    return {
        # A relative path in a query is nobody's directory here: nothing is left in one.
        "spark.sql.warehouse.dir": str(place.path / "warehouse"),
        "spark.local.dir": str(place.path / "local"),
        # What a client leaves that was killed ends soon; a session that is open stays.
        "spark.connect.execute.manager.detachedTimeout": "30s",
        "spark.connect.session.manager.defaultSessionTimeout": "24h",
        **conf,
        "spark.plugins": ",".join(plugins),
        "spark.connect.grpc.binding.address": _LOCAL,
        "spark.connect.grpc.binding.port": str(port),
    }


def _start(place: ServerPlace, given: Mapping[str, Any]) -> ServerRecord:
    """Start Spark and say how to reach it. Raises what Spark raises, for the log."""
    from pyspark.sql import SparkSession

    port = free_port()
    builder = SparkSession.builder.appName("penstock-warm")
    for key, value in server_conf(given["conf"], place, port).items():
        builder = builder.config(key, value)
    builder.getOrCreate()
    record = ServerRecord(
        pid=os.getpid(),
        port=port,
        token=given["token"],
        started=time.time(),
        spark=spark_version(),
        master=given["conf"].get("spark.master", ""),
        memory=given["conf"].get("spark.driver.memory", ""),
    )
    place.write_record(record)
    return record


def _end() -> None:
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    if session is not None:
        session.stop()


def free_port() -> int:
    """A port that was free a moment ago: who takes it meanwhile makes this start fail."""
    with socket.socket() as listener:
        listener.bind((_LOCAL, 0))
        port: int = listener.getsockname()[1]
        return port


def answers(port: int, seconds: float = 1.0) -> bool:
    """Return whether something listens at a port of this machine."""
    try:
        with socket.create_connection((_LOCAL, port), seconds):
            return True
    except OSError:
        return False


def watch(
    place: ServerPlace,
    record: ServerRecord,
    idle: float,
    wait: Callable[[float], bool],
    *,
    clock: Callable[[], float] = time.monotonic,
    lives: Callable[[int], bool] = answers,
) -> str:
    """Return why the server ends, as soon as it has to; then nobody can join it any more.

    ``wait`` waits for some seconds and says whether the server is to end at once.
    """
    used = clock()
    while not wait(_TICK):
        if not lives(record.port):
            return "Java has ended"
        with place.alone() as unused:
            if not unused:
                used = clock()
                continue
            if not place.has_record(record):  # the directory is gone: nobody can join
                return "its files are gone"
            if clock() - used >= place.idle(idle):
                place.remove_record()
                return "idle"
    return "stopped"


if __name__ == "__main__":
    sys.exit(main(sys.stdin))
