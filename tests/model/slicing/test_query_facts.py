"""What is remembered of queries is what reading them anew says, and only of the same text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.model.definition.model import Model
from penstock.model.slicing.joint import why_apart
from penstock.model.slicing.query_facts import QueryFacts, selects_all
from penstock.model.slicing.windows import windows_of
from penstock.sql.tokens import tokenize
from tests.model.slicing.test_joint import model_of

QUERIES = (
    "SELECT a FROM raw",
    "SELECT a FROM raw WHERE day = '{partition}'",
    "SELECT a FROM raw WHERE day >= DATE '{partition}' - INTERVAL 7 DAYS AND day <= '{partition}'",
    "SELECT * FROM raw WHERE at < $partition_end - INTERVAL 90 MINUTES AND day >= '{partition}'",
    "SELECT x.a FROM raw AS x JOIN other AS y ON x.id = y.id AND y.day = '{partition}' LIMIT 3",
)


def answers(facts: QueryFacts, model: Model) -> list[Any]:
    return [
        facts.windows(model.query),
        facts.why_apart(model),
        facts.selects_all(model.query),
    ]


@pytest.mark.parametrize("query", QUERIES)
def test_what_is_remembered_is_what_was_read(tmp_path: Path, query: str) -> None:
    model, cache = model_of(tmp_path, query), dict[str, Any]()
    first = answers(QueryFacts(cache), model)
    remembered = json.loads(json.dumps(cache))
    again = answers(QueryFacts(remembered), model)
    assert again == first == [windows_of(model.query), why_apart(model), "*" in query]
    assert remembered == json.loads(json.dumps(cache)), "nothing was worked out again"


def test_another_text_is_read_anew(tmp_path: Path) -> None:
    facts = QueryFacts()
    for query in QUERIES:
        model = model_of(tmp_path, query)
        assert facts.windows(model.query) == windows_of(model.query)
        assert facts.why_apart(model) == why_apart(model)


OF_TABLES = (
    "SELECT * FROM t",
    "SELECT t.* FROM t",
    "SELECT a, t.* EXCEPT (b) FROM t JOIN u ON t.id = u.id",
    "WITH x AS (SELECT * FROM t) SELECT a FROM x",
    "WITH x AS (SELECT a FROM t) SELECT * FROM x, u",
    "SELECT struct(*) FROM t",
    "SELECT s.t.* FROM s.t",
    "SELECT a.b.* FROM (SELECT a FROM t) AS a",
    "SELECT a FROM (SELECT * FROM t)",
    "SELECT a FROM u UNION ALL SELECT * FROM t",
    "FROM t SELECT *",
    "CREATE TEMP VIEW v AS SELECT * FROM t",
)
OF_QUERIES = (
    "SELECT a FROM t",
    "SELECT a * 2, count(*) FROM t",
    "WITH x AS (SELECT a FROM t) SELECT * FROM x",
    "WITH x AS (SELECT a FROM t) SELECT x.*, u.b FROM x JOIN u ON x.a = u.a",
    "SELECT * FROM (SELECT a FROM t)",
    "WITH x AS (SELECT a FROM t), y AS (SELECT * FROM x) SELECT * FROM y",
)


@pytest.mark.parametrize("text", OF_TABLES)
def test_columns_follow_those_of_a_table(text: str) -> None:
    assert selects_all(tokenize(text))


@pytest.mark.parametrize("text", OF_QUERIES)
def test_columns_are_those_of_the_text(text: str) -> None:
    assert not selects_all(tokenize(text))
