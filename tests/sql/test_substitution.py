"""``${...}`` in SQL stays as written.

Tests ``sql/tokens.py``.
"""

from __future__ import annotations

import pytest

from penstock.errors import UnsupportedFeature
from penstock.sql.tokens import unsubstituted


@pytest.mark.parametrize(
    ("text", "handed"),
    [
        ("SELECT 1", "SELECT 1"),
        ("'${env:HOME}'", "'$' '{env:HOME}'"),
        ("'it''s ${a}${b}'", "'it''s $' '{a}$' '{b}'"),
        ("r'\\d${a}' || R\"${b}\"", "r'\\d$' r'{a}' || R\"$\" R\"{b}\""),
        ("'\\${a}', '$ {a}', '$' '{a}'", "'\\$' '{a}', '$ {a}', '$' '{a}'"),
        ("1 -- ${a}\n/* ${b} */", "1 -- $ {a}\n/* $ {b} */"),
        ("SELECT '${{a}}' FROM {t0}", "SELECT '$' '{{a}}' FROM {t0}"),
    ],
)
def test_texts(text: str, handed: str) -> None:
    assert unsubstituted(text) == handed
    assert unsubstituted(handed) == handed


@pytest.mark.parametrize("text", ["SELECT 1 AS\n`${env:HOME}`", "SELECT\n${env:HOME}"])
def test_elsewhere_it_is_refused(text: str) -> None:
    with pytest.raises(UnsupportedFeature, match=r"outside of a text.* at line 2:1") as caught:
        unsubstituted(text)
    assert caught.value.hint is not None
