"""Tokens are shown once, and hold for one name or for all."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from penstock.engine.state.agenda_tables import TOKEN
from penstock.errors import ArgumentError
from penstock.lakes.catalog.catalog import Catalog
from penstock.server.tokens import EVERYTHING, TokenStore


@pytest.fixture
def tokens(catalog: Catalog) -> TokenStore:
    return TokenStore(catalog)


def test_a_token_holds_for_its_name_only(any_catalog: Catalog) -> None:
    tokens = TokenStore(any_catalog)
    token, secret = tokens.create("orders", "ann")
    assert tokens.verify("orders", secret) == token
    assert tokens.verify("other", secret) is None
    assert tokens.verify(EVERYTHING, secret) is None
    assert (token.name, token.user, token.revoked_at) == ("orders", "ann", None)


def test_a_token_for_everything_holds_for_each_name(tokens: TokenStore) -> None:
    token, secret = tokens.create(EVERYTHING)
    tokens.create("orders")
    for name in ("orders", "other", EVERYTHING):
        assert tokens.verify(name, secret) == token


def test_a_revoked_token_holds_no_more(any_catalog: Catalog) -> None:
    tokens = TokenStore(any_catalog)
    token, secret = tokens.create("orders")
    other, other_secret = tokens.create("orders")
    assert tokens.revoke(token.id)
    assert not tokens.revoke(token.id)
    assert not tokens.revoke("none")
    assert tokens.verify("orders", secret) is None
    assert tokens.verify("orders", other_secret) == other
    revoked, valid = tokens.list_tokens()
    assert revoked.id == token.id
    assert revoked.revoked_at is not None
    assert valid == other


def test_the_catalog_has_no_secret(catalog: Catalog, tokens: TokenStore) -> None:
    _, secret = tokens.create("orders")
    assert secret.startswith("pst_")
    assert len(secret) == len("pst_") + 43  # 32 bytes
    with catalog.reading() as connection:
        (row,) = connection.execute(select(TOKEN)).all()
    assert secret not in str(row)
    assert secret.removeprefix("pst_") not in str(row)
    assert secret not in str(tokens.list_tokens())


def test_two_secrets_differ(tokens: TokenStore) -> None:
    assert tokens.create("orders")[1] != tokens.create("orders")[1]


@pytest.mark.parametrize("shown", ["", "pst_", "\0", "\ud800", "ü" * 10_000])
def test_any_text_may_be_shown(tokens: TokenStore, shown: str) -> None:
    assert tokens.verify("orders", shown) is None  # there are no tables yet
    _, secret = tokens.create("orders")
    for text in (shown, secret + shown if shown else secret[:-1]):
        assert tokens.verify("orders", text) is None


@pytest.mark.parametrize("name", ["", " "])
def test_a_token_needs_a_name(tokens: TokenStore, name: str) -> None:
    with pytest.raises(ArgumentError, match="a token needs the name"):
        tokens.create(name)
    assert tokens.list_tokens() == []
