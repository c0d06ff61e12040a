"""DuckDB in a process of its own: the version that the tests use, and 1.4.4, which writes 0.3.

Its process is apart because two DuckDBs do not fit into one, because its SQLite and Python's undo
each other's locks, and because a crash of the extension should fail one script and not the run.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

VARIABLE = "PENSTOCK_TEST_DUCKDB_1_4"
_ROOT = Path(__file__).resolve().parents[1]
_SERVER = Path(__file__).with_name("duckdb_server.py")
_TIMEOUT = 60.0  # seconds; a statement of these scripts takes a fraction of one


class DuckDBError(Exception):
    """What DuckDB said to a statement."""


class DuckDBGone(DuckDBError):
    """The process ended, or did not answer in time."""


@dataclass(frozen=True)
class Result:
    """``types`` are DuckDB's own names of the columns' types."""

    table: pa.Table
    types: tuple[str, ...]


def python(version: str) -> Path | None:
    """The interpreter that has DuckDB ``version``, or ``None`` where there is none."""
    if version != "1.4.4":
        return Path(sys.executable)
    given = os.environ.get(VARIABLE)
    places = [Path(given)] if given else [_ROOT / ".venv-duckdb-1.4" / "bin" / "python"]
    return next((place for place in places if place.exists()), None)


def why_not(version: str) -> str | None:
    if python(version) is None:
        return f"no DuckDB {version}: run `make duckdb-1.4`, or set {VARIABLE} to a Python with it"
    return None


class DuckDBProcess:
    """A server of one version. It is started when first asked and again after it has crashed."""

    def __init__(self, version: str) -> None:
        self.version = version
        self._process: subprocess.Popen[bytes] | None = None
        self._read = bytearray()

    def renew(self) -> None:
        """A connection without anything attached; in a new process where the old cannot."""
        try:
            self._ask("renew")
        except DuckDBError:
            self.close()
            self._ask("renew")

    def execute(self, sql: str) -> int:
        """How many rows the statement gave. Raises DuckDBError."""
        return int(self._ask("execute", sql)[0]["rows"])

    def query(self, sql: str) -> Result:
        head, body = self._ask("query", sql)
        return Result(pa.ipc.open_stream(body).read_all(), tuple(head["types"]))

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        table = self.query(sql).table
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            assert process.stdin is not None
            assert process.stdout is not None
            process.kill()
            process.wait()
            process.stdin.close()
            process.stdout.close()

    def _start(self) -> subprocess.Popen[bytes]:
        interpreter = python(self.version)
        assert interpreter is not None, why_not(self.version)
        packages = str(Path(pa.__file__).parents[1])
        environment = {**os.environ, "TZ": "UTC"}
        self._read.clear()
        return subprocess.Popen(
            [str(interpreter), str(_SERVER), packages],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # the stack of a crash
            env=environment,
        )

    def _ask(self, do: str, sql: str = "") -> tuple[dict[str, Any], bytes]:
        if self._process is None:
            self._process = self._start()
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"do": do, "sql": sql}).encode() + b"\n")
            self._process.stdin.flush()
            head = json.loads(self._line())
            body = self._bytes(head["bytes"])
        except (BrokenPipeError, EOFError, TimeoutError) as error:
            self.close()
            raise DuckDBGone(
                f"DuckDB {self.version} crashed or hung ({error!r}) at: {sql}"
            ) from None
        if "error" in head:
            raise DuckDBError(head["error"])
        return head, body

    def _line(self) -> bytes:
        while (end := self._read.find(b"\n")) < 0:
            self._more()
        return self._take(end + 1)

    def _bytes(self, count: int) -> bytes:
        while len(self._read) < count:
            self._more()
        return self._take(count)

    def _take(self, count: int) -> bytes:
        found = bytes(self._read[:count])
        del self._read[:count]
        return found

    def _more(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        pipe = self._process.stdout.fileno()
        deadline = time.monotonic() + _TIMEOUT
        ready: Sequence[int] = select.select([pipe], [], [], deadline - time.monotonic())[0]
        if not ready:
            raise TimeoutError
        part = os.read(pipe, 1 << 20)
        if not part:
            raise EOFError
        self._read += part
