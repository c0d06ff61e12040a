"""A Python step: ``def main(...)``, whose parameters say what it needs, read by `ast`.

seeds/partitioned-pipelines.md has the slice (``partition: str``) and the names of a payload as
parameters; tables that an ``on`` line names are parameters by their names too.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from penstock.errors import ArgumentError, Diagnostic, Location
from penstock.model.files.python_code import PythonCode
from penstock.model.script.arguments import OF_SLICE, PARTITION, Argument, default_of
from penstock.model.time.partition import PartitionSpec
from penstock.model.values.asset import TableName
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
#: the annotation of an argument -> its type (`penstock.model.script.argument_types`)
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
