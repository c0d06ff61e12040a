"""Caches in the user's directory: right whatever is in them, and only where that is right.

Tests ``model/project/serialized.py`` (packed scripts are what they were).
"""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from penstock import Project
from penstock.engine.session.cache import CacheFile, lineages, scripts, stamp
from penstock.errors import ModelError
from penstock.model.definition.model import Model
from penstock.model.project import loader
from penstock.model.project.serialized import PackedStatement
from penstock.settings.config import load_settings

CONFIG = '[lakes.main]\ncatalog = "ducklake:sqlite:meta.sqlite"\ndata_path = "data"\n'
ORDERS = "-- materialize ducklake://main/orders\nSELECT id, a + 1 AS b FROM source WHERE a > :x\n"
ORDERS = ORDERS.replace("a > :x", "a > 1")
DAILY = "-- materialize ducklake://main/daily\nCREATE TEMP VIEW v AS FROM orders; SELECT b FROM v\n"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PENSTOCK_CACHE_DIR", str(tmp_path / "cache"))
    root = tmp_path / "shop"
    (root / "models").mkdir(parents=True)
    (root / "penstock.toml").write_text(CONFIG)
    (root / "models" / "orders.sql").write_text(ORDERS)
    (root / "models" / "daily.sql").write_text(DAILY)
    return root


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files whose SQL was read, and not taken from the cache."""
    names: list[str] = []
    understood = loader._understood

    def counted(path: Path, text: str, place: loader.Place) -> loader._File:
        names.append(path.name)
        return understood(path, text, place)

    monkeypatch.setattr(loader, "_understood", counted)
    return names


def load(root: Path) -> Project:
    """Closed: its models are values."""
    with Project.load(root) as project:
        return project


def model(root: Path, name: str) -> Model:
    return next(model for model in load(root).models if model.name == name)


def cache_of(root: Path) -> Path:
    cache = scripts(load_settings(root))
    assert cache is not None
    return cache.path


def test_what_is_loaded_again_is_the_same(shop: Path, read: list[str]) -> None:
    first = load(shop)
    again = load(shop)
    assert sorted(read) == ["daily.sql", "orders.sql"]
    assert again.models == first.models
    assert again.graph == first.graph
    for fresh, cached in zip(first.models, again.models, strict=True):
        names = {source: f"s{number}" for number, source in enumerate(fresh.query.sources)}
        assert fresh.query.render(names) == cached.query.render(names)
        assert all(isinstance(part.statement, PackedStatement) for part in cached.query.parts)
    third = load(shop)  # of what was unpacked and packed again
    assert third.models == first.models


def test_only_what_changed_is_read_again(shop: Path, read: list[str]) -> None:
    load(shop)
    read.clear()
    (shop / "models" / "daily.sql").write_text(DAILY.replace("SELECT b", "SELECT id"))
    assert "id" in model(shop, "daily").query.source.text.split("SELECT ")[1]
    assert read == ["daily.sql"]


def test_the_configuration_counts(shop: Path, read: list[str]) -> None:
    load(shop)
    read.clear()
    (shop / "penstock.toml").write_text('[project]\ndialect = "duckdb"\n' + CONFIG)
    assert model(shop, "orders").query.dialect == "duckdb"
    assert len(read) == 2


@pytest.fixture
def tested(shop: Path) -> Path:
    """A script that a test of a model names."""
    (shop / "tests").mkdir()
    script = shop / "tests" / "check.sql"
    script.write_text("SELECT * FROM orders")
    (shop / "models" / "orders.sql").write_text(f"-- data_test tests/check\n{ORDERS}")
    return script


def test_scripts_of_tests_are_cached_with_their_model(
    tested: Path, shop: Path, read: list[str]
) -> None:
    first = load(shop)
    read.clear()
    again = load(shop)
    assert (again.models, read) == (first.models, [])
    (script,) = model(shop, "orders").test_scripts
    assert all(isinstance(part.statement, PackedStatement) for part in script.query.parts)


def test_a_model_is_read_again_when_the_script_of_its_test_changes(
    tested: Path, shop: Path, read: list[str]
) -> None:
    load(shop)
    read.clear()
    tested.write_text("SELECT * FROM orders WHERE false")
    (script,) = model(shop, "orders").test_scripts
    assert read == ["orders.sql"]
    assert "false" in script.query.source.text


def test_a_script_that_comes_before_the_one_of_the_cache_is_seen(
    tested: Path, shop: Path, read: list[str]
) -> None:
    load(shop)
    (shop / "tests" / "check").write_text("SELECT * FROM orders WHERE b < 0")
    (script,) = model(shop, "orders").test_scripts
    assert "b < 0" in script.query.source.text


def test_a_script_that_is_gone_is_missed(tested: Path, shop: Path) -> None:
    load(shop)
    tested.unlink()
    with pytest.raises(ModelError, match="test script tests/check does not exist"):
        load(shop)


def test_errors_are_found_each_time(shop: Path) -> None:
    (shop / "models" / "orders.sql").write_text("-- materialize ducklake://main/orders\nSELECT (")
    for _ in range(2):
        with pytest.raises(ModelError, match="the query cannot be read"):
            load(shop)


def test_findings_are_cached_with_the_model(shop: Path) -> None:
    (shop / "models" / "orders.sql").write_text(f"-- freshness 1h\n{ORDERS}")
    findings = []
    for _ in range(2):
        with Project.load(shop) as project:
            findings.append(project.check())
    assert findings[0] == findings[1] != ()


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Path.touch, (Path("/nonexistent/evil"),)  # type: ignore[return-value]  # never run


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x80\x05garbage",
        pickle.dumps(3),
        pickle.dumps({"stamp": [0], "entries": {}}),
        pickle.dumps({"entries": {}}),
        pickle.dumps(Evil()),
    ],
    ids=["empty", "garbage", "a number", "another stamp", "no stamp", "code"],
)
def test_a_broken_cache_is_made_anew(content: bytes, shop: Path, read: list[str]) -> None:
    models = load(shop).models
    path = cache_of(shop)
    good = path.read_bytes()
    path.write_bytes(content)
    read.clear()
    assert load(shop).models == models
    assert len(read) == 2
    assert len(path.read_bytes()) == len(good)


def test_a_broken_entry_is_made_anew(shop: Path, read: list[str]) -> None:
    models = load(shop).models
    path = cache_of(shop)
    content = pickle.loads(path.read_bytes())
    entries = content["entries"]
    for key, entry in zip(entries, (pickle.dumps(Evil()), entries.popitem()[1][:50]), strict=False):
        entries[key] = entry
    path.write_bytes(pickle.dumps(content))
    read.clear()
    assert load(shop).models == models
    assert len(read) == 2


def test_files_that_are_gone_are_dropped(shop: Path) -> None:
    load(shop)
    (shop / "models" / "daily.sql").unlink()
    (shop / "models" / "orders.sql").write_text(ORDERS + "-- changed")
    load(shop)
    assert len(pickle.loads(cache_of(shop).read_bytes())["entries"]) == 1


def test_a_cache_that_cannot_be_written_is_none(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PENSTOCK_CACHE_DIR", str(tmp_path / "file" / "below"))
    assert len(load(shop).models) == 2


def test_no_cache(shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE_DIR", "")
    with Project.load(shop) as project:
        assert project.settings.cache is None
        assert project.column_lineage().of("main.daily") is not None
    assert not (tmp_path / "cache").exists()


def test_by_default_it_is_the_users(shop: Path) -> None:
    cache = load_settings(shop, environ={}).cache
    assert cache is not None
    assert "penstock" in cache.name.lower()
    assert not cache.is_relative_to(shop)


@pytest.mark.parametrize("content", [None, b"{", b"[]", b'{"stamp": 1, "entries": {}}'])
def test_lineage_is_cached(content: bytes | None, shop: Path) -> None:
    with Project.load(shop) as project:
        first = project.column_lineage()
    cache = lineages(project.settings)
    assert cache is not None
    assert len(cache) == 2
    if content is not None:
        cache.path.write_bytes(content)
    assert load(shop)  # the project's own cache is another file
    with Project.load(shop) as project:
        assert project.column_lineage() == first
    again = lineages(project.settings)
    assert again is not None
    assert sorted(again) == sorted(cache)


def test_lineage_of_some_models_leaves_that_of_others(shop: Path) -> None:
    with Project.load(shop) as project:
        names = [model.name for model in project.models]
    for name in names:  # as plans ask for it
        with Project.load(shop) as project:
            project._context.lineage({name})
    cache = lineages(project.settings)
    assert cache is not None
    assert len(cache) == len(names) == 2


def test_code_is_looked_at_once() -> None:
    assert stamp(("model", "sql")) is stamp(("model", "sql"))
    assert stamp(("model", "sql")) != stamp(("model",))


def test_an_entry_that_comes_while_the_file_is_saved_does_no_harm(tmp_path: Path) -> None:
    class Used(set[str]):
        """Adds an entry when it is asked, as another thread may do."""

        def __contains__(self, key: object) -> bool:
            file[f"later {key}"] = 1
            return super().__contains__(key)

    file: CacheFile[int] = CacheFile(tmp_path / "some.cache", pickle.dumps, pickle.loads)
    file["a"], file["b"] = 1, 2
    file._used = Used(file._used)
    file.save()
    assert dict(CacheFile(file.path, pickle.dumps, pickle.loads)) == {"a": 1, "b": 2}
