"""What a source of messages is, and how one is opened."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ConfigError
from penstock.server.sources import open_source, payload_of


@pytest.mark.parametrize(
    ("text", "payload"),
    [
        ('{"tenant": "acme", "n": 1}', {"tenant": "acme", "n": 1}),
        ("{}", {}),
        ("", {"text": ""}),
        ("acme", {"text": "acme"}),
        ("[1, 2]", {"text": "[1, 2]"}),
        ('{"a": ', {"text": '{"a": '}),
        ("[" * 100_000, {"text": "[" * 100_000}),
    ],
)
def test_payloads(text: str, payload: dict[str, object]) -> None:
    assert payload_of(text) == payload


@given(st.text())
def test_every_text_has_a_payload(text: str) -> None:
    assert isinstance(payload_of(text), dict)


def test_sources_by_kind() -> None:
    source = open_source("postgres", {"conninfo": "host=/nowhere", "channel": "orders"})
    source.close()
    assert list(source.messages()) == []
    source = open_source("kafka", {"servers": "127.0.0.1:1", "topic": "t", "group": "g"})
    source.close()
    assert list(source.messages()) == []


@pytest.mark.parametrize(
    ("kind", "options", "hint"),
    [
        ("kafak", {}, "did you mean 'kafka'"),
        ("mqtt", {}, "the kinds are kafka, postgres"),
        ("postgres", {"channel": "c"}, "docs/serve.md"),
        ("kafka", {"servers": "h:1", "topic": "t", "group": "g", "topics": "x"}, "docs/serve.md"),
    ],
)
def test_what_is_no_source(kind: str, options: dict[str, str], hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_source(kind, options)
    assert hint in str(caught.value.hint)
