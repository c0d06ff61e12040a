"""Count the names that are a function word or a bare participle, as ``at``, ``each`` and ``found``.

    python -m scripts.check_names [SOURCE] [--files]

A binding is a parameter or a name that is assigned. Such a name does not tell what it holds.
``scripts.check_budgets`` holds their share and the number in each file to ``budgets.toml``.
"""

from __future__ import annotations

import argparse
import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "penstock"
_WORDS = """
    able about again also anew asked at begins being by each ends few first found from_ gave gets
    given giving goes gone handed has here how into is_ its kept known last left like lost made
    making meant now of once one onto other others own past put read rest said same seeing seen
    still such taken taking there to told tried upon wanted what where which while who whose why
    with with_ written
"""
WORDS = frozenset(_WORDS.split())


@dataclass(frozen=True)
class NameCount:
    """The bindings of a source tree, and those of them that are in `WORDS`.

    Attributes:
        bindings: The number of all bindings.
        words: How often each word is bound.
        files: The number of such bindings in each file that has one.
    """

    bindings: int = 0
    words: Counter[str] = field(default_factory=Counter)
    files: Counter[Path] = field(default_factory=Counter)

    @property
    def share(self) -> float:
        """Return the percentage of bindings that are words."""
        return 100 * self.words.total() / max(self.bindings, 1)


def bound_names(tree: ast.AST) -> Iterator[str]:
    """Yield the parameters and the assigned names of a module, without ``self`` and ``cls``.

    Args:
        tree: The parsed module.

    Yields:
        One name for each binding; a name that is bound twice comes twice.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and node.arg not in {"self", "cls"}:
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def count_names(source: Path) -> NameCount:
    """Count the bindings of all modules below a directory.

    Args:
        source: The directory of a package.

    Returns:
        The counts.
    """
    bindings = 0
    words: Counter[str] = Counter()
    files: Counter[Path] = Counter()
    for path in sorted(source.rglob("*.py")):
        names = list(bound_names(ast.parse(path.read_text(encoding="utf-8"))))
        vague_names = [name.strip("_") for name in names if name.strip("_") in WORDS]
        bindings += len(names)
        words.update(vague_names)
        if vague_names:
            files[path] = len(vague_names)
    return NameCount(bindings, words, files)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("source", type=Path, nargs="?", default=SOURCE)
    parser.add_argument("--files", action="store_true", help="list the files, the worst first")
    options = parser.parse_args()
    count = count_names(options.source)
    if options.files:
        for path, number in count.files.most_common():
            print(f"{number:5}  {path.relative_to(options.source)}")
    print("most:", ", ".join(f"{word} {number}" for word, number in count.words.most_common(25)))
    print(f"{count.words.total()} of {count.bindings} bindings, {count.share:.2f}%")


if __name__ == "__main__":
    main()
