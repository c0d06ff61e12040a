"""Refuse comparisons with strategies outside of their home: ask a property of the strategy.

    python -m scripts.check_strategies [DIRECTORY]

A comparison is one with a strategy's name, or with one of the values of ``strategy.py``: by ``==``,
``in``, ``match``, or as a key of a table. ``ALLOWED`` are words that only look like one, as the
``view`` that a catalog may have; an entry that is not found any more is an error as well, so that
the list only shrinks. Ends with 1 when anything is found.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from penstock.model.values.strategy import STRATEGIES

SOURCE = Path(__file__).resolve().parent.parent / "src" / "penstock"
HOMES = ("lakes/", "sql/", "engine/strategies/", "/strategy.py", "/kinds.py")
VALUES = frozenset(name.upper() for name in STRATEGIES)
_IS_VIEW = "kind == 'view'"  # of what the lake has by a name
_MODE = "'view' in rows", "way == 'view'"  # how rows come to a process of Python
_FLAGS = "{'manual': managed.manual, 'history': managed.history, 'append': managed.append}"
#: by the end of a path and the comparison
ALLOWED = {
    ("drop.py", "tx.kind_of(table_name(target)) == 'view'"),
    ("history/current.py", "tx.kind_of(table_name(view)) == 'view'"),
    ("history/current.py", _IS_VIEW),
    ("planning/stages.py", "self.kind == 'view'"),
    *(("python/serve.py", mode) for mode in _MODE),
    # The words of a header, each of which a strategy is made of.
    ("headers/annotation.py", _FLAGS),
    ("headers/materialization.py", "mode == 'manual'"),
    (
        "headers/materialization.py",
        "strategy == 'replace'",
    ),  # an option that somebody took to exist
}


def comparisons(text: str) -> Iterator[tuple[int, str]]:
    """The comparisons with a strategy in the text of a module, each with its line."""
    tree = ast.parse(text)
    values = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).endswith(".strategy")
        for alias in node.names
        if alias.name in VALUES
    }

    def names_one(node: ast.AST) -> bool:
        if isinstance(node, ast.Tuple | ast.Set | ast.List):
            return any(map(names_one, node.elts))
        if isinstance(node, ast.Attribute):  # MERGE.name
            return names_one(node.value)
        if isinstance(node, ast.Constant):
            return node.value in STRATEGIES
        return isinstance(node, ast.Name) and node.id in values

    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, comparators=others):
                found = any(map(names_one, [left, *others]))
            case ast.MatchValue(value=value):
                found = names_one(value)
            case ast.Dict(keys=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
                names = [each for each in elements if each is not None and names_one(each)]
                found = len(names) > 1 and len(names) == len(elements)
            case _:
                continue
        if found:
            yield node.lineno, ast.unparse(node)


def main(directory: Path = SOURCE) -> int:
    refused, known = 0, set[tuple[str, str]]()
    for path in sorted(directory.rglob("*.py")):
        name = path.relative_to(directory).as_posix()
        if name.startswith(HOMES) or name.endswith(HOMES):
            continue
        for line, comparison in comparisons(path.read_text(encoding="utf-8")):
            allowed = {each for each in ALLOWED if name.endswith(each[0]) and comparison == each[1]}
            known |= allowed
            if not allowed:
                refused += 1
                print(f"{path}:{line}: `{comparison}` compares with a strategy: add a property")
    for file, comparison in sorted(ALLOWED - known):
        print(f"{file}: `{comparison}` is allowed and does not occur: remove it from ALLOWED")
    return int(bool(refused or ALLOWED - known))


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
