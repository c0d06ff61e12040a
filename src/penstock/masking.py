"""Secrets in what people read: messages, and the ``repr`` of settings.

In doubt more is masked rather than less: where a password is written without the quotes that it
needs, its end is not known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

MASK = "***"
_NAME = r"pass(?:word|wd|phrase)?|pwd|secret|token|credentials?"
_SECRET_NAME = re.compile(rf"(?:{_NAME})$|secret|password|passwd|token", re.IGNORECASE)
# `password = '...'`, `sslpassword=...`, `"secret_key": "..."`; a value without quotes ends at the
# next name, or at the end. No part is tried again at each letter or blank of a long run.
_PAIR = re.compile(
    rf"""(?P<name>(?:{_NAME})(?:[._]?key)?['"]?\s*[=:]\s*)
    (?: '(?:[^'\\]|\\.)*'(?=[\s&,;)\]}}]|$)
      | "(?:[^"\\]|\\.)*"(?=[\s&,;)\]}}]|$)
      | .*?(?=(?<!\s)\s+[\w.]+\s*=|&|$) )""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_USER = re.compile(r"://[^:/?#\s]*:")


def masked(text: str) -> str:
    """``text`` without the passwords of the connection strings, URLs and settings in it."""
    # A URL's password ends at the last @ of the text, as it may have one itself.
    last = text.rfind("@")
    user = _USER.search(text, 0, last) if last >= 0 else None
    if user is not None:
        text = f"{text[: user.end()]}{MASK}{text[last:]}"
    return _PAIR.sub(rf"\g<name>{MASK}", text)


def is_secret(name: str) -> bool:
    """Return whether the setting of this name holds a secret: ``s3_secret_key``,
    ``fs.s3a.secret.key``.
    """
    return _SECRET_NAME.search(name) is not None


def shown(name: str, value: object) -> str:
    """The ``repr`` of the setting ``name``, for a message."""
    if value is not None and is_secret(name):
        return MASK
    if isinstance(value, Mapping):
        inside = (f"{key!r}: {shown(str(key), item)}" for key, item in value.items())
        return f"{{{', '.join(inside)}}}"
    return repr(masked(value)) if isinstance(value, str) else masked(repr(value))


def masked_repr(value: Any) -> str:
    """The ``repr`` of a dataclass, with its secrets masked."""
    inside = (f"{f.name}={shown(f.name, getattr(value, f.name))}" for f in fields(value) if f.repr)
    return f"{type(value).__name__}({', '.join(inside)})"
