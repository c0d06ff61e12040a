"""Check what ruff and import-linter do not: first words of docstrings, lengths, import cycles.

    python -m scripts.check_source [--shrink]

A docstring begins with a verb, or with the noun that it describes; a question's word (What,
Whether) begins none. A function has at most 70 lines, 19 of 20 at most 35. A file has at most
600 lines. Modules import each other in no circle, not even for the names of types. What did not
hold yet when the check came is listed in ``source_debts.toml``; an entry that no longer applies
fails as well, and ``--shrink`` removes it. Nothing adds one.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "penstock"
DEBTS = Path(__file__).with_name("source_debts.toml")
OPENINGS = frozenset(["What", "Which", "Whether", "How", "Those", "Where", "Who", "When", "Why"])
LONGEST = 70  # lines of a function
P95 = 35
LONGEST_FILE = 600


@dataclass(frozen=True)
class Findings:
    """What does not hold. ``docstrings`` are first lines, ``functions`` longer than `LONGEST`,
    ``long_files`` longer than `LONGEST_FILE`.

    Entries name no file, so that moving one changes nothing here. ``cycles`` are the names of
    modules that reach each other, without their packages.
    """

    docstrings: Counter[str]
    functions: Mapping[str, int]
    cycles: frozenset[str]
    p95: int = 0
    long_files: Mapping[str, int] = field(default_factory=dict)


def functions(tree: ast.AST, within: str = "") -> Iterator[tuple[str, ast.AST, int]]:
    """Yield the functions of a module with their qualified names and their numbers of lines."""
    for node in ast.iter_child_nodes(tree):
        name = within
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{within}.{node.name}".strip(".")
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield name, node, (node.end_lineno or node.lineno) - node.lineno + 1
        yield from functions(node, name)


def opening_lines(tree: ast.AST) -> Iterator[str]:
    """Yield first lines of docstrings that begin with one of `OPENINGS`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text and text.split()[0].rstrip(",:") in OPENINGS:
                yield text.splitlines()[0]


def circles(imports: Mapping[str, set[str]]) -> Iterator[frozenset[str]]:
    """Yield the sets of modules that reach each other, by Tarjan's algorithm."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[frozenset[str]] = []

    def visit(module: str) -> None:
        order[module] = lowest[module] = len(order)
        stack.append(module)
        for other in imports.get(module, ()):
            if other not in order:
                visit(other)
            if other in stack:
                lowest[module] = min(lowest[module], lowest[other])
        if lowest[module] == order[module]:
            at = stack.index(module)
            found.append(frozenset(stack[at:]))
            del stack[at:]

    for module in imports:
        if module not in order:
            visit(module)
    yield from (circle for circle in found if len(circle) > 1)


def imports_of(package: str) -> dict[str, set[str]]:
    """Return which modules each module imports, those in functions and for types included."""
    import grimp

    graph = grimp.build_graph(package, exclude_type_checking_imports=False)
    return {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}


def look(source: Path, imports: Mapping[str, set[str]]) -> Findings:
    """Look through the files below ``source``."""
    docstrings: Counter[str] = Counter()
    lengths: list[int] = []
    long: dict[str, int] = {}
    long_files: dict[str, int] = {}
    for path in sorted(source.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if (file_lines := text.count("\n")) > LONGEST_FILE:
            long_files[path.name] = file_lines
        tree = ast.parse(text)
        docstrings.update(opening_lines(tree))
        for name, _, lines in functions(tree):
            lengths.append(lines)
            if lines > LONGEST:
                long[name] = lines
    cycles = frozenset(
        " ".join(sorted(module.rpartition(".")[2] for module in circle))
        for circle in circles(imports)
    )
    p95 = sorted(lengths)[len(lengths) * 95 // 100] if lengths else 0
    return Findings(docstrings, long, cycles, p95, long_files)


def listed(path: Path) -> Findings:
    """Read the list of debts."""
    debts = tomllib.loads(path.read_text())
    return Findings(Counter(debts["docstrings"]), debts["functions"], frozenset(debts["cycles"]))


def problems(now: Findings, debts: Findings) -> Iterator[str]:
    """Yield a line for whatever is new, and for each entry that no longer applies."""
    for text in now.docstrings - debts.docstrings:
        yield f"a docstring begins with a question's word, not with a verb: {text}"
    for name, lines in now.functions.items():
        if lines > debts.functions.get(name, LONGEST):
            yield f"{name} has {lines} lines, more than {debts.functions.get(name, LONGEST)}"
    for cycle in sorted(now.cycles - debts.cycles):
        yield f"these modules import each other: {cycle}"
    for name, lines in now.long_files.items():
        yield f"{name} has {lines} lines, more than {LONGEST_FILE}"
    if now.p95 > P95:
        yield f"19 of 20 functions have at most {now.p95} lines, more than {P95}"
    stale = [*(debts.docstrings - now.docstrings), *sorted(debts.cycles - now.cycles)]
    stale += [n for n, lines in debts.functions.items() if now.functions.get(n, 0) < lines]
    for entry in stale:
        yield f"no longer so, run `python -m scripts.check_source --shrink`: {entry}"


def shrunk(now: Findings, debts: Findings) -> str:
    """Return the list of debts without what no longer applies."""
    docstrings = sorted((now.docstrings & debts.docstrings).elements())
    long = {n: min(now.functions[n], k) for n, k in debts.functions.items() if n in now.functions}
    return "\n".join(
        [
            "# What scripts/check_source.py lets pass. It only shrinks.",
            "cycles = [",
            *(f'    "{cycle}",' for cycle in sorted(now.cycles & debts.cycles)),
            "]",
            "docstrings = [",
            *(f"    '''{text}'''," for text in docstrings),
            "]",
            "[functions] # lines",
            *(f'"{name}" = {lines}' for name, lines in sorted(long.items())),
            "",
        ]
    )


def main() -> None:
    now, debts = look(SOURCE, imports_of("penstock")), listed(DEBTS)
    if sys.argv[1:] == ["--shrink"]:
        DEBTS.write_text(shrunk(now, debts))
        debts = listed(DEBTS)
    lines = list(problems(now, debts))
    print("\n".join(lines) or "Docstrings, lengths and import cycles: as listed, nothing new.")
    sys.exit(bool(lines))


if __name__ == "__main__":
    main()
