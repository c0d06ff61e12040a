"""dbt's own suite ``hooks``, with what a lake has: no user, and CHECKPOINT instead of VACUUM."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.adapter.hooks import test_model_hooks as models_suite
from dbt.tests.adapter.hooks import test_run_hooks as runs_suite

OUTSIDE = {"sql": "checkpoint", "transaction": False}


@pytest.fixture(scope="module")
def test_data_dir() -> str:
    return str(Path(models_suite.__file__).parent / "data")


class Contexts:
    """Check what a hook knew of its run."""

    def check_hooks(self, state: str, project: Any, host: Any, count: int = 1) -> None:
        arguments = {} if isinstance(self, runs_suite.BasePrePostRunHooks) else {"count": count}
        found = self.get_ctx_vars(state, project=project, **arguments)  # type: ignore[attr-defined] # of the class that this is mixed into
        for context in found if isinstance(found, list) else [found]:
            assert context["test_state"] == state
            assert context["target_name"] == "default"
            assert context["target_schema"] == project.test_schema
            assert context["target_threads"] == 2
            assert context["target_type"] == "penstock"
            assert context["run_started_at"]
            assert context["invocation_id"]
            assert context["thread_id"].startswith(("Thread-", "MainThread"))


class TestPrePostModelHooks(Contexts, models_suite.BasePrePostModelHooks):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        before = [models_suite.MODEL_PRE_HOOK, OUTSIDE]
        after = [OUTSIDE, models_suite.MODEL_POST_HOOK]
        return {"models": {"test": {"pre-hook": before, "post-hook": after}}}


class TestPrePostModelHooksUnderscores(Contexts, models_suite.BasePrePostModelHooks):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        before = [models_suite.MODEL_PRE_HOOK, OUTSIDE]
        after = [OUTSIDE, models_suite.MODEL_POST_HOOK]
        return {"models": {"test": {"pre_hook": before, "post_hook": after}}}


class TestHookRefs(Contexts, models_suite.BaseHookRefs):
    pass


class TestPrePostModelHooksOnSeeds(models_suite.BasePrePostModelHooksOnSeeds):
    pass


class TestHooksRefsOnSeeds(models_suite.BaseHooksRefsOnSeeds):
    pass


class TestPrePostModelHooksOnSeedsPlusPrefixed(
    models_suite.BasePrePostModelHooksOnSeedsPlusPrefixed
):
    pass


class TestPrePostModelHooksOnSeedsPlusPrefixedWhitespace(
    models_suite.BasePrePostModelHooksOnSeedsPlusPrefixedWhitespace
):
    pass


class TestPrePostModelHooksOnSnapshots(models_suite.BasePrePostModelHooksOnSnapshots):
    pass


class TestPrePostModelHooksInConfig(Contexts, models_suite.BasePrePostModelHooksInConfig):
    pass


class TestPrePostModelHooksInConfigWithCount(
    Contexts, models_suite.BasePrePostModelHooksInConfigWithCount
):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        before = [models_suite.MODEL_PRE_HOOK, OUTSIDE]
        after = [OUTSIDE, models_suite.MODEL_POST_HOOK]
        return {"models": {"test": {"pre-hook": before, "post-hook": after}}}


class TestPrePostModelHooksInConfigKwargs(
    Contexts, models_suite.BasePrePostModelHooksInConfigKwargs
):
    pass


class TestPrePostSnapshotHooksInConfigKwargs(models_suite.BasePrePostSnapshotHooksInConfigKwargs):
    pass


class TestDuplicateHooksInConfigs(models_suite.BaseDuplicateHooksInConfigs):
    pass


class TestPrePostRunHooks(Contexts, runs_suite.BasePrePostRunHooks):
    pass


class TestAfterRunHooks(runs_suite.BaseAfterRunHooks):
    pass
