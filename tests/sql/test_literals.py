"""DuckDB's brackets in Spark's words; what Spark means by brackets stays."""

from __future__ import annotations

import pytest

from penstock.sql.literals import in_spark
from penstock.sql.tokens import SqlText

WRITTEN = {
    "SELECT [1, NULL]": "SELECT array(1, NULL)",
    "[a]": "array(a)",  # an expression alone
    "SELECT [], [[1], []]": "SELECT array(), array(array(1), array())",
    "SELECT {'a': 9, b: 'n'}": "SELECT named_struct('a', 9, 'b', 'n')",
    "SELECT {'a': {b: [c]}}.a": "SELECT named_struct('a', named_struct('b', array(c))).a",
    "SELECT MAP {'k': [1], :m: 2}": "SELECT MAP ('k', array(1), :m, 2)",
    "WHERE l = [1]\nOR x IN ([2], [:y])": "WHERE l = array(1)\nOR x IN (array(2), array(:y))",
    "SELECT {'a':b, 'c': f(d, [e])[0]}": "SELECT named_struct('a',b, 'c', f(d, array(e))[0])",
    "SELECT '[1]', \"{'a': 1}\", l[1], l[1:2], f(x)[0], x::INT[], `[`": "",
    "SELECT {'a': v:['b'], 'c': [v:['d'][0]]}": (
        "SELECT named_struct('a', v:['b'], 'c', array(v:['d'][0]))"
    ),
    "SELECT CAST(v :['a'] AS INT), v : ['b'][0], f(v):['c'], v:a['b'], v:[0]": "",  # of a VARIANT
    "SELECT [x FOR x IN l]": "",
    "SELECT {a}, {'a'}, {1: 2}": "",
    "SELECT [1": "",
}


@pytest.mark.parametrize("text", WRITTEN)
def test_in_spark(text: str) -> None:
    assert in_spark(SqlText(text)).text == (WRITTEN[text] or text)
