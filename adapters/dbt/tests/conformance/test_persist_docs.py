"""dbt's own suite ``persist_docs``."""

from __future__ import annotations

from dbt.tests.adapter.persist_docs import test_persist_docs as persist_docs_suite


class TestPersistDocs(persist_docs_suite.TestPersistDocs):
    pass


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
