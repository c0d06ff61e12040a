"""What must be in tables after a transaction and somebody beside it."""

from __future__ import annotations

import pytest

from tests.lakes.differential.written.beside import NotTogether, together
from tests.lakes.differential.written.model import Model

BASE = ["CREATE TABLE t (i BIGINT, a INT)", "INSERT INTO t VALUES (1, 10), (2, 20)"]


def rows(done: list[object], query: str = "FROM t ORDER BY i") -> list[tuple[object, ...]]:
    with Model(done) as model:  # type: ignore[arg-type] # what `together` gives
        return model._connection.execute(query).fetchall()


@pytest.mark.parametrize(
    ("own", "other", "expected"),
    [
        (
            "UPDATE t SET a = 0 WHERE a > 5",
            "INSERT INTO t VALUES (3, 30)",
            [(1, 0), (2, 0), (3, 30)],
        ),
        ("UPDATE t SET a = 0 WHERE i = 1", "DELETE FROM t WHERE i = 2", [(1, 0)]),
        ("ALTER TABLE t DROP COLUMN a", "UPDATE t SET a = 5 WHERE i = 2", [(1,), (2,)]),
        ("ALTER TABLE t ADD COLUMN b INT DEFAULT 7", "DELETE FROM t WHERE a = 10", [(2, 20, 7)]),
        (
            "ALTER TABLE t ALTER COLUMN a SET NOT NULL",
            "INSERT INTO t VALUES (3, 30)",
            [(1, 10), (2, 20), (3, 30)],
        ),
    ],
)
def test_each_saw_the_tables_as_they_were(
    own: str, other: str, expected: list[tuple[object, ...]]
) -> None:
    assert rows([*together(BASE, [own], [other])]) == expected


@pytest.mark.parametrize(
    ("own", "other"),
    [
        ("UPDATE t SET a = 0 WHERE i = 1", "UPDATE t SET a = 1 WHERE i = 1"),
        ("DELETE FROM t WHERE i = 1", "UPDATE t SET a = 1 WHERE i = 1"),
        ("INSERT INTO t VALUES (3, 30)", "ALTER TABLE t ADD COLUMN b INT"),
        ("ALTER TABLE t RENAME COLUMN a TO b", "ALTER TABLE t DROP COLUMN a"),
    ],
)
def test_these_exclude_each_other(own: str, other: str) -> None:
    with pytest.raises(NotTogether):
        together(BASE, [own], [other])


def test_a_null_that_came_beside_excludes_not_null() -> None:
    with pytest.raises(Exception, match="NOT NULL constraint"):
        rows(
            [
                *together(
                    BASE,
                    ["ALTER TABLE t ALTER COLUMN a SET NOT NULL"],
                    ["INSERT INTO t VALUES (3, NULL)"],
                )
            ]
        )
