"""Run public dbt packages over a new lake and count what became of their nodes.

    .venv-dbt/bin/python adapters/dbt/tests/packages.py --packages DIRECTORY PROJECT...

A PROJECT is a directory with a dbt_project.yml, such as a package's integration_tests. DIRECTORY
holds a checkout of each package that the projects require. Nothing is downloaded. Seeds come first,
then operations, models and snapshots, and last the tests: a test that fails skips no model.
Models that wrote no row are counted: packages read sources of one schema, which ``--schema`` names.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

_REQUIREMENTS = ("packages.yml", "dependencies.yml")
_LEFT_OUT = (*_REQUIREMENTS, "package-lock.yml", "dbt_packages", "target", "logs", ".git")
_PASSED = ("success", "pass", "warn", "no-op")
_FAILED = ("error", "fail", "runtime error")
_MODELS = ("build", "--exclude-resource-type", "seed", "test", "unit_test")


@dataclass(frozen=True, slots=True)
class Outcome:
    """``counts`` has the nodes by status, ``failures`` the name and message of each that failed.

    ``written`` has the rows that each model or snapshot wrote, by the name of its node.
    """

    project: str
    counts: Mapping[str, int]
    failures: tuple[tuple[str, str], ...] = ()
    written: Mapping[str, int] = field(default_factory=dict)

    @property
    def line(self) -> str:
        """One line of the report."""
        total, passed = sum(self.counts.values()), sum(self.counts.get(s, 0) for s in _PASSED)
        others = ", ".join(f"{number} {status}" for status, number in sorted(self.counts.items()))
        empty = sum(1 for rows in self.written.values() if not rows)
        return (
            f"{self.project}: {passed} of {total} nodes ({others});"
            f" {empty} of {len(self.written)} models that write rows wrote none"
        )


def main() -> int:
    """Run the projects in turn; 1 where a node failed."""
    arguments = _arguments()
    packages = dict(_packages(arguments.packages))
    failed = False
    with TemporaryDirectory(prefix="penstock-packages-") as scratch:
        directory = arguments.into or Path(scratch)
        for project in arguments.projects:
            outcome = run(project.resolve(), packages, directory.resolve(), arguments)
            print(outcome.line, flush=True)
            for name, message in outcome.failures:
                print(f"    {name}: {message}", flush=True)
            failed = failed or bool(outcome.failures)
    return int(failed)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--packages", type=Path, required=True, help="where checkouts are")
    parser.add_argument("--into", type=Path, help="a new directory that keeps projects and lakes")
    parser.add_argument("--select", help="nodes, as `dbt build` selects them")
    about = (
        "the profile's schema; packages of Fivetran read their seeds from a schema that they name"
    )
    parser.add_argument("--schema", default="main", help=about)
    about = "a macro to run after the seeds, in projects that have it"
    parser.add_argument("--operation", action="append", default=[], help=about)
    parser.add_argument("projects", nargs="+", type=Path, metavar="PROJECT")
    return parser.parse_args()


def run(
    project: Path,
    packages: Mapping[str, Path],
    scratch: Path,
    arguments: argparse.Namespace,
) -> Outcome:
    """Build and test a copy of a project, with a profile and a lake of its own."""
    settings = _settings(project)
    name = settings["name"]
    copy = scratch / name
    _copy(project, copy)
    for package in _required(project, packages):
        _copy(packages[package], copy / "dbt_packages" / package)
    _write_profile(copy, settings.get("profile", name), arguments.schema)
    chosen = ["--select", arguments.select] if arguments.select else []
    results: dict[str, Any] = {}
    before = [["seed", *chosen]] if any(copy.rglob("*.csv")) else []
    before += [["run-operation", macro] for macro in arguments.operation if _has_macro(copy, macro)]
    for command in (*before, [*_MODELS, *chosen], ["test", *chosen]):
        output = _dbt(copy, command)
        written = copy / "target" / "run_results.json"
        if not written.is_file():
            return Outcome(name, {"error": 1}, ((f"dbt {command[0]}", output[-2000:]),))
        for result in json.loads(written.read_text())["results"]:
            former = results.get(result["unique_id"], result)  # a hook runs in each command
            results[result["unique_id"]] = former if former["status"] in _FAILED else result
    return _outcome(name, list(results.values()))


def _has_macro(project: Path, name: str) -> bool:
    texts = (path.read_text() for path in (project / "macros").rglob("*.sql"))
    return any(re.search(rf"\bmacro\s+{re.escape(name)}\s*\(", text) for text in texts)


def _dbt(project: Path, command: Sequence[str]) -> str:
    """Run a command of dbt; return its output. The results of the command before are removed."""
    (project / "target" / "run_results.json").unlink(missing_ok=True)
    done = subprocess.run(
        [str(Path(sys.executable).with_name("dbt")), *command, "--profiles-dir", str(project)],
        cwd=project,
        env=os.environ | {"DBT_SEND_ANONYMOUS_USAGE_STATS": "false"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def _outcome(name: str, results: Sequence[Mapping[str, Any]]) -> Outcome:
    counts = Counter(result["status"] for result in results)
    failures = tuple(
        (result["unique_id"], str(result["message"]))
        for result in results
        if result["status"] in _FAILED
    )
    written = {
        result["unique_id"]: int(result["adapter_response"]["rows_affected"])
        for result in results
        if result["unique_id"].startswith(("model.", "snapshot."))
        and result["adapter_response"].get("rows_affected") is not None
    }
    return Outcome(name, counts, failures, written)


def _packages(directory: Path) -> Iterator[tuple[str, Path]]:
    """The checkouts below a directory, by the names of their projects."""
    for settings in sorted(directory.resolve().glob("*/dbt_project.yml")):
        yield _settings(settings.parent)["name"], settings.parent


def _required(project: Path, packages: Mapping[str, Path]) -> list[str]:
    """The packages that a project requires, and those that these require."""
    names: list[str] = []
    directories = [project]
    while directories:
        for name in _listed(directories.pop()):
            if name not in packages:
                sys.exit(f"{project} requires the package {name}: put a checkout beside the others")
            if name not in names:
                names.append(name)
                directories.append(packages[name])
    return names


def _listed(project: Path) -> Iterator[str]:
    """The names of the packages in a project's packages.yml and dependencies.yml."""
    for path in (project / name for name in _REQUIREMENTS):
        required = yaml.safe_load(path.read_text()) if path.is_file() else None
        for entry in (required or {}).get("packages") or []:
            if "local" in entry:
                yield _settings((project / entry["local"]).resolve())["name"]
            else:
                last = str(entry.get("package") or entry["git"]).rpartition("/")[2]
                yield last.removesuffix(".git").removeprefix("dbt-").replace("-", "_")


def _settings(project: Path) -> dict[str, Any]:
    text = (project / "dbt_project.yml").read_text()
    loaded: dict[str, Any] = yaml.safe_load(re.sub(r"^\t+", "", text, flags=re.M))
    return loaded


def _copy(source: Path, target: Path) -> None:
    """Copy a project without what dbt has installed or written in it, and its requirements."""

    def others(directory: str, names: list[str]) -> list[str]:
        inside = "integration_tests" if (Path(directory) / "dbt_project.yml").is_file() else None
        return [name for name in names if name in _LEFT_OUT or name == inside]

    shutil.copytree(source, target, ignore=others)


def _write_profile(project: Path, name: str, schema: str) -> None:
    target = {
        "type": "penstock",
        "catalog": f"ducklake:sqlite:{project / 'lake.sqlite'}",
        "data_path": f"{project / 'lake_data'}/",
        "schema": schema,
        "threads": 4,
        "spark": {"master": "local[2]", "conf": {"spark.driver.memory": "2g"}},
    }
    profile = {name: {"target": "penstock", "outputs": {"penstock": target}}}
    (project / "profiles.yml").write_text(yaml.safe_dump(profile))


if __name__ == "__main__":
    sys.exit(main())
