"""A Kafka broker on loopback, in a process of its own, with its files in a directory.

``scripts/kafka-jars.sh DIRECTORY`` fetches it, and ``PENSTOCK_TEST_KAFKA`` names that directory.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_ID = "AAAAAAAAQACAAAAAAAAAAQ"  # a UUID as Kafka writes it
_CONFIG = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={folder}/data
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
num.partitions=2
"""


class Broker:
    """A broker that is started and stopped; what it has stays in its directory."""

    def __init__(self, folder: Path) -> None:
        given = os.environ.get("PENSTOCK_TEST_KAFKA")
        if not given:
            pytest.skip("Kafka needs PENSTOCK_TEST_KAFKA, what scripts/kafka-jars.sh filled")
        self._java = ("java", "-Xmx256m", "-cp", f"{given}/*")
        self._log, self._config = folder / "kafka.log", folder / "kafka.properties"
        self._process: subprocess.Popen[bytes] | None = None
        self.port, controller = _free_port(), _free_port()
        text = _CONFIG.format(port=self.port, controller=controller, folder=folder)
        self._config.write_text(text)
        formatting = ("kafka.tools.StorageTool", "format", "-t", _ID, "-c", str(self._config))
        with self._log.open("ab") as output:
            subprocess.run([*self._java, *formatting], check=True, stdout=output, stderr=output)

    @property
    def servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        command = [*self._java, "kafka.Kafka", str(self._config)]
        before = self._log.stat().st_size
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=output)
        for _ in range(600):
            if b"Kafka Server started" in self._log.read_bytes()[before:]:
                return
            assert self._process.poll() is None, self._log.read_text()[-2000:]
            time.sleep(0.1)
        raise AssertionError("the broker did not start in a minute")

    def stop(self) -> None:
        """Stop it."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(60)


@contextmanager
def running(folder: Path) -> Iterator[Broker]:
    """A broker that is up inside the block."""
    broker = Broker(folder)
    broker.start()
    try:
        yield broker
    finally:
        broker.stop()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
