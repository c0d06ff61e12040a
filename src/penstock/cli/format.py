"""``penstock format``: scripts in canonical spelling, or in the other form."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from penstock.cli.options import as_option, common_options, load_project
from penstock.cli.output import print_json, say
from penstock.cli.paths import local
from penstock.errors import ModelError
from penstock.rendering.text import count

CHANGES = 1  # the exit code of --check where a file would change


@click.command(
    "format",
    short_help="Write headers and MODEL (...) in canonical form.",
    epilog="""\b
Examples:
  penstock format
  penstock format models/clean --check
  penstock format models/clean/flights.sql --as model""",
)
@click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if a file would change.")
@as_option
@common_options
@click.pass_context
def command(
    ctx: click.Context,
    paths: tuple[Path, ...],
    *,
    check: bool,
    form: str | None,
    project_dir: Path | None,
    as_json: bool,
) -> None:
    """Rewrite what declares the models in PATHS, files or directories; by default all models.

    Queries stay as they are written and comments are kept. With --as, a script is written in that
    form. A file that cannot be rewritten, as the form lacks words for it, is left alone and named;
    the others are written, and the exit code is 2. A model that says `formatting false` is left
    alone too.
    """
    changed: Sequence[Path]
    refused: ModelError | None = None
    with load_project(project_dir) as project:
        try:
            changed = project.format(paths, form, check=check)
        except ModelError as error:
            changed, refused = error.data["changed"], error
    if as_json:
        wrong = () if refused is None else refused.diagnostics
        print_json({"changed": [str(path) for path in changed], "refused": wrong})
    else:
        for path in changed:
            say(f"{'would change' if check else 'changed'} {local(str(path))}")
        say(f"{count(len(changed), 'file')} {'would change' if check else 'changed'}")
    if refused is not None:
        say(local(str(refused)), err=True)
        ctx.exit(refused.exit_code)
    if check and changed:
        ctx.exit(CHANGES)
