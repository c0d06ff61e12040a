"""Forms of Spark's SQL that a translation to DuckDB's and back changes, with their counterparts.

`in_duckdb` proves a query by translating it twice. A cast, a division by a number and some
functions mean the same for certain types only, or come back in another form. Each becomes a marker
for the proof; then the marker is written as the counterpart for DuckDB, or as Spark's own form that
fails when it is analysed with other types.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import sqlglot

from penstock.lazy import exp
from penstock.sql.duckdb import guards

_MARK = "penstock_"
_T = exp.DType if hasattr(exp, "DType") else exp.DataType.Type
_TIMES = "date|timestamp%|interval%"
_NOT_TEXT = f"%int|float|double|decimal%|boolean|binary|variant|array%|map%|struct%|{_TIMES}"
_OF_ZONES = "timestamp|string|%int|float|double|decimal%|boolean|binary"


@dataclass(frozen=True, slots=True)
class Form:
    """``shell`` is Spark's form and ``duckdb`` DuckDB's, with operands ``:o0``, ``:o1``.

    ``types`` are those of each operand for which the two differ. ``kind`` is what the value is,
    whatever the operands are.
    """

    shell: exp.Expr
    operands: tuple[exp.Expr, ...]
    duckdb: str
    types: tuple[str, ...]
    kind: str = ""


def marked(tree: exp.Expr) -> tuple[exp.Expr, Sequence[Form]]:
    """A copy of Spark's tree with markers in the place of forms, and the forms by their numbers."""
    tree, forms = tree.copy(), list[Form]()
    for node in reversed(list(tree.walk(bfs=False))):
        new = _plain(node)
        form = None if new is not None else _form_of(node)
        if form is not None:
            new = exp.Anonymous(this=f"{_MARK}{form.kind}_{len(forms)}", expressions=form.operands)
            forms.append(form)
        if new is None:
            continue
        if node is tree:
            tree = new
        else:
            node.replace(new)
    return tree, forms


def marker(node: exp.Expr) -> exp.Expr | None:
    """A marker as it is, known as what its form is; None for another call."""
    name = str(node.name).lower()
    if not name.startswith(_MARK):
        return None
    kind = name.split("_")[1]
    return guards.known_as(kind, node) if kind else node


def for_duckdb(tree: exp.Expr, forms: Sequence[Form]) -> exp.Expr:
    """DuckDB's tree with the counterparts in the place of markers."""
    return _filled(tree, forms, lambda form, operands: _put(_parsed(form.duckdb), operands))


def for_spark(tree: exp.Expr, forms: Sequence[Form]) -> exp.Expr:
    """Spark's tree with the forms in the place of markers, refused by type."""

    def guarded(form: Form, operands: Sequence[exp.Expr]) -> exp.Expr:
        node = _put(form.shell, operands)
        for types, operand in zip(form.types, operands, strict=True):
            if types:
                name = type(form.shell).__name__
                node = guards.unless(name, types, node, guards.unguarded(operand))
        return node

    return _filled(tree, forms, guarded)


def _filled(
    tree: exp.Expr,
    forms: Sequence[Form],
    write: Callable[[Form, Sequence[exp.Expr]], exp.Expr],
) -> exp.Expr:
    for node in reversed(list(tree.find_all(exp.Anonymous))):
        if not str(node.name).lower().startswith(_MARK):
            continue
        form = forms[int(str(node.name).rpartition("_")[2])]
        is_asked = node.find_ancestor(exp.Typeof) is not None  # of a guard: it needs none itself
        new = _put(form.shell, node.expressions) if is_asked else write(form, node.expressions)
        if isinstance(new, exp.Binary | exp.Connector):
            new = exp.Paren(this=new)
        if node is tree:
            tree = new
        else:
            node.replace(new)
    return tree


def _put(shell: exp.Expr, operands: Sequence[exp.Expr]) -> exp.Expr:
    tree = exp.Paren(this=shell.copy())
    for place in list(tree.find_all(exp.Placeholder)):
        place.replace(operands[int(place.name[1:])].copy())
    inner: exp.Expr = tree.this
    return inner


@cache
def _parsed(template: str) -> exp.Expr:
    tree: exp.Expr = sqlglot.parse_one(template, read="duckdb")
    return tree


def _plain(node: exp.Expr) -> exp.Expr | None:
    """The same in other words of Spark's, which come back; None where there is nothing to do."""
    if isinstance(node, exp.If) and not isinstance(node.parent, exp.Case):
        case = exp.Case(ifs=[exp.If(this=node.this, true=node.args["true"])])
        case.set("default", node.args.get("false"))
        return case
    if isinstance(node, exp.Concat) and len(node.expressions) > 1 and not node.args["coalesce"]:
        first, *others = node.expressions
        for other in others:
            first = exp.DPipe(this=first, expression=other, safe=True)
        return exp.Paren(this=first)
    return None


def _form_of(node: exp.Expr) -> Form | None:
    rule = _FORMS.get(type(node))
    if rule is None or any(value for key, value in node.args.items() if key not in _READ):
        return None
    return rule(node)


_READ = frozenset({"this", "expression", "to", "unit", "safe", "typed", "_type"})


def _inside(node: exp.Expr) -> exp.Expr:
    """The operand of a function of dates, without the conversion that sqlglot adds."""
    is_added = isinstance(node, exp.TsOrDsToDate) and node.args.get("format") is None
    return node.this if is_added else node


def _of(
    node: exp.Expr,
    operands: Mapping[str, tuple[exp.Expr, str]],
    duckdb: str,
    kind: str = "",
) -> Form:
    """A form whose ``operands`` are children of the node, each with the types that it refuses."""
    shell = node.copy()
    for place, (operand, _) in enumerate(operands.values()):
        path = [*_path(operand, node)]
        target = shell
        for key in path:
            target = target.args[key]
        target.replace(exp.Placeholder(this=f"o{place}"))
    types = tuple(types for _, types in operands.values())
    return Form(
        shell, tuple(operand.copy() for operand, _ in operands.values()), duckdb, types, kind
    )


def _path(operand: exp.Expr, node: exp.Expr) -> list[str]:
    """The names of the arguments that lead from a node to an operand."""
    path: list[str] = []
    while operand is not node:
        assert operand.parent is not None, "it is inside"
        path.insert(0, str(operand.arg_key))
        operand = operand.parent
    return path


def _cast(node: exp.Expr) -> Form | None:
    """A cast that fails where it is not possible, as ANSI mode has it."""
    to, operand = node.args["to"], node.this
    if node.args.get("safe"):
        return None
    literal = guards.text_of(operand)
    if literal is not None and to.this == _T.TIMESTAMPNTZ and not _MOMENT.fullmatch(literal):
        return None
    truncated = _truncated(node)
    if truncated is not None:
        return truncated
    rule = _CASTS.get(to.this)
    if rule is None or (to.this == _T.DECIMAL and len(to.expressions) != 2):
        return None  # a DECIMAL without its size is of another one
    types, kind = rule
    form = _of(node, {"x": (operand, types)}, f"CAST(:o0 AS {to.sql('duckdb')})", kind)
    return _with_shell(form, exp.Cast(this=exp.Placeholder(this="o0"), to=to.copy()))


def _with_shell(form: Form, shell: exp.Expr) -> Form:
    return Form(shell, form.operands, form.duckdb, form.types, form.kind)


_CASTS: Mapping[object, tuple[str, str]] = {
    **dict.fromkeys((_T.TEXT, _T.VARCHAR), (guards.NOT_AS_TEXT, guards.TEXT)),
    **dict.fromkeys(
        (_T.TINYINT, _T.SMALLINT, _T.INT, _T.BIGINT), (f"float|double|decimal%|binary|{_TIMES}", "")
    ),
    _T.DOUBLE: (f"binary|{_TIMES}", guards.DOUBLE),
    _T.DECIMAL: (f"float|double|boolean|binary|{_TIMES}", ""),
    _T.BOOLEAN: (f"float|double|decimal%|binary|{_TIMES}", ""),
    _T.DATE: (_OF_ZONES.replace("string|", ""), guards.DATE),
    _T.TIMESTAMPNTZ: (_OF_ZONES, guards.MOMENT),  # a zone in a text counts for DuckDB alone
}
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}( \d{2}:\d{2}:\d{2}(\.\d{1,6})?)?")


def _truncated(node: exp.Expr) -> Form | None:
    """``CAST(DATE_TRUNC('month', x) AS DATE)``: no zone has a part in it, as by way of x alone."""
    inner, to = node.this, node.args["to"]
    if not isinstance(inner, exp.TimestampTrunc) or inner.args.get("zone") is not None:
        return None
    unit = inner.args["unit"].name.lower()
    if unit not in _UNITS or to.this not in {_T.DATE, _T.TIMESTAMPNTZ}:
        return None
    type_name = "DATE" if to.this == _T.DATE else "TIMESTAMP"
    text = f"CAST(date_trunc('{unit}', CAST(:o0 AS TIMESTAMP)) AS {type_name})"
    kind = guards.DATE if to.this == _T.DATE else guards.MOMENT
    form = _of(node, {"x": (inner.this, _OF_ZONES)}, text, kind)
    return _with_shell(form, exp.Cast(this=form.shell.this, to=to.copy()))


_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")


def _division(node: exp.Expr) -> Form | None:
    """By a number that is not zero, or by NULLIF(x, 0): elsewhere DuckDB divides by zero."""
    divisor = node.expression
    shell = exp.Div(this=exp.Placeholder(this="o0"), expression=exp.Placeholder(this="o1"))
    if guards.whole_number(divisor):
        types = ("float|decimal%|string|interval%", "")
    elif isinstance(divisor, exp.Nullif) and guards.whole_number(divisor.expression) == 0:
        types = ("float|decimal%|string|interval%", "float|decimal%|string|interval%")
    else:
        return None
    operands = (node.this.copy(), divisor.copy())
    return Form(shell, operands, ":o0 / :o1", types, guards.DOUBLE)


def _remainder(node: exp.Expr) -> Form | None:
    if not guards.whole_number(node.expression):
        return None
    operands = {"a": (node.this, "float|double|decimal%|string"), "b": (node.expression, "")}
    return _of(node, operands, ":o0 % :o1")


def _to_date(node: exp.Expr) -> Form | None:
    """``TO_DATE(x)``."""
    if isinstance(node.parent, _OF_DATES):
        return None
    types = _OF_ZONES.replace("string|", "")
    return _of(node, {"x": (node.this, types)}, "CAST(:o0 AS DATE)", guards.DATE)


_OF_DATES = (exp.DateDiff, exp.Year, exp.Quarter, exp.Month)  # look at it themselves


def _part(node: exp.Expr) -> Form | None:
    """``YEAR(x)`` of a date or a time without a zone."""
    operands = {"x": (_inside(node.this), _OF_ZONES)}
    return _of(node, operands, f"CAST({type(node).__name__.lower()}(:o0) AS INTEGER)")


def _length(node: exp.Expr) -> Form | None:
    return _of(node, {"x": (node.this, _NOT_TEXT)}, "CAST(length(:o0) AS INTEGER)")


def _trim(node: exp.Expr) -> Form | None:
    """Spark removes blanks alone, DuckDB by default every letter that is a space."""
    if node.args.get("expression") is not None or node.args.get("position"):
        return None
    return _of(node, {"x": (node.this, _NOT_TEXT)}, "trim(:o0, ' ')", guards.TEXT)


def _days_later(node: exp.Expr) -> Form | None:
    """``DATE_ADD(x, 3)``, a date."""
    if node.text("unit").lower() != "day" or guards.whole_number(node.expression) is None:
        return None
    operands = {"x": (node.this, _OF_ZONES), "n": (node.expression, "")}
    return _of(node, operands, "CAST(:o0 AS DATE) + :o1", guards.DATE)


def _days_between(node: exp.Expr) -> Form | None:
    """``DATEDIFF(b, a)`` in days."""
    if node.args.get("unit") is not None:
        return None
    later, earlier = _inside(node.this), _inside(node.expression)
    operands = {"b": (later, _OF_ZONES), "a": (earlier, _OF_ZONES)}
    text = "CAST(date_diff('day', CAST(:o1 AS DATE), CAST(:o0 AS DATE)) AS INTEGER)"
    return _of(node, operands, text)


def _moved(node: exp.Expr) -> Form | None:
    """``TIMESTAMPADD(day, 3, x)`` of a time without a zone."""
    unit, number = node.text("unit").lower(), guards.whole_number(node.expression)
    if unit not in _UNITS or number is None:
        return None
    text = f":o0 + INTERVAL '{number} {unit}'"
    return _of(node, {"x": (node.this, f"{_OF_ZONES}|date")}, text, guards.MOMENT)


_FORMS: Mapping[type[exp.Expr], Callable[[exp.Expr], Form | None]] = {
    **dict.fromkeys((exp.Cast, exp.TryCast), _cast),
    **dict.fromkeys((exp.Year, exp.Quarter, exp.Month), _part),
    exp.Div: _division,
    exp.Mod: _remainder,
    exp.Length: _length,
    exp.Trim: _trim,
    exp.TsOrDsAdd: _days_later,
    exp.TsOrDsToDate: _to_date,
    exp.DateDiff: _days_between,
    exp.TimestampAdd: _moved,
}
