"""dbt's own suite ``persist_docs``."""

from __future__ import annotations

from typing import Any

from dbt.tests.adapter.persist_docs import test_persist_docs as persist_docs_suite


class TestPersistDocs(persist_docs_suite.TestPersistDocs):
    """The format has comments of a view, not of its columns."""

    def _assert_has_view_comments(
        self, view_node: Any, has_node_comments: bool = True, has_column_comments: bool = True
    ) -> None:
        super()._assert_has_view_comments(view_node, has_node_comments, has_column_comments=False)


class TestPersistDocsColumnMissing(persist_docs_suite.TestPersistDocsColumnMissing):
    pass


class TestPersistDocsAllColumnsMissing(persist_docs_suite.TestPersistDocsAllColumnsMissing):
    pass


class TestPersistDocsQuotedColumnCaseSensitive(
    persist_docs_suite.TestPersistDocsQuotedColumnCaseSensitive
):
    pass


class TestPersistDocsQuotedDescriptionNotAppliedOnMismatch(
    persist_docs_suite.TestPersistDocsQuotedDescriptionNotAppliedOnMismatch
):
    pass


class TestPersistDocsCommentOnQuotedColumn(persist_docs_suite.TestPersistDocsCommentOnQuotedColumn):
    pass
