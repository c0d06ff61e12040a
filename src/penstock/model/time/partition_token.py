"""``'{partition}'`` in a script: where it stands for the slice's value, and where it is misplaced.

It is a text of its own, so that the value is bound and never becomes SQL (annotations.md,
"Partition values").
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.sql.tokens import NAME, STRING, Token

TOKEN = "{partition}"

Problem = tuple[str, str]  # what is wrong, and what would be right

BARE = (f"{TOKEN} stands without quotes", f"write '{TOKEN}'")
INSIDE = (
    f"{TOKEN} stands inside a longer text, where it is not replaced",
    f"concatenate: 'before' || '{TOKEN}' || 'after'",
)


def is_bare(tokens: Sequence[Token], index: int) -> bool:
    """Return whether the brace at ``index`` begins the token without quotes."""
    following = [token.text for token in tokens[index + 1 : index + 3]]
    return following == ["partition", "}"]


def misplaced(tokens: Sequence[Token], index: int, *, partitioned: bool) -> Problem | None:
    """Return what is wrong with the token at ``index``, whose text contains ``{partition}``."""
    token = tokens[index]
    if token.kind == NAME and token.value == TOKEN:
        return f"{TOKEN} stands in quotes that make it a name", f"write '{TOKEN}'"
    if token.kind == NAME or token.value != TOKEN:
        return INSIDE
    if not partitioned:
        return "the script is not partitioned", "add `-- partitioned daily` to the header"
    neighbours = (*tokens[max(index - 1, 0) : index], *tokens[index + 1 : index + 2])
    if any(neighbour.kind == STRING for neighbour in neighbours):
        return f"'{TOKEN}' stands next to another text, where it is not replaced", INSIDE[1]
    return None
