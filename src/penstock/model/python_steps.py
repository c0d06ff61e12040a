"""Python steps: ``def main(...)``, and what it needs, reads and writes, found by `ast`.

A Python step: ``def main(...)``, whose parameters say what it needs, read by `ast`.

seeds/partitioned-pipelines.md has the slice (``partition: str``) and the names of a payload as
parameters; tables that an ``on`` line names are parameters by their names too.

Find what a Python step reads and writes in its code, by `ast`.

Helpers of ``penstock.lake(...)`` are known by their names. A constant of the file that is a URI, or
a path with ``{partition}``, is an asset: written where the code hands it to what writes, read where
it uses it otherwise (seeds/partitioned-pipelines.md, "URI constants").
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from penstock.errors import ArgumentError, Diagnostic, Location
from penstock.model.files.python_code import PythonCode
from penstock.model.query.query import ScriptKind, read_query
from penstock.model.script.arguments import OF_SLICE, PARTITION, Argument, default_of
from penstock.model.time.partition import PartitionSpec
from penstock.model.time.time_macros import TOKEN
from penstock.model.values.asset import DEFAULT_SCHEMA, FileName, Names, TableName, parse_asset
from penstock.sql.identifiers import fold, nearest

MAIN = "main"
ARGUMENT, PAYLOAD, ROWS, SPARK = "argument", "payload", "rows", "spark"
#: forms in which a step gets rows: those of Spark, Arrow, pandas, and dicts
FRAMES: Mapping[str, str] = {
    "pyspark.sql.DataFrame": "spark",
    "pyspark.sql.dataframe.DataFrame": "spark",
    "pyspark.sql.connect.dataframe.DataFrame": "spark",
    "pyarrow.Table": "arrow",
    "pyarrow.lib.Table": "arrow",
    "pandas.DataFrame": "pandas",
    "pandas.core.frame.DataFrame": "pandas",
}
_SESSIONS = (
    "pyspark.sql.SparkSession",
    "pyspark.sql.session.SparkSession",
    "pyspark.sql.connect.session.SparkSession",
)
#: the annotation of an argument -> its type (`penstock.model.script.arguments`)
TYPES: Mapping[str, str] = {
    "str": "text",
    "int": "bigint",
    "float": "double",
    "bool": "boolean",
    "bytes": "blob",
    "datetime.date": "date",
    "datetime.datetime": "timestamp",
    "datetime.time": "time",
    "decimal.Decimal": "decimal",
    "uuid.UUID": "uuid",
    "dict": "json",
    "list": "json",
}
_LISTS = ("str", "int", "float", "bool", "datetime.date", "datetime.datetime")
_KNOWN = (
    "str, int, float, bool, bytes, date, datetime, time, Decimal, UUID, dict, list, list[str], "
    "each also `| None`"
)
_BOUNDS = tuple(name for name in OF_SLICE if name != PARTITION)


@dataclass(frozen=True, slots=True)
class Parameter:
    """``role`` is `ARGUMENT`, `PAYLOAD`, `ROWS` (of ``table``, in a ``form``) or `SPARK`.

    One with a ``default`` is left to it where a run says nothing of it.
    """

    name: str
    role: str = ARGUMENT
    form: str = ""
    table: TableName | None = None
    default: bool = False


@dataclass(frozen=True, slots=True)
class PythonStep:
    """A Python step in place of a query. ``place`` is that of ``main``.

    ``uses_spark``: it needs the session of the run. ``reads`` are tables, and files as
    `FileName`; ``reads_slices_of`` are tables of which it reads the slice of the run only;
    ``writes`` are URIs of files that it writes. ``writes_itself``: by a helper, not
    by what ``main`` returns. ``digest`` changes when its code does.
    """

    place: Location
    parameters: tuple[Parameter, ...] = ()
    arguments: tuple[Argument, ...] = ()
    uses_spark: bool = False
    reads: tuple[TableName, ...] = ()
    reads_slices_of: frozenset[TableName] = frozenset()
    writes: tuple[str, ...] = ()
    writes_itself: bool = False
    partitioned_by_use: bool = False
    digest: str = ""

    @property
    def uses_partition(self) -> bool:
        """Return whether what it does may differ from slice to slice."""
        of_slice = any(argument.name in OF_SLICE for argument in self.arguments)
        return of_slice or self.partitioned_by_use


@dataclass(slots=True)
class _Signature:
    """``main`` under examination; ``tables`` are those of ``on`` lines."""

    code: PythonCode
    partition: PartitionSpec | None
    tables: Sequence[TableName]
    parameters: list[Parameter] = field(default_factory=list)
    arguments: list[Argument] = field(default_factory=list)
    findings: list[Diagnostic] = field(default_factory=list)

    def error(self, node: ast.AST, message: str, hint: str, rule: str = "python-main") -> None:
        self.findings.append(Diagnostic("error", message, self.code.where(node), hint, rule))

    def argument(self, node: ast.arg, kind: str, default: str | None, *, automatic: bool) -> None:
        argument = Argument(node.arg, kind, default, self.code.where(node), automatic)
        self.arguments.append(argument)
        self.parameters.append(Parameter(node.arg, default=default is not None))
        try:
            default_of(argument)
        except ArgumentError as error:
            self.error(node, error.message, "give it a default of its type", "argument")


def read_signature(
    code: PythonCode, partition: PartitionSpec | None, tables: Sequence[TableName]
) -> tuple[PythonStep | None, tuple[Diagnostic, ...]]:
    """Return what ``main`` needs; ``None`` and findings where that cannot be given to it."""
    functions = (
        node for node in code.tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    main = next((function for function in functions if function.name == MAIN), None)
    if main is None:
        return None, (_no_main(code),)
    signature = _Signature(code, partition, tables)
    for node, default in _parameters(main, signature):
        _read(node, default, signature)
    if signature.findings:
        return None, tuple(signature.findings)
    spark = any(each.role == SPARK or each.form == "spark" for each in signature.parameters)
    return PythonStep(
        place=code.where(main),
        parameters=tuple(signature.parameters),
        arguments=tuple(signature.arguments),
        uses_spark=spark or code.imports_module("pyspark"),
        digest=code.digest,
    ), ()


def _no_main(code: PythonCode) -> Diagnostic:
    functions = {n.name: n for n in code.tree.body if isinstance(n, ast.FunctionDef)}
    near = nearest(MAIN, functions, cutoff=0.7)
    place = Location(code.path, 1, 1) if near is None else code.where(functions[near])
    hint = "write def main(...): it returns the rows of the step"
    hint = f"did you mean def main, not def {near}?" if near else hint
    return Diagnostic("error", "the step has no function main", place, hint, "python-main")


def _parameters(
    main: ast.FunctionDef | ast.AsyncFunctionDef, signature: _Signature
) -> Iterator[tuple[ast.arg, ast.expr | None]]:
    """Each parameter with its default; those that cannot be given by name are findings."""
    args = main.args
    for node in (*args.posonlyargs, args.vararg, args.kwarg):
        if node is not None:
            message = f"main is called with names, which {node.arg} does not take"
            hint = "write each parameter by its name, without `*`, `**` and `/`"
            signature.error(node, message, hint)
    without = len(args.args) - len(args.defaults)
    yield from zip(args.args, [*[None] * without, *args.defaults], strict=True)
    yield from zip(args.kwonlyargs, args.kw_defaults, strict=True)


def _read(node: ast.arg, default: ast.expr | None, signature: _Signature) -> None:
    annotation = _annotation(node, signature)
    written = None if annotation is None else signature.code.dotted(annotation)
    if node.arg in OF_SLICE:
        _slice(node, written, default, signature)
    elif written in _SESSIONS:
        signature.parameters.append(Parameter(node.arg, SPARK))
    elif written in FRAMES or (_is_dicts(annotation) and _table(node.arg, signature)):
        _rows(node, FRAMES.get(written or "", "rows"), default, signature)
    elif node.arg == PAYLOAD and written in {None, "dict"}:
        signature.parameters.append(Parameter(node.arg, PAYLOAD))
    elif annotation is None:
        near = "its rows: a table of an `on` line needs a type too, such as pyarrow.Table"
        hint = near if _table(node.arg, signature) else f"write {node.arg}: str"
        signature.error(node, f"parameter {node.arg} has no type", hint)
    else:
        kind = _type_of(annotation, signature.code)
        if kind is None:
            shown = ast.unparse(annotation)
            message = f"parameter {node.arg} has the type {shown}, which no argument has"
            hint = f"the types are {_KNOWN}; rows are those of a pyspark DataFrame, pyarrow Table"
            signature.error(annotation, message, hint)
            return
        signature.argument(node, kind, _default_text(default), automatic=False)


def _annotation(node: ast.arg, signature: _Signature) -> ast.expr | None:
    """The type without ``| None``; one in quotes is read."""
    written = node.annotation
    if isinstance(written, ast.Constant) and isinstance(written.value, str):
        text = written.value
        try:
            written = ast.copy_location(ast.parse(text, mode="eval").body, written)
        except SyntaxError:
            signature.error(node, f"{text!r} is not a type", "write a type")
            return None
    return None if written is None else _required(written, signature.code)


def _required(node: ast.expr, code: PythonCode) -> ast.expr:
    """``T`` of ``T | None`` and ``Optional[T]``; other types as they are."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        sides = [node.left, node.right]
        others = [each for each in sides if ast.unparse(each) != "None"]
        return others[0] if len(others) == 1 else node
    if isinstance(node, ast.Subscript) and code.dotted(node.value) == "typing.Optional":
        return node.slice
    return node


def _slice(
    node: ast.arg, written: str | None, default: ast.expr | None, signature: _Signature
) -> None:
    """``partition``, ``partition_start`` and ``partition_end`` are the run's."""
    spec, name = signature.partition, node.arg
    if spec is None:
        hint = "add `# partitioned daily` to the header, or call the parameter something else"
        signature.error(node, f"{name} is the slice, and the step is not partitioned", hint)
        return
    if name in _BOUNDS and not spec.pattern:
        hint = "use partition, or another kind of partition"
        signature.error(node, f"a dynamic partition has no {name}", hint)
        return
    right = {"datetime.datetime": "timestamptz", "datetime.date": "date"}
    kind = right.get(written or "datetime.datetime") if name in _BOUNDS else OF_SLICE[name]
    if kind is None or (name == PARTITION and written not in {None, "str"}):
        hint = "write partition: str" if name == PARTITION else f"write {name}: datetime"
        signature.error(node, f"{name} is not of the type {written}", hint)
        return
    signature.argument(node, kind, None, automatic=True)
    if default is not None:  # the run has a slice in any case
        signature.parameters[-1] = Parameter(name)


def _is_dicts(node: ast.expr | None) -> bool:
    """``list[dict]``, whatever the dicts have."""
    return (
        isinstance(node, ast.Subscript)
        and ast.unparse(node.value) == "list"
        and ast.unparse(node.slice).split("[")[0] in {"dict", "Mapping"}
    )


def _table(name: str, signature: _Signature) -> TableName | None:
    return next((t for t in signature.tables if fold(t.table) == fold(name)), None)


def _rows(node: ast.arg, form: str, default: ast.expr | None, signature: _Signature) -> None:
    table = _table(node.arg, signature)
    same = [each for each in signature.tables if fold(each.table) == fold(node.arg)]
    if table is None:
        known = ", ".join(each.table for each in signature.tables)
        guess = nearest(node.arg, [each.table for each in signature.tables])
        hint = f"did you mean {guess}?" if guess else f"the tables of `on` lines are {known}"
        hint = hint if known else f"add `# on ducklake://main/{node.arg}` to the header"
        signature.error(node, f"no `on` line names a table {node.arg}", hint)
    elif len(same) > 1:
        message = f"{node.arg} may be {' or '.join(map(str, same))}"
        signature.error(node, message, f"read one by lake(...).read({node.arg!r})")
    elif default is not None:
        signature.error(node, f"{node.arg} is a table and needs no default", "take it away")
    else:
        signature.parameters.append(Parameter(node.arg, ROWS, form, table))


def _type_of(node: ast.expr, code: PythonCode) -> str | None:
    """The type of an argument."""
    if not isinstance(node, ast.Subscript):
        return TYPES.get(code.dotted(node) or "")
    outer, inner = code.dotted(node.value), code.dotted(node.slice)
    if outer == "list" and inner in _LISTS:
        return f"{TYPES[inner]}[]"
    return "json" if outer in {"dict", "list"} else None


def _default_text(node: ast.expr | None) -> str | None:
    """A default as the declaration of an argument has it; one that has to be evaluated is null, as
    ``main`` itself has it."""
    if node is None:
        return None
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return "null"
    writer = next((write for kind, write in _WRITERS if isinstance(value, kind)), None)
    return "null" if writer is None else writer(value)


_WRITERS: tuple[tuple[type | tuple[type, ...], Callable[[object], str]], ...] = (
    (str, lambda value: "'" + str(value).replace("'", "''") + "'"),
    (bool, lambda value: str(value).lower()),
    ((int, float), repr),
    ((dict, list), json.dumps),
)


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


def _find_named_table(call: ast.Call, lake: str, uses: Uses) -> TableName | None:
    node = _argument(call, 0, "table")
    written = uses.code.text_of(node)
    table = None if written is None else table_in(lake, written)
    if written is not None and table is None:
        uses.error(call, f"{written!r} names no table", "write table or schema.table", "table")
    return table


def _note_read(call: ast.Call, lake: str, uses: Uses) -> None:
    table = _find_named_table(call, lake, uses)
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
    uses.writes.append(Write(helper, _find_named_table(call, lake, uses), keys, call))


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
    "read": _note_read,
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
        asset = parse_asset(uri)
        is_partitioned = TOKEN in uri and "/" in uri and " " not in uri
        if (asset is None or asset.is_table) and not is_partitioned:
            continue
        roles = set(_roles({name}, code.tree, parents))
        if "write" in roles:
            uses.files[uri] = None
        elif roles:
            uses.reads[FileName.of(uses.lake, uri)] = None
        if roles and TOKEN in uri:
            uses.uses_partition = True


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
