"""dbt's own suite ``ephemeral``."""

from __future__ import annotations

from dbt.tests.adapter.ephemeral import test_ephemeral as ephemeral_suite


class TestEphemeralMulti(ephemeral_suite.TestEphemeralMulti):
    pass


class TestEphemeralNested(ephemeral_suite.TestEphemeralNested):
    pass


class TestEphemeralErrorHandling(ephemeral_suite.TestEphemeralErrorHandling):
    pass
