"""Guards of a translation, as texts; what Spark makes of them is in `test_translate`."""

from __future__ import annotations

from penstock.sql.duckdb.translate import translate


def _chain(links: int) -> str:
    parts = " || ".join(f"coalesce(c{at}::VARCHAR, 'x')" for at in range(links))
    return translate(f"SELECT {parts} AS v FROM t")


def test_a_chain_of_concatenations_grows_by_the_link() -> None:
    """It grew tenfold: each check of a type repeated all links before."""
    four, eight = len(_chain(4)), len(_chain(8))
    assert eight < 2.2 * four


def test_each_column_of_a_chain_is_checked() -> None:
    text = translate("SELECT a || b || c AS v FROM t")
    assert all(f"TYPEOF({name}) LIKE 'double'" in text for name in "abc")
