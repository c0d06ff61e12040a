"""``"name"`` is a name in statements, queries and conditions; a text in double quotes fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from penstock.errors import PenstockError
from penstock.lakes.lake import Lake

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.spark

HINT = "\"eel\" is a name: write 'eel' for the text"


@pytest.fixture
def pond(lake: Lake) -> Lake:
    lake.sql('CREATE TABLE fish ("id" INT, "kind" VARCHAR, "two words" INT)')
    lake.sql("INSERT INTO fish VALUES (1, 'eel', 10), (2, 'pike', 20), (3, 'eel', 30)")
    return lake


def ids(lake: Lake) -> list[int]:
    return sorted(row[0] for row in lake.table("fish").to_df().select("id").collect())


def test_queries(pond: Lake) -> None:
    df = pond.sql(
        'SELECT "id", f."kind" AS k, "two words" "w" FROM "main"."fish" "f" '
        'WHERE "kind" <> \'eel\' AND "f".id > 0'
    )
    assert df.columns == ["id", "k", "w"]
    assert [tuple(row) for row in df.collect()] == [(2, "pike", 20)]


@pytest.mark.parametrize(
    ("statement", "left"),
    [
        ("DELETE FROM fish WHERE \"kind\" = 'eel'", [2]),
        ('DELETE FROM fish AS f WHERE upper("f"."kind") <> \'EEL\'', [1, 3]),
        ('UPDATE fish SET "id" = "id" + "two words" WHERE "kind" = \'pike\'', [1, 3, 22]),
        (
            'MERGE INTO fish USING (SELECT 2 AS n) AS s ON "id" = s."n" '
            "WHEN MATCHED AND \"kind\" = 'pike' THEN DELETE",
            [1, 3],
        ),
    ],
)
def test_statements(pond: Lake, statement: str, left: list[int]) -> None:
    pond.sql(statement)
    assert ids(pond) == left


def test_conditions_of_methods(pond: Lake) -> None:
    fish = pond.table("fish")
    assert fish.to_df(where="\"kind\" <> 'eel'").count() == 1
    fish.update({"id": '"id" + 10'}, where='"two words" = 20')
    source = pond.sql("SELECT 3 AS n")
    fish.merge_into(source, '"t"."id" = "s"."n"').when_matched_delete("\"kind\" = 'eel'").execute()
    fish.delete("\"kind\" = 'eel'")
    assert ids(pond) == [12]


def test_types_of_the_format_in_casts(pond: Lake) -> None:
    """In queries and conditions they mean what they mean in CREATE TABLE."""
    df = pond.sql(
        "SELECT CAST(id AS VARCHAR) AS a, id::VARCHAR || 'x' AS b, '2020-01-02'::TIMESTAMPTZ AS c, "
        "CAST(id AS DOUBLE PRECISION) AS d, id::HUGEINT AS e FROM fish WHERE id::TEXT = '1'"
    )
    kinds = ["string", "string", "timestamp", "double", "decimal(38,0)"]
    assert [kind for _, kind in df.dtypes] == kinds
    assert [tuple(row)[:2] for row in df.collect()] == [("1", "1x")]
    pond.table("fish").delete("\"id\"::VARCHAR = '2'")
    assert ids(pond) == [1, 3]


@pytest.mark.parametrize(
    "act",
    [
        lambda lake: lake.sql('SELECT * FROM fish WHERE kind = "eel"'),
        lambda lake: lake.sql('DELETE FROM fish WHERE kind = "eel"'),
        lambda lake: lake.sql('UPDATE fish SET kind = "eel"'),
        lambda lake: lake.sql('INSERT INTO fish VALUES (4, "eel", 1)'),
        lambda lake: lake.table("fish").delete('kind = "eel"'),
        lambda lake: lake.table("fish").update({"kind": '"eel"'}),
        lambda lake: lake.table("fish").to_df(where='kind = "eel"'),
    ],
)
def test_a_text_in_double_quotes_fails(pond: Lake, act: Callable[[Lake], Any]) -> None:
    with pytest.raises(PenstockError) as caught:
        act(pond)
    assert caught.value.hint == HINT
    assert ids(pond) == [1, 2, 3]
