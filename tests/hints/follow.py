"""Following a hint: the text as the hint says to write it."""

from __future__ import annotations

import re

from penstock.errors import Diagnostic

# write `-- partitioned daily`, did you mean `append`?, write key=column
_QUOTED = re.compile(r"(?:^write|^did you mean|as) `(?P<form>[^`]+)`")
_PLAIN = re.compile(r"^(?:write|did you mean) (?P<form>[^\s,:]+?)(?:\?|$|,| or )")
_WORD = re.compile(r"""(?:"[^"]*"|'[^']*'|\S)+""")


def followed(text: str, finding: Diagnostic) -> str:
    """``text`` with the line, or the word, at the place of the finding as its hint has it."""
    hint, line, column = finding.hint or "", finding.location.line, finding.location.column
    match = _QUOTED.search(hint) or _PLAIN.search(hint)
    assert match is not None, f"{finding.message}: {hint!r} names nothing to write"
    assert line is not None
    assert column is not None
    lines = text.split("\n")
    before, at = lines[line - 1], column - 1
    if match["form"].startswith(("-- ", "# ")):
        lines[line - 1] = match["form"]
    else:
        word = _WORD.match(before, at)
        assert word is not None, f"there is no word at {line}:{column}"
        lines[line - 1] = f"{before[:at]}{match['form']}{before[word.end() :]}"
    return "\n".join(lines)
