"""What hints name is there: commands and options, keywords of a header, functions of CALL.

All hints of the source are collected, those that no other test brings about among them.

Tests ``lakes/maintenance/calls.py`` (functions by name).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import click

from penstock.cli.main import COMMANDS
from penstock.lakes.maintenance.calls import CALLS
from penstock.model.headers.properties import KEYWORDS

SOURCE = Path(__file__).parents[2] / "src" / "penstock"
COMMAND = re.compile(r"\bpenstock ([a-z][a-z-]+)((?: (?:--?[a-z-]+|[\w./*+]+|\{\}))*)")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
KEYWORD = re.compile(r"`(?:--|#) ([a-z_]+)")
CALL = re.compile(r"CALL (?:ducklake_)?(\w+)\(")


@cache  # not at import: each worker of the tests imports all files
def hints() -> dict[str, str]:
    """Each text that is a hint, by its place; what is put into it is ``{}``."""
    return dict(_hints())


def _hints() -> Iterator[tuple[str, str]]:
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.keyword) and node.arg == "hint":
                value: ast.expr = node.value
            elif isinstance(node, ast.Assign) and "hint" in ast.unparse(node.targets[0]).lower():
                value = node.value
            else:
                continue
            text = " ".join(texts(value))
            if text.strip():
                yield f"{path.relative_to(SOURCE)}:{value.lineno}", text


def texts(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.JoinedStr):
        parts = (part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
        yield "".join(map(str, parts))
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp | ast.BoolOp | ast.BinOp):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                yield from texts(child)


def options_of(command: click.Command) -> set[str]:
    own = {
        option
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    inner = command.commands.values() if isinstance(command, click.Group) else ()
    return own.union(*(options_of(each) for each in inner))


OPTIONS = {name: options_of(import_module(module).command) for name, module in COMMANDS.items()}
# Of other programs, named in hints: pip's and Spark's own.
ALL_OPTIONS = set().union(*OPTIONS.values()) | {"--version", "--help"}


def test_many_hints_are_collected() -> None:
    assert len(hints()) > 400


def test_commands_that_hints_name_are_there_with_their_options() -> None:
    found = [(place, *found) for place, text in hints().items() for found in COMMAND.findall(text)]
    wrong = [
        (place, name, rest)
        for place, name, rest in found
        if name not in COMMANDS or not set(OPTION.findall(rest)) <= OPTIONS[name]
    ]
    assert wrong == []
    assert len(found) > 50


def test_options_that_hints_name_are_there() -> None:
    named = {(place, option) for place, text in hints().items() for option in OPTION.findall(text)}
    assert {each for each in named if each[1] not in ALL_OPTIONS} == set()


def test_lines_of_a_header_that_hints_name_are_there() -> None:
    named = {(place, word) for place, text in hints().items() for word in KEYWORD.findall(text)}
    assert {each for each in named if each[1] not in KEYWORDS} == set()
    assert len(named) > 5


def test_functions_that_hints_call_are_there() -> None:
    named = {(place, name) for place, text in hints().items() for name in CALL.findall(text)}
    known = set(CALLS) | {"set_option", "set_commit_message", "rollback_to_snapshot"}
    assert {each for each in named if each[1] not in known} == set()
