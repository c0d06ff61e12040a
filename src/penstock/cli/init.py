"""``penstock init``: a new project, minimal or from an example."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import click

from penstock.cli.options import debug_option
from penstock.errors import ArgumentError

# What running an example in its own directory leaves; never part of a new project.
SKIPPED = frozenset({"__pycache__", "lake", "spark-warehouse"})
# Packaged under a plain name: a dot file would act on this repository, not on the new project.
RENAMED = {"gitignore": ".gitignore"}
_NAME = b'name = "shop"'
# What the first run of an example wants besides.
FIRST_RUN = {"flights": " --partition 2013-01-01"}


@click.command(
    "init",
    short_help="Create a new project.",
    epilog="""\b
Examples:
  penstock init shop
  penstock init flights --example flights
  penstock init world --example world""",
)
@click.argument("directory", type=click.Path(path_type=Path), default=".", metavar="[DIR]")
@click.option("--example", metavar="NAME", help="Start from a worked example: flights or world.")
@debug_option
def command(directory: Path, example: str | None) -> None:
    """Create a project in DIR (default: the current one). Never overwrites a file."""
    source = example_source(example) if example else files("penstock.cli") / "template"
    written = copy_project(source, directory)
    click.echo(f"Made a project of {len(written)} files in {directory}")
    click.echo("Next:")
    if directory != Path():
        click.echo(f"  cd {directory}")
    click.echo("  penstock check")
    click.echo("  penstock run" + FIRST_RUN.get(example or "", ""))


def example_source(name: str) -> Traversable:
    """The directory of an example: in the package, or in a checkout beside ``src``.

    :raises ArgumentError: there is no such example; its hint names the examples
    """
    package = files("penstock")
    shelves = [package / "examples", package / ".." / ".." / "examples"]
    examples: dict[str, Traversable] = {}
    for shelf in (shelf for shelf in shelves if shelf.is_dir()):
        for entry in shelf.iterdir():
            if (entry / "penstock.toml").is_file():
                examples.setdefault(entry.name, entry)
    if name not in examples:
        raise ArgumentError(
            f"example {name!r} does not exist",
            hint=f"examples are: {', '.join(sorted(examples)) or 'none are installed'}",
        )
    return examples[name]


def copy_project(source: Traversable, directory: Path) -> list[Path]:
    """Copy all files of ``source``; returns what was written.

    :raises ArgumentError: a file is there already (nothing is written then)
    """
    wanted = {directory / relative: entry for relative, entry in walk(source)}
    there = [str(path) for path in wanted if path.exists()]
    if there:
        raise ArgumentError(
            f"already there, and never overwritten: {', '.join(there)}",
            hint="name another directory: penstock init DIR",
        )
    try:
        for path, entry in wanted.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(_named(entry.read_bytes(), directory))
    except OSError as error:
        raise ArgumentError(
            f"cannot write {error.filename}: {error.strerror}",
            hint="name a directory that can be written: penstock init DIR",
        ) from error
    return list(wanted)


def _named(content: bytes, directory: Path) -> bytes:
    """Return a file of the template with the directory's name as that of the project."""
    name = directory.resolve().name
    is_plain = re.fullmatch(r"[\w.-]+", name) is not None
    return content.replace(_NAME, f'name = "{name}"'.encode()) if is_plain else content


def walk(source: Traversable, below: Path = Path()) -> Iterator[tuple[Path, Traversable]]:
    """Every file with its path relative to ``source``, in a fixed order."""
    for entry in sorted(source.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            if entry.name not in SKIPPED:
                yield from walk(entry, below / entry.name)
        else:
            yield below / RENAMED.get(entry.name, entry.name), entry
