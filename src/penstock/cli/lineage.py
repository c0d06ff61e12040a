"""``penstock lineage``: what columns derive from, and what derives from them, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.cli.options import common_options, complete_model, load_project
from penstock.cli.output import print_json, say
from penstock.rendering.text import visible

if TYPE_CHECKING:
    from rich.tree import Tree

    from penstock.model.lineage.trace import Trace, TracedColumn
    from penstock.model.lineage.values import Input


@click.command(
    "lineage",
    short_help="Show what columns derive from, or what derives from them.",
    epilog="""\b
Examples:
  penstock lineage marts/delays_daily
  penstock lineage marts/delays_daily.carrier
  penstock lineage raw/flights.dest --downstream
  penstock lineage clean/flights --rows --json""",
)
@click.argument("of", metavar="MODEL[.COLUMN]", shell_complete=complete_model)
@click.option(
    "--upstream",
    "direction",
    flag_value="upstream",
    default="upstream",
    help="Show what it derives from (the default).",
)
@click.option(
    "--downstream", "direction", flag_value="downstream", help="Show what derives from it."
)
@click.option(
    "--rows",
    is_flag=True,
    help="Also follow what decides which rows exist: filters, join keys, groups.",
)
@common_options
def command(
    *, of: str, direction: str, rows: bool, project_dir: Path | None, as_json: bool
) -> None:
    """Show the columns of MODEL, or one, with those that they derive from, over all hops.

    MODEL is a model, the table that one makes, or a table or file that models read. Behind a column
    stands how it acts, unless its value is used: condition, window, filter, join or group. What is
    not known is said, with the reason. Starts no Spark.
    """
    with load_project(project_dir) as project:
        trace = project.lineage(of, direction, rows=rows)
    if as_json:
        print_json(trace)
        return
    for line in lines(trace):
        say(line)


def lines(trace: Trace) -> Iterator[str]:
    """A trace as lines of text: the tree of each column asked for, then what concerns them all."""
    seen: set[str] = set()
    for column in trace.columns[: trace.starts]:
        yield from _drawn(_tree(column, trace, seen))
    if trace.direction == "upstream" and trace.rows:
        yield f"rows of {trace.asset}: {', '.join(map(_link, trace.rows))}"
    for why in trace.unknown:
        yield f"not known of {trace.asset}: {why}"


def _tree(start: TracedColumn, trace: Trace, seen: set[str]) -> Tree:
    """Each column is followed once, where it comes first; ``seen`` grows."""
    from rich.text import Text
    from rich.tree import Tree

    by_name = {str(column).casefold(): column for column in trace.columns}
    root = Tree(Text(_described(start)))
    seen.add(str(start).casefold())
    waiting = [(root, link) for link in reversed(start.links)]
    while waiting:
        branch, link = waiting.pop()
        reached = by_name[str(link).casefold()]
        if str(link).casefold() in seen and reached.links:
            branch.add(Text(f"{_link(link)} (above)"))
            continue
        seen.add(str(link).casefold())
        node = branch.add(Text(_described(reached, link)))
        waiting += [(node, following) for following in reversed(reached.links)]
    return root


def _drawn(tree: Tree) -> list[str]:
    """Lines as long as they are, for a terminal or a pipe."""
    from rich.console import Console

    out = StringIO()
    Console(file=out, width=10_000, color_system=None).print(tree)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def _link(link: Input) -> str:
    return visible(str(link) if link.kind == "value" else f"{link} ({link.kind})")


def _described(column: TracedColumn, link: Input | None = None) -> str:
    text = visible(str(column)) if link is None else _link(link)
    if column.origin not in {None, "inferred"}:
        text += f" [{column.origin}]"
    if column.contradicts:
        text += f" [the query says {', '.join(map(_link, column.contradicts))}]"
    return text + "".join(f" [not known: {visible(str(why))}]" for why in column.unknown)
