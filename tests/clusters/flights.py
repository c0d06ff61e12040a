"""The flights example in an environment of its own, and what its tables hold afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.examples.conftest import copy_of_example

ROOT = Path(__file__).resolve().parents[2]
DAYS = ("2013-01-01", "2013-01-02", "2013-01-03")
# An environment with its catalog on PostgreSQL and its files in S3.
STORE = """
[environments.{0}.lakes.main]
catalog = "postgres:${{POSTGRES}} dbname=postgres"
data_path = "s3://lake/flights"
s3_endpoint = "${{S3_ENDPOINT}}"
s3_access_key = "${{S3_KEY}}"
s3_secret_key = "${{S3_SECRET}}"
s3_path_style = true
"""
TABLES = ("airlines", "airports", "flights_raw", "flights", "delays_daily", "airline_ranking")


def make_project(folder: Path, environments: str) -> Path:
    """Copy the example into ``folder``, with sections of environments."""
    folder.mkdir(parents=True, exist_ok=True)
    project = copy_of_example(folder)
    settings = project / "penstock.toml"
    settings.write_text(f"{settings.read_text()}\n{environments}")
    return project


def penstock(
    project: Path, environment: str, *arguments: str, environ: Mapping[str, str] | None = None
) -> str:
    """Run a command in an environment; returns what it prints with ``--json``."""
    command = [sys.executable, "-c", "from penstock.cli.main import main; main()", *arguments]
    command += ["--project", str(project), "--env", environment, "--json"]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **(environ or {})},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if done.returncode != 0:
        said = f"{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
        raise RuntimeError(f"penstock {' '.join(arguments)} ended with {done.returncode}:\n{said}")
    return done.stdout


def contents(project: Path, environment: str, environ: Mapping[str, str] | None = None) -> Any:
    """How many rows each table has, and a digest of all of them, as Spark computes it there."""
    one = "SELECT '{0}' AS name, count(*) AS rows, bit_xor(xxhash64({1})) AS digest FROM {0}"
    query = " UNION ALL ".join(one.format(table, "*") for table in TABLES)
    text = f"SELECT * FROM ({query}) ORDER BY name"
    return json.loads(penstock(project, environment, "sql", text, environ=environ))
