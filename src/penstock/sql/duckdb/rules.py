"""Rows of the tables of rules, and the engine that applies one to a call.

A row has the signature of DuckDB's function, the class that sqlglot reads it as, and what Spark
has for it: a text in which ``:x`` is the argument ``x`` of the signature. The other columns say
what has to hold for the two to mean the same. A call for which it does not is refused, by its form
here, or by the types of its arguments when Spark analyses it (`guards`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.lazy import exp
from penstock.sql.duckdb import guards

Rule = Callable[[exp.Expr], exp.Expr]


@dataclass(frozen=True, slots=True)
class Row:
    """A function of DuckDB and what Spark has for it.

    Attributes:
        signature: DuckDB's names, separated by ``|``, with the names of the arguments:
            ``map_extract(m, k)``. Refusals have the first name. A rule that is a function needs no
            arguments here.
        node: The class that sqlglot reads the call as; None where it knows no more than the name.
        spark: Spark's text, or a function of the call that returns such a text or a tree. Empty
            where Spark has the same.
        refused: The types of arguments for which the two differ, as patterns of LIKE.
        checked: Names of the arguments whose types these are; empty for the first.
        texts: Names of the arguments that have to be texts.
        ordered: Names of the arguments whose order counts: no struct and no list.
        advice: What to write where a type is refused.
        kind: What the value is known as.
        fails: A condition under which DuckDB fails, or is not known to have Spark's value, and the
            message of the error.
        forms: What arguments have to be by their form, by sqlglot's names of them; the empty name
            is the call itself.
        otherwise: What is refused where they are not, and what to write instead, as in
            ``f of this form; write g(x)``. ``{}`` is the name of the function.
        title: What a refusal by type calls it instead of its name.
    """

    signature: str
    node: type[exp.Expr] | None = None
    spark: str | Callable[[exp.Expr], str | exp.Expr] = ""
    refused: str = ""
    checked: str = ""
    texts: str = ""
    ordered: str = ""
    advice: str = ""
    kind: str = ""
    fails: tuple[str, str] | None = None
    forms: Mapping[str, Callable[[Any], bool]] = field(default_factory=dict)
    otherwise: str = "{} of this form"
    title: str = ""

    @property
    def names(self) -> list[str]:
        """DuckDB's names of the function."""
        return self.signature.partition("(")[0].split("|")

    def __call__(self, node: exp.Expr) -> exp.Expr:
        """Return the call in Spark's SQL.

        Args:
            node: The call, whose arguments are translated already.

        Returns:
            The tree that stands for it.

        Raises:
            UnsupportedFeature: It is not known to mean the same.
        """
        for name, is_met in self.forms.items():
            if not is_met(node.args.get(name) if name else node):
                raise guards.refused(
                    *self.otherwise.replace("{}", guards.called(node)).split("; write ")
                )
        arguments = self._arguments(node)
        template = self.spark(node) if callable(self.spark) else self.spark
        if self.fails is not None:
            template = "IF({}, RAISE_ERROR('{}'), {})".format(*self.fails, template)
        if isinstance(template, str):
            value = guards.spark(template, **arguments) if template else node
        else:
            value = template
        title = self.title or self.names[0]
        if self.refused:
            operands = [arguments[name] for name in self.checked or [*arguments][:1]]
            value = guards.unless(title, self.refused, value, *operands, advice=self.advice)
        if self.texts:
            value = guards.of_text(title, value, *(arguments[name] for name in self.texts))
        return guards.known_as(self.kind, value) if self.kind else value

    def _arguments(self, node: exp.Expr) -> dict[str, exp.Expr]:
        names = [name for name in self.signature.partition("(")[2].rstrip(")").split(", ") if name]
        is_open = "..." in names  # what follows is for a check or the rule
        names = names[:-1] if is_open else names
        operands = arguments_of(node)
        is_longer = names and node.is_var_len_args and not is_open and len(operands) > len(names)
        if is_longer or len(operands) < len(names) or None in operands[: len(names)]:
            raise guards.refused(f"{self.names[0]} of this form")
        arguments = dict(zip(names, operands, strict=False))
        return arguments | {
            name: guards.in_order(self.names[0], arguments[name]) for name in self.ordered
        }


def arguments_of(node: exp.Expr) -> list[Any]:
    """Return the arguments of a call in their order.

    Args:
        node: The call.

    Returns:
        Its arguments; None for one that is omitted before another.
    """
    if isinstance(node, exp.Anonymous):
        return list(node.expressions)
    operands: list[Any] = []
    for key in node.arg_types:
        value = node.args.get(key)
        operands += value if isinstance(value, list) else [value]
    while operands and not isinstance(operands[-1], exp.Expr):
        operands.pop()
    return operands


def by_class(rows: Iterable[Row]) -> Mapping[type[exp.Expr], Rule]:
    """Return the rules of calls that sqlglot has a class for.

    Args:
        rows: Rows of any tables.

    Returns:
        The rule for each class.
    """
    return {row.node: row for row in rows if row.node is not None}


def by_name(rows: Iterable[Row]) -> Mapping[str, Rule]:
    """Return the rules of calls that sqlglot knows by their names alone.

    Args:
        rows: Rows of any tables.

    Returns:
        The rule for each name.
    """
    return {name: row for row in rows if row.node is None for name in row.names}


def is_absent(node: exp.Expr | None) -> bool:
    """Return whether an argument is omitted.

    Args:
        node: An argument of a call.

    Returns:
        Whether it is.
    """
    return not node


def is_constant_text(node: exp.Expr | None) -> bool:
    """Return whether it is a text that is written out.

    Args:
        node: An argument of a call.

    Returns:
        Whether it is.
    """
    return guards.text_of(node) is not None


def is_length(node: exp.Expr | None) -> bool:
    """Return whether it is a whole number above zero that is written out.

    Args:
        node: An argument of a call.

    Returns:
        Whether it is.
    """
    number = guards.whole_number(node)
    return number is not None and number > 0
