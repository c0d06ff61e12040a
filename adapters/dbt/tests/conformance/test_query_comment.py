"""dbt's own suite ``query_comment``."""

from __future__ import annotations

from dbt.tests.adapter.query_comment import test_query_comment as query_comment_suite


class TestQueryComments(query_comment_suite.TestQueryComments):
    pass


class TestMacroQueryComments(query_comment_suite.TestMacroQueryComments):
    pass


class TestMacroArgsQueryComments(query_comment_suite.TestMacroArgsQueryComments):
    pass


class TestMacroInvalidQueryComments(query_comment_suite.TestMacroInvalidQueryComments):
    pass


class TestNullQueryComments(query_comment_suite.TestNullQueryComments):
    pass


class TestEmptyQueryComments(query_comment_suite.TestEmptyQueryComments):
    pass
