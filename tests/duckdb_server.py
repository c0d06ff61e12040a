"""A DuckDB in a process of its own, asked over pipes. Run by the Python of any DuckDB version.

Questions are lines of JSON on standard input. An answer is a line of JSON and, where that says
``"bytes": n``, as many bytes of an Arrow stream behind it. It imports nothing of this repository.

    python duckdb_server.py [FOLDER WITH PYARROW]
"""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from pathlib import Path
from typing import Any, BinaryIO

import duckdb

_EXTENSIONS = ("ducklake", "sqlite_scanner", "postgres_scanner")


def connect() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})
    for name in _EXTENSIONS:
        package = importlib.import_module(f"duckdb_extension_{name}")
        folder = Path(package.__path__[0]) / "extensions" / f"v{duckdb.__version__}"
        connection.execute(f"LOAD '{folder / name}.duckdb_extension'")
    return connection


class Server:
    """One instance, since loading extensions takes half a second; one connection at a time."""

    def __init__(self) -> None:
        self.instance = connect()
        self.connection = self.instance.cursor()

    def version(self, _: str) -> tuple[dict[str, Any], bytes]:
        return {"version": duckdb.__version__}, b""

    def renew(self, _: str) -> tuple[dict[str, Any], bytes]:
        """Everything attached is let go of, and a new connection takes the place of the old."""
        self.connection.close()
        self.connection = self.instance.cursor()
        self.connection.execute("USE memory")
        names = self.connection.execute(
            "SELECT database_name FROM duckdb_databases() WHERE NOT internal "
            "AND database_name <> 'memory' AND NOT starts_with(database_name, '__ducklake')"
        ).fetchall()
        for (name,) in names:
            self.connection.execute('DETACH "' + name.replace('"', '""') + '"')
        self.connection.execute("SET TimeZone = 'UTC'")
        return {}, b""

    def execute(self, sql: str) -> tuple[dict[str, Any], bytes]:
        self.connection.execute(sql)
        # What a CALL does it does while its rows are fetched.
        return {"rows": len(self.connection.fetchall())}, b""

    def query(self, sql: str) -> tuple[dict[str, Any], bytes]:
        import pyarrow as pa

        self.connection.execute(sql)
        types = [str(column[1]) for column in self.connection.description]
        newer = getattr(self.connection, "to_arrow_table", None)
        table = newer() if newer is not None else self.connection.fetch_arrow_table()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        return {"types": types}, sink.getvalue().to_pybytes()


def serve(questions: BinaryIO, answers: BinaryIO) -> None:
    server = Server()
    for line in questions:
        asked = json.loads(line)
        try:
            head, body = getattr(server, asked["do"])(asked.get("sql", ""))
        except Exception as error:
            head, body = {"error": str(error), "kind": type(error).__name__}, b""
        answers.write(json.dumps({**head, "bytes": len(body)}).encode() + b"\n" + body)
        answers.flush()


if __name__ == "__main__":
    sys.path.extend(sys.argv[1:])  # behind this DuckDB's own packages
    warnings.simplefilter("ignore")
    serve(sys.stdin.buffer, sys.stdout.buffer)
