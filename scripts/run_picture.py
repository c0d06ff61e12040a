"""Draw docs/images/run.svg: what the flights example prints on a terminal.

    python -m scripts.run_picture [FILE]

Makes the project in a scratch directory, runs a day twice, each time in a process of its own, and
draws the events as `penstock run` draws them. Run it when that changes, with nothing else on the
machine.
"""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

from penstock import events
from penstock.sinks.progress.live import Picture
from penstock.sinks.progress.view import Progress

TARGET = Path(__file__).resolve().parents[1] / "docs" / "images" / "run.svg"
WIDTH = 88
RUN = "penstock run --partition 2013-01-01"


def main() -> None:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    with tempfile.TemporaryDirectory() as folder:
        said("penstock init flights --example flights", Path(folder))
        project = Path(folder) / "flights"
        for again in (False, True):
            prompt(console, RUN, "  # again" if again else "")
            console.print(picture(said(f"{RUN} --json", project)))
    target.parent.mkdir(exist_ok=True)
    target.write_text(svg(console))
    print(f"{target}: {target.stat().st_size:,} bytes")


def said(command: str, folder: Path) -> str:
    """What a command writes to stdout."""
    program = [sys.executable, "-c", "from penstock.cli.main import main; main()"]
    done = subprocess.run(
        [*program, *command.split()[1:]], cwd=folder, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


def prompt(console: Console, command: str, remark: str = "") -> None:
    line = Text("$ ", style="bold green").append(command, style="bold")
    console.print(line.append(remark, style="dim"))


def picture(lines: str) -> Picture:
    """The end of a run whose events are lines of JSON; the last line is the result."""
    progress = Progress()
    for line in lines.splitlines():
        values = json.loads(line)
        if "event" in values:
            progress.apply(getattr(events, values.pop("event"))(**values))
    drawn = Picture(progress)
    drawn.final = True
    return drawn


def svg(console: Console) -> str:
    """With the reader's own fonts: a picture in a page loads nothing from elsewhere."""
    drawn = console.export_svg(title="penstock", unique_id="run")
    return re.sub(r"\s*@font-face \{.*?\}", "", drawn, flags=re.S)


if __name__ == "__main__":
    main()
