"""Print the output of commands: progress, text, JSON, and rows in the form of ``--format``; and end
a command that failed with one message on stderr (place, cause, next step) and an exit code.
"""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.paths import local, with_local_paths
from penstock.cli.tables import PLAIN, Look, aligned, draw, is_terminal
from penstock.errors import Location, ModelError, PenstockError
from penstock.events import (
    Event,
    EventSink,
    Notice,
    SparkStarted,
    SparkStarting,
    SparkWaiting,
    StepQuery,
    values_of,
)
from penstock.rendering.columns import Columns, cells
from penstock.rendering.text import count, one_line, seconds, visible
from penstock.rendering.wire import plain, plain_error, to_json, versioned
from penstock.sinks.progress.lines import lines, run_lines, started_text, starting_text, text_line
from penstock.sql.text import too_deep

if TYPE_CHECKING:
    from penstock.engine.results import CheckResult, QueryResult

Rows = Sequence[Sequence[Any]]
# Columns of answers whose texts may have paths of the project.
_LOCAL_TEXTS: Mapping[str, Callable[[str], str]] = {"reason": one_line, "input": str}


def say(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print lines of text, with control characters of names and messages made visible."""
    click.echo(visible(text, keep="\n\t"), err=err, nl=nl)


def say_prose(text: str, *, err: bool = False) -> None:
    """Print sentences. A terminal breaks their lines between words, and not within them."""
    stream = sys.stderr if err else sys.stdout
    say(wrapped(text, shutil.get_terminal_size().columns) if stream.isatty() else text, err=err)


def wrapped(text: str, width: int) -> str:
    """Text in lines of ``width`` at most, as far as its words are shorter; what follows in a line
    is indented below it.
    """
    lines: list[str] = []
    for line in text.split("\n"):
        indent = " " * (len(line) - len(line.lstrip()) + 2)
        parts = textwrap.wrap(
            line,
            width,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
            drop_whitespace=True,
        )
        lines += parts if len(line) > width else [line]
    return "\n".join(lines)


def print_json(value: Any) -> None:
    """Print a value with named parts as one JSON document, indented for people."""
    click.echo(to_json(versioned(value), indent=2))


def print_json_line(value: Any) -> None:
    """Print a value with named parts as a JSON document of one line."""
    say(to_json(versioned(value)))


def print_table(
    columns: Sequence[str], rows: Rows, *, look: Look = PLAIN, empty: str = "(no rows)"
) -> None:
    """Rows under headings: in the width of a terminal, or aligned text in a pipe.

    ``empty`` stands in for a table without rows.
    """
    columns = [visible(name) for name in columns]
    texts = [[cell(value) for value in row] for row in rows]
    numeric = [_numeric(row[index] for row in rows) for index in range(len(columns))]
    if not texts:
        say(empty)
    elif in_markdown():
        _print_markdown(columns, texts)
    elif is_terminal():
        from rich.console import Console

        draw(Console(), columns, texts, numeric, look)
    else:
        for line in aligned([list(columns), *texts], numeric):
            say(line)


def print_answers(
    columns: Columns, rows: Iterable[object], *, look: Look = PLAIN, empty: str = "(no rows)"
) -> None:
    """Print answers as a table of their columns.

    Args:
        columns: The columns of these answers.
        rows: The answers.
        look: What a terminal colours, and leaves out where it is narrow.
        empty: What stands in for a table without rows.
    """
    print_table(tuple(columns), local_cells(columns, rows), look=look, empty=empty)


def local_cells(columns: Columns, rows: Iterable[object]) -> Rows:
    """Return the cells of answers for people: times are local, paths in reasons are relative."""
    return [list(map(_local_cell, columns, values)) for values in cells(columns, rows)]


def _local_cell(heading: str, value: Any) -> Any:
    if isinstance(value, datetime):
        return clock(value)
    if isinstance(value, timedelta):
        return seconds(value.total_seconds())
    write = _LOCAL_TEXTS.get(heading)
    return value if write is None else write(local(value or ""))


def clock(time: datetime | None) -> str:
    """Return local time, to the second."""
    return "" if time is None else f"{time.astimezone():%Y-%m-%d %H:%M:%S}"


def in_markdown() -> bool:
    """Return whether the command that runs was given ``--markdown``."""
    context = click.get_current_context(silent=True)
    return context is not None and context.meta.get("penstock.markdown", False)


def say_list(texts: Sequence[str], *, err: bool = False) -> None:
    """Print lines that follow a table: as a list in Markdown, which is one document on stdout."""
    if not texts:
        return
    if in_markdown():
        say("\n" + "\n".join(f"- {_in_markdown(text)}" for text in texts))
    else:
        for text in texts:
            say_prose(text, err=err)


def say_section(title: str, lines: Sequence[str]) -> None:
    """Print indented lines under a title, if there are any.

    Args:
        title: The title.
        lines: The lines below it.
    """
    if lines:
        say(f"\n{title}")
    for line in lines:
        say(f"  {line}".rstrip())


def print_samples(check: CheckResult) -> None:
    """The failing rows that a data test shows, if any."""
    if check.samples:
        columns = list(check.samples[0])
        print_table(columns, [[row.get(name) for name in columns] for row in check.samples])


def cell(value: Any) -> str:
    """One value as text in one line; None is empty."""
    if value is None:
        return ""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    simple = plain(value)
    return visible(simple if isinstance(simple, str) else to_json(simple))


def _numeric(values: Any) -> bool:
    known = [value for value in values if value is not None]
    return bool(known) and all(
        isinstance(value, int | float | Decimal) and not isinstance(value, bool) for value in known
    )


FORMATS = ("table", "csv", "json", "markdown")


def print_result(result: QueryResult, form: str) -> None:
    """Print the rows; a note on stderr says when there are more of them."""
    if not result.columns and form != "json":
        say("done", err=True)
        return
    _PRINTERS[form](result)
    if result.more and form != "json":
        shown = count(len(result.rows), "row")
        say(f"(the first {shown}; --limit N for more)", err=True)


def _table(result: QueryResult) -> None:
    print_table([name for name, _ in result.columns], result.rows)


def _json(result: QueryResult) -> None:
    """``{"columns": [...], "rows": [...], "more": bool}``"""
    columns = [{"name": name, "type": kind} for name, kind in result.columns]
    print_json({"columns": columns, "rows": result.rows, "more": result.more})


def _csv(result: QueryResult) -> None:
    """RFC 4180 with a heading. NULL is an empty field, an empty text two quotes."""
    click.echo(",".join(_in_csv(name) for name, _ in result.columns))
    for row in result.rows:
        click.echo(",".join(_in_csv(value) for value in row))


def _in_csv(value: Any) -> str:
    if value is None:
        return ""
    text = visible(value, keep="\n\t") if isinstance(value, str) else _simple(value)
    quoted = not text or any(mark in text for mark in ',"\n')
    return '"{}"'.format(text.replace('"', '""')) if quoted else text


def _simple(value: Any) -> str:
    simple = plain(value)
    return simple if isinstance(simple, str) else to_json(simple)


def _print_markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    for line in (columns, ["---"] * len(columns), *rows):
        cells = line if line[0] == "---" else map(_in_markdown, line)
        click.echo(f"| {' | '.join(cells)} |")


def _in_markdown(text: str) -> str:
    """A cell, escaped: it is never read as a column's end, a tag or formatting."""
    return re.sub(r"([\\|<>*_`\[\]])", r"\\\1", text)


_PRINTERS: Mapping[str, Callable[[QueryResult], None]] = {
    "table": _table,
    "csv": _csv,
    "json": _json,
    "markdown": lambda result: _print_markdown(
        [cell(name) for name, _ in result.columns],
        [[cell(value) for value in row] for row in result.rows],
    ),
}


@contextmanager
def watch(*, as_json: bool) -> Iterator[EventSink]:
    """The sink of a run: a live table on a terminal, otherwise a line an event."""
    if as_json:
        with lines(say, json_line) as sink:
            yield sink
        return
    if is_terminal():
        from penstock.sinks.progress.live import live_table

        shown = live_table()
    else:
        shown = run_lines(say)
    with shown as sink:
        yield with_local_paths(sink)


def json_line(event: Event) -> str | None:
    if isinstance(event, StepQuery):  # it is for logs
        return None
    return to_json(versioned({"event": type(event).__name__, **plain(values_of(event))}))


@contextmanager
def starting() -> Iterator[EventSink]:
    """A sink that shows on stderr that Spark starts: a clock on a terminal, otherwise lines."""
    told: list[Callable[[str], None]] = []
    notices: list[Notice] = []
    with ExitStack() as shown:

        def sink(event: Event) -> None:
            if isinstance(event, SparkStarting):
                if sys.stderr.isatty():
                    told[:] = [shown.enter_context(_clock(starting_text(event)))]
                else:
                    told[:] = [lambda text: say(text, err=True)]
                    told[0](starting_text(event))
            elif isinstance(event, SparkWaiting):
                told[0](starting_text(event))
            elif isinstance(event, SparkStarted):
                shown.close()
                if not sys.stderr.isatty():
                    say(started_text(event), err=True)
                for notice in notices:  # below the clock, not in it
                    say(text_line(notice) or "", err=True)
            elif isinstance(event, Notice):
                notices.append(event)

        yield sink


@contextmanager
def _clock(text: str) -> Iterator[Callable[[str], None]]:
    """A running clock behind a text; call what it gives with the text to show from then on."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as clock:
        task = clock.add_task(visible(text), total=None)
        yield lambda now: clock.update(task, description=visible(now))


@contextmanager
def counting(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on a terminal, to call with what is done and the total; otherwise ``None``."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


EXIT_FAILED = 1
EXIT_INTERRUPTED = 130  # 128 + SIGINT, as shells have it


def fail(error: Exception, *, debug: bool = False) -> int:
    """Say on stderr what went wrong; return the exit code. ``debug`` adds the traceback."""

    if debug:
        say("".join(traceback.format_exception(error)), err=True, nl=False)
    error = _clear(error)
    say_prose(local(message_of(error)), err=True)
    return error.exit_code if isinstance(error, PenstockError) else EXIT_FAILED


def fail_as_json(error: Exception) -> None:
    """The error as one line of JSON on stdout: ``{"error": {...}}``, as the last one of a run."""

    print_json_line({"error": plain_error(_clear(error))})


def _clear(error: Exception) -> Exception:
    return too_deep() if isinstance(error, RecursionError) else error


def message_of(error: BaseException) -> str:
    """The text for a person: never a Java stack or a Python traceback."""
    if isinstance(error, ModelError):
        return str(error)
    if isinstance(error, PenstockError):
        place, message = _placed(error)
        hint = f"\n  → {error.hint}" if error.hint else ""
        return f"{place}error: {message}{hint}"
    # The text of an error out of Spark continues with the Java stack: its first line is the cause.
    first = next(iter(str(error).splitlines()), "")
    return (
        f"internal error: {type(error).__name__}: {first}\n"
        "  → This should have been a clear message. Run again with --debug for the traceback, "
        "and please report it."
    )


def _placed(error: PenstockError) -> tuple[str, str]:
    """Return the place in front of the message, and the message."""
    if error.location is not None:
        return f"{error.location}: ", error.message
    if error.position is None:
        return "", error.message
    return f"{Location('query', *error.position)}: ", error.cause
