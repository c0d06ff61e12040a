from __future__ import annotations

import pytest

from penstock.dbt_import import text

TABLES = {'"lake"."shop"."a"': "shop.a", "dev.b": "shop.b", "dev.b_more": "shop.b_more"}


@pytest.mark.parametrize(
    ("query", "renamed"),
    [
        ('select * from "lake"."shop"."a" x', "select * from shop.a x"),
        ("from dev.b, dev.b_more, dev.b_most", "from shop.b, shop.b_more, dev.b_most"),
        ("select 'dev.b' -- dev.b\n/* dev.b */ from x.dev.b", None),
        ("select dev.b.id from dev.b", "select shop.b.id from shop.b"),
    ],
)
def test_tables_get_other_names_but_not_in_texts_and_comments(
    query: str, renamed: str | None
) -> None:
    assert text.renamed(query, TABLES) == (query if renamed is None else renamed)


def test_values_are_written_as_literals() -> None:
    assert [text.literal(v) for v in ("it's", 1, 1.5, True)] == ["'it''s'", "1", "1.5", "true"]


def test_names_have_quotes_where_they_need_them() -> None:
    assert text.names(["a", "b c"]) == "(a, `b c`)"
    assert text.table("s.my table") == "s.`my table`"
