"""SQLMesh's ``@`` macros: expanded in the text of a script before anything else reads it.

What they may name is the documents' list (kinds.md, "macro variables"), and what a project has in
``macros/`` (`python_macros`). `at_scope` says what they stand for. Those that every project has
(``@EACH``, ``@IF``, ``@AND``) are here by name, and those that Penstock lacks, with what to write
instead.

SQLMesh's macros that make SQL of their arguments: ``@SAFE_ADD``, ``@PIVOT`` and the like.

Values of expressions of constants, for ``@IF``, ``@FILTER`` and ``@EVAL``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import reduce

from penstock.lazy import exp
from penstock.model.macros.at_scope import AtMacros, Builtin, Made, Scope
from penstock.model.script.at_text import (
    MARKS,
    Lambda,
    MacroError,
    bare,
    substituted,
    tokens_of,
    unpacked,
)
from penstock.model.time.time_macros import TIMES
from penstock.sql.dialect import SPARK
from penstock.sql.identifiers import quote_identifier
from penstock.sql.literals import plain_text_literal, text_literal
from penstock.sql.query.edits import Mapped, edited
from penstock.sql.text import Unreadable, parse_expression
from penstock.sql.tokens import STRING, Unclosed, words

_NO_VALUE = "_sqlmesh_surrogate_key_null_"  # in place of NULL, so that keys are those of SQLMesh


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a call: texts by position, and by the names in ``options``."""

    plain: Sequence[str]
    named: Mapping[str, str]
    scope: Scope

    @property
    def dialect(self) -> str:
        return self.scope.dialect

    def text(self, name: str, default: str) -> str:
        """An option without its quotes."""
        return bare(self.named[name], self.dialect) if name in self.named else default

    def flag(self, name: str, *, default: bool) -> bool:
        return self.named[name].strip().upper() == "TRUE" if name in self.named else default


def _builtin(shape: str, count: range, options: Sequence[str] = ()) -> Callable[..., Builtin]:
    """A macro with so many arguments and these options; ``shape`` is how it is written."""

    def wrap(make: Callable[[Arguments], Made]) -> Builtin:
        def call(written: Sequence[str], scope: Scope) -> Made:
            plain: list[str] = []
            named: dict[str, str] = {}
            for text in written:
                key, sign, value = text.partition(":=")
                if sign and key.strip().lower() in options:
                    named[key.strip().lower()] = scope.expanded(value.strip())
                else:
                    plain += scope.spliced([text])
            if len(plain) not in count:
                name = shape.partition("(")[0]
                raise MacroError(f"{name} has {len(plain)} arguments", f"write {shape}")
            return make(Arguments(plain, named, scope))

        return call

    return wrap


def _operand(text: str, dialect: str) -> str:
    """An argument as an operand: in brackets unless it is one word."""
    return text if len(tokens_of(text, dialect)) == 1 else f"({text})"


def _safe(sign: str) -> Callable[[Arguments], Made]:
    """A sum, or a difference, in which NULL counts as 0 unless all are NULL."""

    def make(given: Arguments) -> Made:
        unknown = " AND ".join(f"{_operand(x, given.dialect)} IS NULL" for x in given.plain)
        terms = f" {sign} ".join(f"COALESCE({text}, 0)" for text in given.plain)
        return f"CASE WHEN {unknown} THEN NULL ELSE {terms} END"

    return make


def _safe_div(given: Arguments) -> Made:
    over, under = given.plain
    return f"{_operand(over, given.dialect)} / NULLIF({under}, 0)"


def _surrogate_key(given: Arguments) -> Made:
    kind = "STRING" if given.dialect == SPARK else "TEXT"
    literal = text_literal if given.dialect == SPARK else plain_text_literal
    missing, mark = literal(_NO_VALUE), literal("|")
    fields = [f"COALESCE(CAST({field} AS {kind}), {missing})" for field in given.plain]
    # Where SQLMesh writes || for DuckDB, which is the same of texts that are not NULL.
    key = f"CONCAT({f', {mark}, '.join(fields)})"
    function = given.text("hash_function", "MD5").upper()
    bits = function.removeprefix("SHA")
    if given.dialect == SPARK and bits in {"256", "512"}:  # which Spark has by another name
        return f"SHA2({key}, {bits})"
    return f"{function}({key})"


def _deduplicate(given: Arguments) -> Made:
    table, keys, orders = given.plain
    by = ", ".join(unpacked(keys.strip(), given.dialect))
    order = ", ".join(_text_of(text, given.dialect) for text in unpacked(orders, given.dialect))
    window = f"ROW_NUMBER() OVER (PARTITION BY {by} ORDER BY {order})"
    if given.dialect != SPARK:
        return f"SELECT * FROM {table} QUALIFY {window} = 1"
    inner = f"SELECT *, {window} AS _w FROM {table}"
    return f"SELECT * EXCEPT (_w) FROM ({inner}) AS _t WHERE _w = 1"


def _text_of(written: str, dialect: str) -> str:
    tokens = tokens_of(written, dialect)
    if len(tokens) != 1 or tokens[0].kind != STRING:
        raise MacroError(f"`{written}` is not a text", "write ['a DESC', 'b']")
    return tokens[0].value


def _pivot(given: Arguments) -> Made:
    column, values = given.plain
    dialect, named = given.dialect, given.named
    distinct = "DISTINCT " if given.flag("distinct", default=False) else ""
    then, other = named.get("then_value", "1"), named.get("else_value", "0")
    made = []
    for value in unpacked(values.strip(), dialect):
        case = f"CASE WHEN {column} {given.text('cmp', '=')} {value} THEN {then} ELSE {other} END"
        projection = f"{given.text('agg', 'SUM')}({distinct}{case})"
        if given.flag("alias", default=True):
            name = f"{given.text('prefix', '')}{bare(value, dialect)}{given.text('suffix', '')}"
            quoted = given.flag("quote", default=True)
            shown = quote_identifier(name, mark=MARKS[dialect]) if quoted else name
            projection = f"{projection} AS {shown}"
        made.append(projection)
    return made


def _haversine(given: Arguments) -> Made:
    first, second, third, fourth, *unit = given.plain
    rates = {"mi": "1.0", "km": "1.60934"}
    said = bare(unit[0], given.dialect) if unit else given.text("unit", "mi")
    if said not in rates:
        raise MacroError(f"`{said}` is not a unit of @HAVERSINE_DISTANCE", "write 'mi' or 'km'")
    lat1, lon1, lat2, lon2 = (_operand(x, given.dialect) for x in (first, second, third, fourth))
    across = f"POWER(SIN(RADIANS(({lat2} - {lat1}) / 2)), 2)"
    along = f"POWER(SIN(RADIANS(({lon2} - {lon1}) / 2)), 2)"
    cosines = f"COS(RADIANS({lat1})) * COS(RADIANS({lat2}))"
    return f"7922 * ASIN(SQRT(({across}) + ({cosines} * {along}))) * {rates[said]}"


def _var(given: Arguments) -> Made:
    name, *default = given.plain
    value = given.scope.known(_text_of(name, given.dialect))
    if value is None and not default:
        raise given.scope.unknown(_text_of(name, given.dialect), given.scope, False)
    return default[0] if value is None else value


_SOME = range(1, 1000)
_PIVOT = (
    "alias",
    "agg",
    "cmp",
    "prefix",
    "suffix",
    "then_value",
    "else_value",
    "quote",
    "distinct",
)
LIBRARY: Mapping[str, Builtin] = {
    "safe_add": _builtin("@SAFE_ADD(a, b)", _SOME)(_safe("+")),
    "safe_sub": _builtin("@SAFE_SUB(a, b)", _SOME)(_safe("-")),
    "safe_div": _builtin("@SAFE_DIV(a, b)", range(2, 3))(_safe_div),
    "generate_surrogate_key": _builtin("@GENERATE_SURROGATE_KEY(a, b)", _SOME, ("hash_function",))(
        _surrogate_key
    ),
    "deduplicate": _builtin("@DEDUPLICATE(table, [a, b], ['c DESC'])", range(3, 4))(_deduplicate),
    "pivot": _builtin("@PIVOT(column, ['a', 'b'])", range(2, 3), _PIVOT)(_pivot),
    "haversine_distance": _builtin(
        "@HAVERSINE_DISTANCE(lat1, lon1, lat2, lon2, 'km')", range(4, 6), ("unit",)
    )(_haversine),
    "var": _builtin("@VAR('name', default)", range(1, 3))(_var),
}


def value(text: str, dialect: str) -> exp.Expr:
    """An expression with all of it worked out that is written out. Raises MacroError."""
    from sqlglot.optimizer.simplify import simplify

    try:
        tree = parse_expression(text, dialect)
    except Unreadable as error:
        raise MacroError(f"`{text}` cannot be read{error}", "write an expression") from None
    found: exp.Expr = simplify(_worked_out(tree), dialect=dialect)
    return found


def is_true(text: str, dialect: str) -> bool:
    """Return whether a condition holds; of a number or a text, whether it is there and not zero."""
    found = value(text, dialect)
    if isinstance(found, exp.Boolean):
        return bool(found.this)
    if isinstance(found, exp.Null):
        return False
    if isinstance(found, exp.Literal):
        return bool(found.this) if found.is_string else float(found.this) != 0
    raise MacroError(
        f"`{text}` is not known to be true or false", "compare values that are written out"
    )


def _worked_out(tree: exp.Expr) -> exp.Expr:
    """Return what sqlglot does not simplify, from the inside out: IN, LIKE, texts, equal names."""
    from sqlglot.optimizer.simplify import simplify

    root = tree.copy()
    for node in reversed(list(root.walk(bfs=False))):
        made = _made_of(simplify(node.copy()) if node.args else node)
        if made is None:
            continue
        if node is root:
            return made
        node.replace(made)
    return root


def _made_of(node: exp.Expr) -> exp.Expr | None:
    """Return what a node of constants is; None where it stays."""
    functions: Mapping[type[exp.Expr], Callable[[exp.Expr], exp.Expr | None]] = {
        exp.In: _in,
        exp.EQ: _equal,
        exp.NEQ: _equal,
        exp.Like: _like,
        exp.Lower: lambda of: _text(of, str.lower),
        exp.Upper: lambda of: _text(of, str.upper),
        exp.Trim: lambda of: None if of.expression else _text(of, str.strip),
        exp.Length: _length,
        exp.Is: _is_null,
    }
    function = functions.get(type(node))
    return node if function is None else function(node)


def _in(node: exp.Expr) -> exp.Expr | None:
    from sqlglot.optimizer.simplify import simplify

    if not node.expressions:
        return None
    equal = [exp.EQ(this=node.this.copy(), expression=item.copy()) for item in node.expressions]
    found: exp.Expr = simplify(exp.or_(*(_equal(each) or each for each in equal)))
    return found


def _equal(node: exp.Expr) -> exp.Expr | None:
    """Names are equal where they are the same: ``a = a`` in ``x -> @IF(x = a, ...)``."""
    from sqlglot.optimizer.simplify import simplify

    left, right = node.this, node.expression
    if isinstance(left, exp.Column) and isinstance(right, exp.Column):
        same = left.sql().lower() == right.sql().lower()
        return exp.Boolean(this=same == isinstance(node, exp.EQ))
    made: exp.Expr = simplify(node.copy())
    return made


def _like(node: exp.Expr) -> exp.Expr | None:
    if not (node.this.is_string and node.expression.is_string):
        return None
    parts = (_WILD.get(letter, re.escape(letter)) for letter in node.expression.this)
    return exp.Boolean(this=re.fullmatch("".join(parts), node.this.this, re.DOTALL) is not None)


_WILD = {"%": ".*", "_": "."}


def _text(node: exp.Expr, function: Callable[[str], str]) -> exp.Expr | None:
    return exp.Literal.string(function(node.this.this)) if node.this.is_string else None


def _length(node: exp.Expr) -> exp.Expr | None:
    return exp.Literal.number(len(node.this.this)) if node.this.is_string else None


def _is_null(node: exp.Expr) -> exp.Expr | None:
    if not isinstance(node.expression, exp.Null):
        return None
    if isinstance(node.this, exp.Literal | exp.Null | exp.Boolean):
        return exp.Boolean(this=isinstance(node.this, exp.Null))
    return None


def need(name: str, written: Sequence[str], least: int, most: int, shape: str) -> None:
    """Raise MacroError unless the number of arguments fits."""
    if not least <= len(written) <= most:
        raise MacroError(f"@{name} has {len(written)} arguments", f"write {shape}")


def _def(written: Sequence[str], scope: Scope) -> Made:
    need("DEF", written, 2, 2, "@DEF(name, expression) or @DEF(name, x -> expression)")
    function = Lambda.of(written[1], scope.dialect)
    scope.defined[written[0].strip().lower()] = written[1] if function is None else function
    return ""


def _if(written: Sequence[str], scope: Scope) -> Made:
    need("IF", written, 2, 3, "@IF(condition, then) or @IF(condition, then, else)")
    chosen = written[1:2] if _is_true(written[0], scope) else written[2:]
    made = scope.spliced(chosen)
    return made[0] if len(made) == 1 else made


def _is_true(written: str, scope: Scope) -> bool:
    return is_true(scope.expanded(written), scope.dialect)


def _of_lambda(name: str, written: Sequence[str], scope: Scope) -> Lambda:
    if len(written) < 2:
        need(name, written, 2, 2, f"@{name}([a, b], x -> ...)")
    function = Lambda.of(written[-1], scope.dialect)
    if function is None:
        raise MacroError(f"`{written[-1]}` is not a function", f"write @{name}([a, b], x -> ...)")
    return function


def _items(written: Sequence[str], scope: Scope) -> list[str]:
    """The items of one list, or several items."""
    if len(written) != 1:
        return scope.spliced(written)
    made = scope.list_of(written[0])
    if made is not None and len(made) != 1:
        return [each for each in made if each.strip()]
    return unpacked(made[0] if made else scope.expanded(written[0]).strip(), scope.dialect)


def _values(item: str, function: Lambda, scope: Scope) -> Sequence[str]:
    """Return what a function gets of an item: of ``(a, b)`` both where it has two parameters."""
    return [item] if len(function.names) == 1 else unpacked(item, scope.dialect)


def _each(written: Sequence[str], scope: Scope) -> Made:
    function = _of_lambda("EACH", written, scope)
    items = _items(written[:-1], scope)
    return [scope.applied(function, _values(item, function, scope)) for item in items]


def _filter(written: Sequence[str], scope: Scope) -> Made:
    function = _of_lambda("FILTER", written, scope)
    asked = [(each, _values(each, function, scope)) for each in _items(written[:-1], scope)]
    return [each for each, values in asked if _is_true(scope.applied(function, values), scope)]


def _reduce(written: Sequence[str], scope: Scope) -> Made:
    function = _of_lambda("REDUCE", written, scope)
    items = _items(written[:-1], scope)
    return reduce(lambda a, b: scope.applied(function, [a, b]), items) if items else ""


def _joined(word: str) -> Builtin:
    """Conditions with a word between them; NULL is none, and of none it is TRUE."""

    def join(written: Sequence[str], scope: Scope) -> Made:
        texts = [item for each in written for item in _items([each], scope)]
        conditions = [text for text in texts if text.strip().upper() not in {"", "NULL"}]
        return f" {word} ".join(f"({text})" for text in conditions) or "TRUE"

    return join


def _eval(written: Sequence[str], scope: Scope) -> Made:
    need("EVAL", written, 1, 1, "@EVAL(1 + 1)")
    found = value(scope.expanded(written[0]), scope.dialect)
    return str(found.sql(scope.dialect))


def _sql(written: Sequence[str], scope: Scope) -> Made:
    need("SQL", written, 1, 1, "@SQL('text')")
    text = scope.expanded(written[0])
    tokens = tokens_of(text, scope.dialect)
    if len(tokens) != 1 or tokens[0].kind != STRING:
        raise MacroError(f"`{text}` is not a text", "write @SQL('text')")

    def value_of(name: str) -> str | None:
        value = scope.known(name)
        return None if value is None else bare(value, scope.dialect)

    return scope.expanded(substituted(tokens[0].value, value_of))


BUILTINS: Mapping[str, Builtin] = {
    "def": _def,
    "if": _if,
    "each": _each,
    "filter": _filter,
    "reduce": _reduce,
    "and": _joined("AND"),
    "or": _joined("OR"),
    "eval": _eval,
    "sql": _sql,
}


_CLAUSE = "write @IF(condition, ...) inside of the clause, or AND @IF(condition, a > 1, TRUE)"
_OF_ENVIRONMENTS = "environments are settings, which macros do not read; take it out"

#: by their names in small letters
ELSEWHERE: Mapping[str, str] = {
    "star": "list the columns, or write SELECT * EXCEPT (a, b)",
    "union": "write SELECT a, b FROM t UNION ALL SELECT a, b FROM u",
    "with": "write the WITH; a common table expression that nothing reads costs nothing",
    "join": "write the JOIN, or two models",
    "where": _CLAUSE,
    "group_by": _CLAUSE,
    "having": _CLAUSE,
    "order_by": _CLAUSE,
    "limit": _CLAUSE,
    "blueprint_var": "write a file for each model, with @DEF(name, value)",
    "resolve_template": "write the path; @this_model is the table",
    "physical_location": "write the path; @this_model is the table",
    "this_env": _OF_ENVIRONMENTS,
    "schemas": _OF_ENVIRONMENTS,
    "views": _OF_ENVIRONMENTS,
    "date_spine": "write SELECT explode(sequence(DATE '2026-01-01', DATE '2026-12-31'))",
}


_NEAREST = 3


def expand(text: str, start: int, dialect: str, macros: AtMacros) -> Mapped | None:
    """The text with its macros expanded from ``start`` on; ``None`` where it has none.

    Raises MacroError with the place in ``text``.
    """
    if "@" not in text[start:]:
        return None
    try:
        tokens = words(text, dialect, start)
    except Unclosed:
        return None  # which reading the query reports
    library = {name: each for name, each in LIBRARY.items() if name not in macros.functions}
    scope = Scope(macros, dialect, {**library, **BUILTINS}, _unknown)
    edits = list(scope.edits(text, tokens))
    return edited(text, edits) if edits else None


def expanded(text: str, dialect: str, macros: AtMacros) -> str:
    """A text with its macros expanded. Raises MacroError."""
    made = expand(text, 0, dialect, macros)
    return text if made is None else made.text


def _unknown(name: str, scope: Scope, called: bool) -> MacroError:
    """Return what to say of a name that nothing has; of SQLMesh's own, what to write instead."""
    folded = name.lower()
    message = f"macro @{name} does not exist"
    if folded in ELSEWHERE:
        return MacroError(f"@{name} is a macro of SQLMesh that Penstock lacks", ELSEWHERE[folded])
    functions = {*scope.builtins, *scope.macros.functions}
    own = (*scope.given, *scope.defined, *scope.macros.variables, *scope.macros.settings)
    variables = {*own, *TIMES}
    if called:
        near = _near(folded, functions) or _near(folded, variables)
        other = (
            f"or define it: a function {name} marked @macro in macros/, or @DEF({name}, x -> ...)"
        )
        return MacroError(message, f"{near}{other}" if near else other.removeprefix("or "))
    if folded in functions:
        called_as = f"@{name} is a macro, which is called with brackets"
        return MacroError(called_as, f"write @{name}()")
    near = _near(folded, variables) or _near(folded, functions - {"var"})
    other = (
        f"for a variable of your own write {name} = ... in [project.variables] of penstock.toml, "
        f"@DEF({name}, value) here, or `-- ${name} (text)` in the header and ${name} in the query"
    )
    return MacroError(message, f"{near}{other}", missing=name)


def _near(name: str, known: Collection[str]) -> str:
    found = get_close_matches(name, sorted(known), n=_NEAREST, cutoff=0.6)
    return f"did you mean {' or '.join(f'@{each}' for each in found)}? " if found else ""
