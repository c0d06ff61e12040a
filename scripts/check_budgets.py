"""Hold the source to its budgets: lines and files of each package, names, imports, docstrings.

    python -m scripts.check_budgets [--lower]

``budgets.toml`` has one limit for each package and each rule. ``--lower`` writes today's figures
where they are below the limits. A commit that raises a limit has to change an ADR as well, which
says for what; the check reads this from the history of ``budgets.toml``. A file that has no entry
is new: it may have no vague name and no fault in a docstring. Entries are names of files without
their packages, so moving a file changes none.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from scripts.check_names import count_names

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "penstock"
BUDGETS = Path(__file__).with_name("budgets.toml")
ADRS = "docs/adr/"
#: Sections of limits, and the number of decimals that a figure has there.
DECIMALS = {"lines": 0, "files": 0, "shares": 2, "names": 0, "docstrings": 0, "sections": 0}
#: Sections that list files: what has no entry has the limit 0.
DEBTS = frozenset({"names", "docstrings", "sections"})
_FINDING = re.compile(r"^(?P<path>[^:\s]+\.py):\d+:\d+: D\d+ ", re.M)
_FUNCTION = re.compile(r"^\s+\d+: DOC\d+: (?:Function|Method) `(?:\w+\.)*(?P<name>\w+)`", re.M)

Figures = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class RaisedLimit:
    """A limit that a commit raised without a change of an ADR."""

    commit: str
    section: str
    entry: str

    def __str__(self) -> str:
        return (
            f"commit {self.commit[:10]} raises {self.section} of {self.entry} and changes no ADR; "
            f"state in {ADRS} what the addition is for, in the same commit"
        )


def package_of(path: Path, source: Path) -> str:
    """Return the package that a file counts for: the first two directories of its path."""
    return "/".join(path.relative_to(source).parent.parts[:2]) or "."


def measure_packages(source: Path) -> Figures:
    """Count the lines and the files of each package, and the lines of imports of all.

    Args:
        source: The directory of a package.

    Returns:
        The sections ``lines`` and ``files``, and ``imports`` in percent of all lines.
    """
    lines: Counter[str] = Counter()
    files: Counter[str] = Counter()
    import_lines = 0
    for path in source.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        package = package_of(path, source)
        lines[package] += text.count("\n")
        files[package] += 1
        import_lines += sum(
            (node.end_lineno or node.lineno) - node.lineno + 1
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Import | ast.ImportFrom)
        )
    share = 100 * import_lines / max(lines.total(), 1)
    return {"lines": lines, "files": files, "shares": {"imports": share}}


def count_docstring_faults(source: Path) -> Counter[str]:
    """Count what ruff's rules for Google's convention find, by the names of files."""
    command = ["ruff", "check", "--select", "D", "--config", 'lint.pydocstyle.convention="google"']
    report = _report([*command, "--output-format", "concise", "--exit-zero", str(source)])
    return Counter(Path(match["path"]).name for match in _FINDING.finditer(report))


def count_missing_sections(source: Path) -> Counter[str]:
    """Count public functions whose docstrings lack Args, Returns, Yields or Raises, by file."""
    report = _report(
        [
            "pydoclint",
            "--style=google",
            "--skip-checking-short-docstrings=False",
            "--arg-type-hints-in-docstring=False",
            "--check-return-types=False",
            "--quiet",
            str(source),
        ]
    )
    counts: Counter[str] = Counter()
    functions: dict[str, set[str]] = {}
    path = ""
    for line in report.splitlines():
        if line.endswith(".py"):
            path = Path(line.strip()).name
        elif (match := _FUNCTION.match(line)) and not match["name"].startswith("_"):
            functions.setdefault(path, set()).add(match[0].partition("`")[2])
    counts.update({file: len(names) for file, names in functions.items()})
    return counts


def _report(command: list[str]) -> str:
    program, *arguments = command
    path = Path(sys.executable).with_name(program)
    done = subprocess.run(
        [str(path), *arguments], capture_output=True, text=True, check=False, cwd=ROOT
    )
    if done.returncode not in (0, 1):
        raise SystemExit(f"{program} failed:\n{done.stderr}")
    return done.stdout + done.stderr


def measure_source(source: Path) -> Figures:
    """Measure everything that has a limit.

    Args:
        source: The directory of a package.

    Returns:
        The figures by section and entry.
    """
    packages = measure_packages(source)
    names = count_names(source)
    by_file: Counter[str] = Counter()
    for path, number in names.files.items():
        by_file[path.name] += number
    return {
        **packages,
        "shares": {**packages["shares"], "names": names.share},
        "names": by_file,
        "docstrings": count_docstring_faults(source),
        "sections": count_missing_sections(source),
    }


def exceeded_limits(figures: Figures, limits: Figures) -> Iterator[str]:
    """Yield a line for each figure above its limit.

    Args:
        figures: What `measure_source` returns.
        limits: What ``budgets.toml`` has.

    Yields:
        The figure, its limit, and the next step.
    """
    for section, entries in figures.items():
        for entry, figure in sorted(entries.items()):
            limit = limits.get(section, {}).get(entry, 0)
            if round(figure, DECIMALS[section]) > limit:
                amount = f"{figure:.{DECIMALS[section]}f}"
                yield f"{section} of {entry}: {amount}, the limit is {limit:g}"


def lowered_limits(figures: Figures, limits: Figures) -> dict[str, dict[str, float]]:
    """Return the limits, each lowered to its figure; entries without a figure are left out."""
    return {
        section: {
            entry: min(limit, round(figures[section].get(entry, 0), DECIMALS[section]))
            for entry, limit in entries.items()
            if figures[section].get(entry)
        }
        for section, entries in limits.items()
    }


def raised_limits(old: Figures, new: Figures) -> Iterator[tuple[str, str]]:
    """Yield section and entry of each limit that is higher than before, or new."""
    for section, entries in new.items():
        for entry, limit in entries.items():
            if limit > old.get(section, {}).get(entry, 0):
                yield section, entry


def raises_in_history(root: Path, path: Path) -> Iterator[RaisedLimit]:
    """Look through the commits that changed the limits for those that raised one silently.

    Args:
        root: The root of the repository.
        path: The file of limits.

    Yields:
        One value for each limit that was raised by a commit that changes no ADR.
    """
    name = path.relative_to(root).as_posix()
    commits = _git(root, "log", "--no-merges", "--format=%H", "--", name).split()
    for commit in commits:
        old_text = _git(root, "show", f"{commit}^:{name}")
        if not old_text:
            continue  # the commit that introduced the limits, or the first one of a shallow clone
        if ADRS in _git(root, "show", "--format=", "--name-only", commit):
            continue
        new = tomllib.loads(_git(root, "show", f"{commit}:{name}"))
        for section, entry in raised_limits(tomllib.loads(old_text), new):
            yield RaisedLimit(commit, section, entry)


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def format_limits(limits: Figures) -> str:
    """Return the text of ``budgets.toml``."""
    parts = ["# Limits of scripts/check_budgets.py. Raise one only with an ADR in the same commit."]
    for section, entries in limits.items():
        parts.append(f"\n[{section}]")
        parts += [f'"{entry}" = {limit:g}' for entry, limit in sorted(entries.items())]
    return "\n".join(parts) + "\n"


def main() -> None:
    figures = measure_source(SOURCE)
    limits = tomllib.loads(BUDGETS.read_text(encoding="utf-8"))
    if "--lower" in sys.argv:
        limits = lowered_limits(figures, limits)
        BUDGETS.write_text(format_limits(limits), encoding="utf-8")
    problems = [*exceeded_limits(figures, limits), *map(str, raises_in_history(ROOT, BUDGETS))]
    print("\n".join(problems) or "Sizes, names and docstrings: within their budgets.")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
