"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.cli.options import find_project, parse_pairs, parse_payload
from penstock.errors import ArgumentError


def test_pairs_keep_every_sign_after_the_first_equals() -> None:
    assert parse_pairs(("a=1", "b=x=y", "c=")) == {"a": "1", "b": "x=y", "c": ""}


@pytest.mark.parametrize("texts", [("a",), ("=1",), ("a=1", "a=2")])
def test_wrong_pairs_are_wrong_input(texts: tuple[str, ...]) -> None:
    with pytest.raises(ArgumentError, match="--arg"):
        parse_pairs(texts)


def test_the_nearest_project_upwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "penstock.toml").write_text("")
    (tmp_path / "models" / "raw").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "models" / "raw")
    assert find_project() == tmp_path


def test_payload_is_an_object() -> None:
    assert parse_payload('{"region": "eu"}') == {"region": "eu"}
    assert parse_payload(None) is None


@pytest.mark.parametrize(
    ("text", "said"), [("{", "at character 2"), ("[1]", "must be a JSON object")]
)
def test_wrong_payload_says_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        parse_payload(text)
