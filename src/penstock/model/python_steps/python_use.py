"""Find what a Python step reads and writes in its code, by `ast`.

Helpers of ``penstock.lake(...)`` are known by their names. A constant of the file that is a URI, or
a path with ``{partition}``, is an asset: written where the code hands it to what writes, read where
it uses it otherwise (seeds/partitioned-pipelines.md, "URI constants").
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from penstock.errors import Diagnostic
from penstock.model.files.python_code import PythonCode
from penstock.model.query.query import ScriptKind, read_query
from penstock.model.script.arguments import PARTITION
from penstock.model.time.partition import PartitionSpec
from penstock.model.time.time_macros import TOKEN
from penstock.model.values.asset import DEFAULT_SCHEMA, FileName, TableName, parse_asset
from penstock.model.values.names import Names

LAKE = "penstock.lake"
UPSERT, APPEND = "upsert_partition", "append_partition"
_WRITES = re.compile(r"(write|put|save|upload|dump|to_|store|copy_to)\w*", re.IGNORECASE)
_MODES = re.compile(r"[wax]")


@dataclass(frozen=True, slots=True)
class Write:
    """A call of a helper that writes a table; ``table`` and ``keys`` are None where the code
    computes them."""

    helper: str
    table: TableName | None
    keys: tuple[str, ...] | None
    node: ast.Call = field(compare=False)


@dataclass(slots=True)
class Uses:
    """``reads`` are tables, files as `FileName` among them; ``files`` are URIs that are written.
    ``by_slice`` says of tables whether every call reads the slice of the run.
    """

    code: PythonCode
    names: Names
    partition: PartitionSpec | None
    dialect: str
    lake: str  # which records files
    reads: dict[TableName, None] = field(default_factory=dict)
    writes: list[Write] = field(default_factory=list)
    files: dict[str, None] = field(default_factory=dict)
    findings: list[Diagnostic] = field(default_factory=list)
    uses_partition: bool = False
    by_slice: dict[TableName, bool] = field(default_factory=dict)

    def error(self, node: ast.AST, message: str, hint: str | None, rule: str) -> None:
        self.findings.append(Diagnostic("error", message, self.code.where(node), hint, rule))


def uses_of(
    code: PythonCode, names: Names, partition: PartitionSpec | None, dialect: str, lake: str
) -> Uses:
    """All that the code reads and writes by helpers and URI constants."""
    uses = Uses(code, names, partition, dialect, lake)
    lakes = dict(_lakes(code))
    for node in ast.walk(code.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            handle = _HELPERS.get(node.func.attr)
            name = None if handle is None else _lake_of(node.func.value, lakes, uses)
            if handle is not None and name is not None:
                handle(node, name, uses)
    _assets(uses)
    return uses


def _lakes(code: PythonCode) -> Iterator[tuple[str, ast.Call]]:
    """Variables that are lakes: ``main = penstock.lake("main")``."""
    for node in ast.walk(code.tree):
        if isinstance(node, ast.Assign) and _is_lake(node.value, code):
            assert isinstance(node.value, ast.Call), "a call of it"
            yield from (
                (each.id, node.value) for each in node.targets if isinstance(each, ast.Name)
            )


def _is_lake(node: ast.expr, code: PythonCode) -> bool:
    return isinstance(node, ast.Call) and code.dotted(node.func) == LAKE


def _lake_of(node: ast.expr, lakes: Mapping[str, ast.Call], uses: Uses) -> str | None:
    """The lake that a helper is called on; None for something else."""
    if isinstance(node, ast.Name):
        node = lakes.get(node.id, node)
    if not _is_lake(node, uses.code):
        return None
    assert isinstance(node, ast.Call), "a call of it"
    written = uses.code.text_of(_argument(node, 0, "name"))
    if written is None:
        return uses.lake if not node.args else None
    lake = uses.names.lake(written)
    if lake is None:
        unknown = uses.names.unknown_lake(written)
        uses.error(node, str(unknown), unknown.hint, "unknown-lake")
    return lake


def _argument(call: ast.Call, position: int, name: str) -> ast.expr | None:
    named = next((each.value for each in call.keywords if each.arg == name), None)
    return call.args[position] if len(call.args) > position else named


def table_in(lake: str, written: str) -> TableName | None:
    """The table that a helper's text names: ``orders`` or ``schema.orders``."""
    *before, table = written.split(".")
    if len(before) > 1 or not all((table, *before)):
        return None
    return TableName(lake, before[0] if before else DEFAULT_SCHEMA, table)


def _table(call: ast.Call, lake: str, uses: Uses) -> TableName | None:
    node = _argument(call, 0, "table")
    written = uses.code.text_of(node)
    table = None if written is None else table_in(lake, written)
    if written is not None and table is None:
        uses.error(call, f"{written!r} names no table", "write table or schema.table", "table")
    return table


def _read(call: ast.Call, lake: str, uses: Uses) -> None:
    table = _table(call, lake, uses)
    if table is not None:
        place, slice_ = uses.names.place(table), _argument(call, 1, "partition")
        of_run = isinstance(slice_, ast.Name) and slice_.id == PARTITION
        uses.reads[place] = None
        uses.by_slice[place] = uses.by_slice.get(place, True) and of_run


def _query(call: ast.Call, lake: str, uses: Uses) -> None:
    """Note what a query reads whose text is written out."""
    node = _argument(call, 0, "sql")
    text = uses.code.text_of(node)
    if text is None:
        return
    names = replace(uses.names, use=(lake, DEFAULT_SCHEMA))
    query, findings = read_query(
        text,
        uses.code.path,
        names=names,
        dialect=uses.dialect,
        kind=ScriptKind(partition=uses.partition),
    )
    for finding in findings:
        if finding.severity == "error":
            uses.error(call, f"in the query: {finding.message}", finding.hint, finding.rule)
    if query is not None:
        uses.reads |= dict.fromkeys(query.reads)
        uses.by_slice |= dict.fromkeys(query.reads, False)
        uses.uses_partition |= query.uses_partition


def _write(call: ast.Call, lake: str, uses: Uses) -> None:
    assert isinstance(call.func, ast.Attribute), "a helper is called on a lake"
    helper = call.func.attr
    node = _argument(call, 2, "key")
    keys = () if node is None or helper == APPEND else _keys(node, uses.code)
    uses.writes.append(Write(helper, _table(call, lake, uses), keys, call))


def _keys(node: ast.expr, code: PythonCode) -> tuple[str, ...] | None:
    one = code.text_of(node)
    if one is not None:
        return (one,)
    items = node.elts if isinstance(node, ast.List | ast.Tuple) else []
    texts = [code.text_of(item) for item in items]
    known = tuple(text for text in texts if text is not None)
    return known if known and len(known) == len(texts) else None


def _write_file(call: ast.Call, _lake: str, uses: Uses) -> None:
    text = uses.code.text_of(_argument(call, 0, "uri"))
    if text is not None:
        uses.files[text] = None


def _read_file(call: ast.Call, _lake: str, uses: Uses) -> None:
    text = uses.code.text_of(_argument(call, 0, "uri"))
    if text is not None:
        uses.reads[FileName.of(uses.lake, text)] = None


_HELPERS: Mapping[str, Callable[[ast.Call, str, Uses], None]] = {
    "read": _read,
    "query": _query,
    UPSERT: _write,
    APPEND: _write,
    "write_file": _write_file,
    "read_file": _read_file,
}


def _assets(uses: Uses) -> None:
    code = uses.code
    parents = {child: node for node in ast.walk(code.tree) for child in ast.iter_child_nodes(node)}
    for name, uri in code.texts.items():
        if not _is_asset(uri):
            continue
        roles = set(_roles({name}, code.tree, parents))
        if "write" in roles:
            uses.files[uri] = None
        elif roles:
            uses.reads[FileName.of(uses.lake, uri)] = None
        if roles and TOKEN in uri:
            uses.uses_partition = True


def _is_asset(text: str) -> bool:
    asset = parse_asset(text)
    return (asset is not None and not asset.is_table) or (
        TOKEN in text and "/" in text and " " not in text
    )


def _roles(names: set[str], tree: ast.Module, parents: Mapping[ast.AST, ast.AST]) -> Iterator[str]:
    """Yield how values are used that come from these names: ``read`` or ``write``, for each use."""
    known: set[str] = set()
    while names - known:
        known |= names
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in known:
                role, target = _use(node, parents)
                names = names | ({target} if target else set())
                if role:
                    yield role


def _use(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> tuple[str, str | None]:
    """The first call around a value that does more than change its text, or the variable that it
    goes to."""
    child = node
    while child in parents:
        parent = parents[child]
        if isinstance(parent, ast.Call) and not _changes_text(parent, child):
            return ("write" if _writes(parent) else "read"), None
        if isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Name):
            return "", parent.targets[0].id
        if isinstance(parent, ast.stmt):
            break
        child = parent
    return "", None


_TEXT = frozenset({"replace", "format", "removeprefix", "removesuffix", "strip", "lstrip", "split"})
_PLAIN = frozenset({"str", "Path", "PurePath", "partial", "print", "len"})


def _changes_text(call: ast.Call, child: ast.AST) -> bool:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr in _TEXT
    return isinstance(call.func, ast.Name) and call.func.id in _PLAIN and child is not call.func


def _writes(call: ast.Call) -> bool:
    function = call.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if name == "open":
        mode = _argument(call, 1 if isinstance(function, ast.Name) else 0, "mode")
        return isinstance(mode, ast.Constant) and bool(_MODES.match(str(mode.value)))
    return _WRITES.match(name) is not None
