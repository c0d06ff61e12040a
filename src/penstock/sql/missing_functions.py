"""Functions that a query calls and that are certainly misspelt: what is told before Spark starts.

Spark may have functions that are not known here (of extensions, of a newer version), so only a
name that is much like a known one is taken for a mistake.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sqlglot import exp

from penstock.errors import InputError, QueryFailed
from penstock.sql.identifiers import fold
from penstock.sql.lake_functions import NAMES
from penstock.sql.trust import FUNCTIONS

# Spark's that SQL of a catalog may not call, and table functions.
_OTHERS = frozenset(
    {
        *("from_avro", "from_protobuf", "from_xml", "input_file_block_length"),
        *("input_file_block_start", "input_file_name", "java_method", "reflect", "schema_of_avro"),
        *("schema_of_xml", "to_avro", "to_protobuf", "try_reflect", "xpath", "xpath_boolean"),
        *("xpath_double", "xpath_float", "xpath_int", "xpath_long", "xpath_number"),
        *("xpath_short", "xpath_string", "python_worker_logs", "read_files"),
    }
)
_LIKE = 0.8  # of two names, as difflib measures it


@dataclass(frozen=True, slots=True)
class MissingFunction:
    """A name at ``text[start]`` that is no function, and the one that it is most like."""

    name: str
    start: int
    nearest: str


def no_function(missing: MissingFunction, data: Mapping[str, Any] | None = None) -> QueryFailed:
    """The error for one: wrong input, as nothing has run."""
    error = QueryFailed(
        f"there is no function {missing.name!r}",
        hint=f"did you mean {missing.nearest}?",
        data=dict(data or {}),
    )
    error.exit_code = InputError.exit_code
    return error


def missing_functions(
    tree: exp.Expression, known: Collection[str] = ()
) -> Iterator[MissingFunction]:
    """In the order of the tree; ``known`` are more functions, folded: the lake's macros."""
    calls = [
        call
        for call in tree.find_all(exp.Anonymous)
        if "start" in call.meta and not isinstance(call.parent, exp.Dot)
    ]
    builtin = FUNCTIONS | _OTHERS | NAMES
    unknown = [
        call for call in calls if fold(call.name) not in builtin and fold(call.name) not in known
    ]
    if not unknown:
        return
    installed = _of_pyspark()
    for call in unknown:
        name = fold(call.name)
        near = get_close_matches(name, FUNCTIONS | NAMES, n=1, cutoff=_LIKE)
        if near and name not in installed:
            yield MissingFunction(call.name, int(call.meta["start"]), near[0])


def _of_pyspark() -> frozenset[str]:
    """The functions of the installed version, read from its text: to import it takes a second."""
    spec = find_spec("pyspark")
    places = [] if spec is None else spec.submodule_search_locations or []
    names: set[str] = set()
    for place in places:
        file = Path(place) / "sql" / "functions" / "builtin.py"
        if file.is_file():
            names |= set(re.findall(r"^def (\w+)\(", file.read_text(encoding="utf-8"), re.M))
    return frozenset(map(fold, names))
