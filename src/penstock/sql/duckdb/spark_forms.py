"""Forms of Spark's SQL that a translation to DuckDB's and back changes, with their counterparts.

`in_duckdb` proves a query by translating it twice. A cast, a division by a number and some
functions mean the same for certain types only, or come back in another form. Each becomes a marker
for the proof; then the marker is written as the counterpart for DuckDB, or as Spark's own form that
fails when it is analysed with other types.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import sqlglot

from penstock.lazy import exp
from penstock.sql.duckdb import guards

_MARK = "penstock_"
_T = exp.DType if hasattr(exp, "DType") else exp.DataType.Type
_TIMES = "date|timestamp%|interval%"
_NOT_TEXT = f"%int|float|double|decimal%|boolean|binary|variant|array%|map%|struct%|{_TIMES}"
_OF_ZONES = "timestamp|string|%int|float|double|decimal%|boolean|binary"
_NO_DATES = _OF_ZONES.replace("string|", "")


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
        if new is not None:
            tree = guards.substitute(tree, node, new)
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
    tree: exp.Expr, forms: Sequence[Form], write: Callable[[Form, Sequence[exp.Expr]], exp.Expr]
) -> exp.Expr:
    for node in reversed(list(tree.find_all(exp.Anonymous))):
        if not str(node.name).lower().startswith(_MARK):
            continue
        form = forms[int(str(node.name).rpartition("_")[2])]
        is_asked = node.find_ancestor(exp.Typeof) is not None  # of a guard: it needs none itself
        new = _put(form.shell, node.expressions) if is_asked else write(form, node.expressions)
        if isinstance(new, exp.Binary | exp.Connector):
            new = exp.Paren(this=new)
        tree = guards.substitute(tree, node, new)
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


@dataclass(frozen=True, slots=True)
class _Row:
    """A form of Spark's, and DuckDB's counterpart.

    The operands are the first arguments, as many as ``types`` has. ``{number}`` and ``{unit}`` in
    ``duckdb`` are the arguments of these kinds. ``is_met`` is what has to hold for a call.
    """

    node: type[exp.Expr]
    duckdb: str
    types: tuple[str, ...]
    kind: str = ""
    is_met: Callable[[exp.Expr], bool] = lambda _: True


def _form_of(node: exp.Expr) -> Form | None:
    if any(value for key, value in node.args.items() if key not in _READ):
        return None
    if type(node) in _RULES:
        return _RULES[type(node)](node)
    row = _ROWS.get(type(node))
    if row is None or not row.is_met(node):
        return None
    number, unit = guards.whole_number(node.args.get("expression")), node.text("unit").lower()
    text = row.duckdb.format(number=number, unit=unit)
    return _of(node, [_inside(node.this), _inside(node.expression)], text, row.types, row.kind)


_READ = frozenset({"this", "expression", "to", "unit", "safe", "typed", "_type"})


def _inside(node: exp.Expr) -> exp.Expr:
    """The operand of a function of dates, without the conversion that sqlglot adds."""
    is_added = isinstance(node, exp.TsOrDsToDate) and node.args.get("format") is None
    return node.this if is_added else node


def _of(
    node: exp.Expr,
    operands: Sequence[exp.Expr],
    duckdb: str,
    types: tuple[str, ...],
    kind: str = "",
) -> Form:
    """A form whose operands are within the node, each with the types that it refuses."""
    taken = tuple(operands[: len(types)])
    for place, operand in enumerate(taken):
        operand.replace(exp.Placeholder(this=f"o{place}"))
    return Form(node.copy(), taken, duckdb, types, kind)


def _cast(node: exp.Expr) -> Form | None:
    """A cast that fails where it is not possible, as ANSI mode has it."""
    to, operand = node.args["to"], node.this
    literal = guards.text_of(operand)
    if literal is not None and to.this == _T.TIMESTAMPNTZ and not _MOMENT.fullmatch(literal):
        return None
    types, kind = _CASTS.get(to.this, ("", None))
    duckdb = f"CAST(:o0 AS {to.sql('duckdb')})"
    is_truncated = (
        isinstance(operand, exp.TimestampTrunc)
        and operand.args.get("zone") is None
        and operand.args["unit"].name.lower() in _UNITS
    )
    if is_truncated and to.this in _TRUNCATED:
        # No zone has a part in it, as by way of the moment alone.
        unit = operand.args["unit"].name.lower()
        types, operand = _OF_ZONES, operand.this
        duckdb = f"CAST(date_trunc('{unit}', CAST(:o0 AS TIMESTAMP)) AS {_TRUNCATED[to.this]})"
    elif to.this == _T.DECIMAL and len(to.expressions) != 2:
        return None  # a DECIMAL without its size is of another one
    if kind is None or node.args.get("safe"):
        return None
    form = _of(node, [operand], duckdb, (types,), kind)
    return replace(form, shell=exp.Cast(this=form.shell.this, to=to.copy()))


_CASTS: Mapping[object, tuple[str, str | None]] = {
    **dict.fromkeys((_T.TEXT, _T.VARCHAR), (guards.NOT_AS_TEXT, guards.TEXT)),
    **dict.fromkeys(
        (_T.TINYINT, _T.SMALLINT, _T.INT, _T.BIGINT), (f"float|double|decimal%|binary|{_TIMES}", "")
    ),
    _T.DOUBLE: (f"binary|{_TIMES}", guards.DOUBLE),
    _T.DECIMAL: (f"float|double|boolean|binary|{_TIMES}", ""),
    _T.BOOLEAN: (f"float|double|decimal%|binary|{_TIMES}", ""),
    _T.DATE: (_NO_DATES, guards.DATE),
    _T.TIMESTAMPNTZ: (_OF_ZONES, guards.MOMENT),  # a zone in a text counts for DuckDB alone
}
_TRUNCATED = {_T.DATE: "DATE", _T.TIMESTAMPNTZ: "TIMESTAMP"}
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}( \d{2}:\d{2}:\d{2}(\.\d{1,6})?)?")
_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")


def _division(node: exp.Expr) -> Form | None:
    """By a number that is not zero, or by NULLIF(x, 0): elsewhere DuckDB divides by zero."""
    divisor = node.expression
    types = "float|decimal%|string|interval%"
    if guards.whole_number(divisor):
        of_divisor = ""
    elif isinstance(divisor, exp.Nullif) and guards.whole_number(divisor.expression) == 0:
        of_divisor = types
    else:
        return None
    shell = exp.Div(this=exp.Placeholder(this="o0"), expression=exp.Placeholder(this="o1"))
    operands = (node.this.copy(), divisor.copy())
    return Form(shell, operands, ":o0 / :o1", (types, of_divisor), guards.DOUBLE)


_RULES: Mapping[type[exp.Expr], Callable[[exp.Expr], Form | None]] = {
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Div: _division,
}
_OF_DATES = (exp.DateDiff, exp.Year, exp.Quarter, exp.Month)  # look at the conversion themselves
_ROWS: Mapping[type[exp.Expr], _Row] = {
    row.node: row
    for row in (
        _Row(exp.Year, "CAST(year(:o0) AS INTEGER)", (_OF_ZONES,)),
        _Row(exp.Quarter, "CAST(quarter(:o0) AS INTEGER)", (_OF_ZONES,)),
        _Row(exp.Month, "CAST(month(:o0) AS INTEGER)", (_OF_ZONES,)),
        _Row(exp.Length, "CAST(length(:o0) AS INTEGER)", (_NOT_TEXT,)),
        _Row(
            exp.Mod,
            ":o0 % :o1",
            ("float|double|decimal%|string", ""),
            is_met=lambda node: bool(guards.whole_number(node.expression)),
        ),
        _Row(  # Spark removes blanks alone, DuckDB by default every letter that is a space
            exp.Trim,
            "trim(:o0, ' ')",
            (_NOT_TEXT,),
            guards.TEXT,
            lambda node: node.args.get("expression") is None,
        ),
        _Row(  # DATE_ADD(x, 3), a date
            exp.TsOrDsAdd,
            "CAST(:o0 AS DATE) + :o1",
            (_OF_ZONES, ""),
            guards.DATE,
            lambda node: node.text("unit").lower() == "day" and _has_number(node),
        ),
        _Row(
            exp.TsOrDsToDate,
            "CAST(:o0 AS DATE)",
            (_NO_DATES,),
            guards.DATE,
            lambda node: not isinstance(node.parent, _OF_DATES),
        ),
        _Row(  # DATEDIFF(b, a) in days
            exp.DateDiff,
            "CAST(date_diff('day', CAST(:o1 AS DATE), CAST(:o0 AS DATE)) AS INTEGER)",
            (_OF_ZONES, _OF_ZONES),
            is_met=lambda node: node.args.get("unit") is None,
        ),
        _Row(  # TIMESTAMPADD(day, 3, x) of a time without a zone
            exp.TimestampAdd,
            ":o0 + INTERVAL '{number} {unit}'",
            (f"{_OF_ZONES}|date",),
            guards.MOMENT,
            lambda node: node.text("unit").lower() in _UNITS and _has_number(node),
        ),
    )
}


def _has_number(node: exp.Expr) -> bool:
    return guards.whole_number(node.expression) is not None
