"""What is remembered of queries is what reading them anew says, and only of the same text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.model.definition.model import Model
from penstock.model.slicing.joint import why_apart
from penstock.model.slicing.query_facts import QueryFacts
from penstock.model.slicing.windows import windows_of
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
