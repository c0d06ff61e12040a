"""End a command that failed: one message on stderr (place, cause, next step) and an exit code."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from typing import Any

from click import ClickException

from penstock.cli.paths import local
from penstock.errors import Location, ModelError, PenstockError
from penstock.sql.text import too_deep

EXIT_FAILED = 1
EXIT_INTERRUPTED = 130  # 128 + SIGINT, as shells have it


def fail(error: Exception, *, debug: bool = False) -> int:
    """Say on stderr what went wrong; return the exit code. ``debug`` adds the traceback."""
    from penstock.cli.output import say

    if debug:
        say("".join(traceback.format_exception(error)), err=True, nl=False)
    error = _clear(error)
    say(local(message_of(error)), err=True)
    return error.exit_code if isinstance(error, PenstockError) else EXIT_FAILED


def fail_as_json(error: Exception) -> None:
    """The error as one line of JSON on stdout: ``{"error": {...}}``, as the last one of a run."""
    from penstock.cli.output import say, to_json

    say(to_json({"error": plain_error(_clear(error))}))


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
    """The place in front of the message, and the message: statements tell theirs at its end."""
    if error.location is not None:
        return f"{error.location}: ", error.message
    numbers = [error.data[key] for key in ("line", "column") if key in error.data]
    said = f", at line {':'.join(map(str, numbers))}"
    if not numbers or not error.message.endswith(said):
        return "", error.message
    return f"{Location('query', *numbers)}: ", error.message.removesuffix(said)


def plain_error(error: Exception) -> Mapping[str, Any]:
    """An error as ``--json`` prints it: type, message, hint, location and data."""
    hint = location = None
    data: Mapping[str, Any] = {}
    message = error.format_message() if isinstance(error, ClickException) else str(error)
    if isinstance(error, PenstockError):
        message, hint, data = error.message, error.hint, error.data
        location = str(error.location) if error.location else None
    if isinstance(error, ModelError):
        data = {"diagnostics": error.diagnostics}
    return {
        "type": type(error).__name__,
        "message": message,
        "hint": hint,
        "location": location,
        "data": data,
    }
