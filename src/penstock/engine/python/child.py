"""The process of a step: ``python -P -m penstock.engine.python.child FD``.

The run's end of its standard input stays open while the run lives: when it closes, the process and
what it started end. It talks to the run in lines of JSON over the socket ``FD``.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import socket
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from penstock.engine.python.helpers import Context, set_for_process
from penstock.engine.python.job import Job, error_of, of_line, perform, to_line

_SCORE = 500  # thousandths of the memory that a process is judged to have more


def main(number: str) -> None:
    """Ends the process without the interpreter's farewell: what is left over is the step's."""
    for stream in (sys.stdout, sys.stderr):
        assert isinstance(stream, io.TextIOWrapper), "they are pipes"
        stream.reconfigure(line_buffering=True, errors="backslashreplace")
    # Have the kernel end this process, not the run or Spark, where memory runs out: those are
    # larger, and would be its choice. Only Linux has this file.
    with contextlib.suppress(OSError, ValueError):
        score = Path("/proc/self/oom_score_adj")
        score.write_text(str(min(1000, int(score.read_text()) + _SCORE)))
    run, sys.stdin = sys.stdin, Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115 - for good
    threading.Thread(target=_end_with_the_run, args=(run,), daemon=True).start()
    with socket.socket(fileno=int(number)) as link, link.makefile("rw", encoding="utf-8") as lines:
        job = Job.from_json(lines.readline())
        lock = threading.Lock()
        context = Context(
            lambda request: _ask(lines, lock, request), job.folder, job.root, job.lake
        )
        if job.remote is not None:
            context.session, context.spark_rows = _join(job.remote), "view"
        set_for_process(context)
        done = perform(job, context)
        sys.stdout.flush()
        sys.stderr.flush()
        _send(lines, {"ask": "done", **done})
        lines.readline()  # the run has what it needs
    os._exit(0)


def _end_with_the_run(run: TextIO) -> None:
    run.buffer.read()
    os.killpg(0, signal.SIGKILL)


def _join(url: str) -> Any:
    from pyspark.sql import SparkSession

    return SparkSession.builder.remote(url).getOrCreate()


def _ask(lines: TextIO, lock: threading.Lock, request: Mapping[str, Any]) -> Mapping[str, Any]:
    with lock:  # its threads ask one by one
        _send(lines, request)
        answer: Mapping[str, Any] = of_line(lines.readline() or "{}")
    if "error" in answer:
        raise error_of(answer["error"])
    return answer


def _send(lines: TextIO, message: Mapping[str, Any]) -> None:
    lines.write(to_line(message))
    lines.flush()


if __name__ == "__main__":
    main(sys.argv[1])
