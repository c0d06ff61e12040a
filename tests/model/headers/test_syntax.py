from __future__ import annotations

import pytest

from penstock.model.headers.syntax import begins_model
from tests.model.headers.reading import declared, read


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("MODEL (name a)", True),
        ("-- note\n/* note */ model\n(name a)", True),
        ("SELECT 1", False),
        ("'MODEL' (1)", False),
        ("MODEL", False),
        ("", False),
    ],
)
def test_what_begins_a_model(text: str, expected: bool) -> None:
    assert begins_model(text, 0) is expected


def test_comments_case_and_the_last_comma_do_not_count() -> None:
    text = """\
-- what it is for
/* MODEL (name no.t); */
Model (
  NAME db.t, -- the table
  Kind incremental_by_unique_key ( /* keys */ UNIQUE_KEY [a, "b c"], ),
  owner 'it''s, me',
);
SELECT 1 AS a
"""
    declaration, findings = read(text)
    assert declaration is not None, findings
    assert (str(declaration.target), declaration.keys) == ("main.db.t", ("a", "b c"))
    assert declaration.about.owner == "it's, me"
    assert text[declaration.code :] == "\nSELECT 1 AS a\n"
    assert declaration.place("target").line == 4


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "MODEL (name db.t, kind FULL)\nSELECT 1",
            "m.sql:2:1: error: `SELECT` follows MODEL (...)\n  → end MODEL (...) with a semicolon",
        ),
        (
            "MODEL (name db.t, kind FULL",
            "m.sql:1:7: error: the bracket of MODEL ( is never closed\n"
            "  → write ); before the query",
        ),
        (
            "MODEL (name db.t, kind FULL)",
            "m.sql:1:28: error: MODEL (...) has no query\n  → write its SELECT below",
        ),
        (
            "MODEL (name db.t, owner 'x, kind FULL);\nSELECT 1",
            "m.sql:1:25: error: `'` is opened here and never closed\n  → close it",
        ),
        (
            "MODEL (name db.t,, kind FULL);\nSELECT 1",
            "m.sql:1:18: error: a comma too many\n"
            "  → take it away, or write what is missing before it",
        ),
        (
            "MODEL (name db.t, kind FULL, 3);\nSELECT 1",
            "m.sql:1:30: error: `3` is not a property\n"
            "  → a property is its name and a value, as in `kind FULL`",
        ),
        (
            "MODEL (name db.t, kind FULL, owner);\nSELECT 1",
            "m.sql:1:30: error: `owner` has no value\n  → write `owner value`, or take it away",
        ),
        (
            "-- tag x\n-- materialize ducklake://main/x\nMODEL (name db.t, kind FULL);\nSELECT 1",
            "m.sql:2:4: error: the script has both annotations (materialize, tag) and MODEL (...)\n"
            "  → say it in one form; the other reads as a comment once its keyword is gone",
        ),
    ],
)
def test_what_cannot_be_read(text: str, said: str) -> None:
    declaration, findings = read(text)
    assert declaration is None
    assert [str(finding) for finding in findings] == [said]


def test_a_list_is_in_brackets_of_either_kind_or_one_value() -> None:
    for written in ("a", "(a)", "[a]", "(a,)", "['a']"):
        assert declared(f"tags {written}").tags == ("a",)
