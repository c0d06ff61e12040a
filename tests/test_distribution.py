"""The distribution's name: hints, documents and the adapter never name the stranger's package."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

from penstock.distribution import NAME, VERSION

ROOT = Path(__file__).parents[1]
TEXTS = ("README.md", "CONTRIBUTING.md", "Makefile", "pyproject.toml", "constraints.txt")
FOLDERS = ("docs", "src", "scripts", "bench", "adapters", "tests", ".ci")
SUFFIXES = {".json", ".md", ".py", ".sh", ".toml", ".txt", ".cfg", ".yml"}
STRANGER = re.compile(
    r"(?<![\w.])penstock\[[a-z]|pypi\.org/project/penstock\b(?!-spark)"
    r"|(?:pip|pipx|uv) [\w -]*install (?:-\S+ )*['\"]?penstock\b(?!-spark)"
)


def test_the_package_has_the_name_and_version_of_the_module() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert settings["project"]["name"] == NAME
    assert settings["project"]["dynamic"] == ["version"]
    assert settings["tool"]["hatch"]["version"]["path"] == "src/penstock/distribution.py"
    assert re.fullmatch(r"\d+\.\d+\.\d+", VERSION)


def test_the_adapter_depends_on_it() -> None:
    settings = tomllib.loads((ROOT / "adapters" / "dbt" / "pyproject.toml").read_text())
    names = [Requirement(text).name for text in settings["project"]["dependencies"]]
    assert NAME in names
    assert "penstock" not in names


def test_no_text_installs_or_links_to_the_package_of_another_project() -> None:
    files = [ROOT / name for name in TEXTS]
    for folder in FOLDERS:
        files += [path for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES]
    wrong = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in files
        if path != Path(__file__)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if STRANGER.search(line)
    ]
    assert wrong == []
