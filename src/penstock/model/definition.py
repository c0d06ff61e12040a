"""What a script means, as a hash: it changes when a slice made before may now come out another."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

from penstock.model.annotation import Annotations
from penstock.model.asset import TableName
from penstock.model.lexer import Token
from penstock.model.query import Query

_NAMES = ("VAR", "IDENTIFIER", "STRING", "RAW_STRING", "HEREDOC_STRING", "ARGUMENT")


def definition_hash(query: Query, annotations: Annotations, target: TableName) -> str:
    """Hex SHA-256 of the canonical query and of what says where and how it is written.

    Blanks, comments, the case of keywords and the data tests do not count.
    """
    use = query.names.use
    meaning = {
        "dialect": query.dialect,
        "target": str(target),
        "materialize": annotations.materialize and annotations.materialize.to_dict(),
        "partition": annotations.partition and annotations.partition.to_dict(),
        "reads": [str(table) for table in query.reads],
        "aliases": sorted(query.names.aliases.items()),
        "use": list(use) if use else None,
        "settings": [[setting.name, setting.value] for setting in query.settings],
        "arguments": [[one.name, one.type, one.default] for one in query.arguments],
        "parts": [[part.name, *canonical(part.statement.tokens)] for part in query.parts],
    }
    text = json.dumps(meaning, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def canonical(tokens: Iterable[Token]) -> list[str]:
    """Tokens in one spelling; names and strings stay as they are and never look alike."""
    return [
        f"{token.kind} {token.text}" if token.kind in _NAMES else token.text.upper()
        for token in tokens
    ]
