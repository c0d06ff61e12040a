"""Names of functions that are certainly misspelt."""

from __future__ import annotations

import pytest

from penstock.sql.missing_functions import missing_functions
from penstock.sql.tables import analyse


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("SELECT uper(a), count(*), `Regexp_Extrac`(a) FROM t", ["uper", "Regexp_Extrac"]),
        ("SELECT * FROM table_chnges('t', 1, 2) WHERE date_frmat(d, 'y') > 0", None),
        ("SELECT main.uper(a), twice(a), my_upper(a), xpath_string(a, b) FROM t", []),
        ("SELECT transform(l, x -> x + 1), st_geomfromwkb(b), to_varchar(a) FROM range(3)", []),
        ("SELECT uppers(a) FROM t", []),  # a macro
    ],
)
def test_missing_functions(text: str, named: list[str] | None) -> None:
    missing = [missing.name for missing in missing_functions(analyse(text).tree, {"uppers"})]
    assert missing == (["table_chnges", "date_frmat"] if named is None else named)
