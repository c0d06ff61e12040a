"""Settings: file, environment, flags, and messages that say where and what."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import ConfigError
from penstock.settings.config import Settings, SparkSettings, load_settings

MINIMAL = '[lakes.main]\ncatalog = "sqlite:lake/meta.sqlite"\ndata_path = "lake/data"\n'


def load(
    root: Path, text: str = MINIMAL, environ: dict[str, str] | None = None, **flags: str
) -> Settings:
    (root / "penstock.toml").write_text(text)
    overrides = {key.replace("__", "."): value for key, value in flags.items()}
    return load_settings(root, environ=environ or {}, overrides=overrides)


def failure(root: Path, text: str, environ: dict[str, str] | None = None) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load(root, text, environ)
    return caught.value


def test_minimal_file_has_sensible_defaults(tmp_path: Path) -> None:
    settings = load(tmp_path)
    assert settings.name == tmp_path.name
    assert settings.models == tmp_path / "models"
    assert settings.jobs is None
    assert settings.spark.master is None
    assert settings.lakes["main"].partition_column == "_wm_partition"


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    lake = load(tmp_path).lakes["main"]
    assert lake.catalog == f"ducklake:sqlite:{tmp_path}/lake/meta.sqlite"
    assert lake.data_path == f"{tmp_path}/lake/data"


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("postgres:dbname=lake host=db", "ducklake:postgres:dbname=lake host=db"),
        ("ducklake:postgres:dbname=lake", "ducklake:postgres:dbname=lake"),
        ("ducklake:sqlite:/abs/meta.sqlite", "ducklake:sqlite:/abs/meta.sqlite"),
        ("postgresql://u@h/db", "ducklake:postgresql://u@h/db"),
    ],
)
def test_catalog_uris(tmp_path: Path, written: str, read: str) -> None:
    settings = load(tmp_path, f'[lakes.main]\ncatalog = "{written}"\n')
    assert settings.lakes["main"].catalog == read


def test_data_path_with_a_scheme_stays(tmp_path: Path) -> None:
    text = '[lakes.main]\ncatalog = "sqlite:m"\ndata_path = "s3://bucket/data"\n'
    assert load(tmp_path, text).lakes["main"].data_path == "s3://bucket/data"


def test_everything_that_can_be_set(tmp_path: Path) -> None:
    text = (
        MINIMAL + 'partition_column = "slice"\nmetadata_schema = "meta"\n'
        '[project]\nname = "shop"\nmodels = "steps"\n'
        '[spark]\nmaster = "local[3]"\n[spark.conf]\n"spark.sql.shuffle.partitions" = 4\n'
        '"spark.x" = true\n[run]\njobs = 2\n'
    )
    settings = load(tmp_path, text)
    assert (settings.name, settings.models, settings.jobs) == ("shop", tmp_path / "steps", 2)
    assert settings.spark.conf == {"spark.sql.shuffle.partitions": "4", "spark.x": "true"}
    assert settings.lakes["main"].partition_column == "slice"
    assert settings.lakes["main"].metadata_schema == "meta"


def test_environment_goes_over_the_file(tmp_path: Path) -> None:
    environ = {
        "PENSTOCK_LAKES_MAIN_CATALOG": "postgres:dbname=x",
        "PENSTOCK_LAKES_MAIN_DATA_PATH": "elsewhere",
        "PENSTOCK_RUN_JOBS": "7",
    }
    settings = load(tmp_path, environ=environ)
    assert settings.lakes["main"].catalog == "ducklake:postgres:dbname=x"
    assert settings.lakes["main"].data_path == f"{tmp_path}/elsewhere"
    assert settings.jobs == 7


def test_environment_keeps_the_case_of_a_lake(tmp_path: Path) -> None:
    text = MINIMAL.replace("main", "Main_Two")
    settings = load(tmp_path, text, {"PENSTOCK_LAKES_MAIN_TWO_CATALOG": "sqlite:/x"})
    assert list(settings.lakes) == ["Main_Two"]
    assert settings.lakes["Main_Two"].catalog == "ducklake:sqlite:/x"


def test_flags_go_over_the_environment(tmp_path: Path) -> None:
    settings = load(tmp_path, environ={"PENSTOCK_RUN_JOBS": "7"}, run__jobs="2")
    assert settings.jobs == 2


def test_flags_reach_a_spark_setting(tmp_path: Path) -> None:
    (tmp_path / "penstock.toml").write_text(MINIMAL)
    overrides = {"spark.conf.spark.sql.ansi.enabled": "false"}
    settings = load_settings(tmp_path, environ={}, overrides=overrides)
    assert settings.spark.conf == {"spark.sql.ansi.enabled": "false"}


def test_other_names_of_the_environment_are_not_ours(tmp_path: Path) -> None:
    assert isinstance(load(tmp_path, environ={"PENSTOCK_TEST_POSTGRES": "x"}), Settings)


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (MINIMAL + "[spak]\nmaster = 1\n", 4, "'spark'"),
        (MINIMAL + "[spark]\nmastr = 'x'\n", 5, "'master'"),
        (MINIMAL + "datapath = 'x'\n", 4, "'data_path'"),
        (MINIMAL + "[run]\n\n# so many\njobs = 'two'\n", 7, "whole number"),
        (MINIMAL + "[run]\njobs = true\n", 5, "whole number"),
        (MINIMAL + "[run]\njobs = 0\n", 5, "1 or more"),
        ("project = 3\n" + MINIMAL, 1, "a table"),
        ("[lakes]\nmain = 'x'\n", 2, "a table"),
        ("[lakes.main]\ndata_path = 'x'\n", 2, "no catalog"),
        (MINIMAL + "[spark.conf]\nspark.sql.x = 1\n", 4, "quote the whole name"),
        ("[lakes.main\n", 1, "not TOML"),
        ('[lakes.main]\ncatalog = ""\n', 2, "is empty"),
        (MINIMAL + 'partition_column = ""\n', 4, "is empty"),
        (MINIMAL + "override_data_path = 1\n", 4, "true or false"),
        ('[lakes.main]\ncatalog = "sqlite:m"\noverride_data_path = true\n', 3, "no data_path"),
    ],
)
def test_mistakes_name_their_line(tmp_path: Path, text: str, line: int, said: str) -> None:
    error = failure(tmp_path, text)
    assert error.location is not None
    assert error.location.line == line
    assert said in str(error)
    assert error.exit_code == 2


def test_no_lake_says_what_to_add(tmp_path: Path) -> None:
    assert "[lakes.main]" in str(failure(tmp_path, "[project]\nname = 'x'\n"))


def test_what_is_no_text_or_no_directory(tmp_path: Path) -> None:
    (tmp_path / "penstock.toml").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match=r"not UTF-8 \(byte 0\)"):
        load_settings(tmp_path, environ={})
    with pytest.raises(ConfigError, match=r"penstock\.toml is not a directory"):
        load_settings(tmp_path / "penstock.toml", environ={})


def test_override_data_path(tmp_path: Path) -> None:
    assert not load(tmp_path).lakes["main"].override_data_path
    lake = load(tmp_path, MINIMAL + "override_data_path = true\n").lakes["main"]
    assert lake.override_data_path
    environ = {"PENSTOCK_LAKES_MAIN_OVERRIDE_DATA_PATH": "true"}
    assert load(tmp_path, environ=environ).lakes["main"].override_data_path
    environ = {"PENSTOCK_LAKES_MAIN_OVERRIDE_DATA_PATH": "yes"}
    with pytest.raises(ConfigError, match="true or false"):
        load(tmp_path, environ=environ)


def test_no_file_says_how_to_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="penstock init"):
        load_settings(tmp_path, environ={})


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("PENSTOCK_RUN_JOB", "2", "'jobs'"),
        ("PENSTOCK_RUN_JOBS", "two", "whole number"),
        ("PENSTOCK_LAKES_MAIN_CATALOGUE", "x", "setting of a lake"),
    ],
)
def test_mistakes_in_the_environment_name_the_variable(
    tmp_path: Path, name: str, value: str, said: str
) -> None:
    error = failure(tmp_path, MINIMAL, {name: value})
    assert name in str(error)
    assert said in str(error)


@pytest.mark.parametrize(
    "master",
    ["local", "local[4]", "local[*]", "local[2, 3]", "yarn", "spark://h:7077", "k8s://h", "sc://h"],
)
def test_masters_of_spark(tmp_path: Path, master: str) -> None:
    assert load(tmp_path, MINIMAL + f"[spark]\nmaster = '{master}'\n").spark.master == master


@pytest.mark.parametrize("master", ["locl[2]", "local[0]", "local[two]", "", "http://h"])
def test_a_master_that_spark_does_not_know_is_told_with_its_line(
    tmp_path: Path, master: str
) -> None:
    error = failure(tmp_path, MINIMAL + f"[spark]\nmaster = '{master}'\n")
    assert error.exit_code == 2
    assert error.location is not None
    assert error.location.line == 5
    assert f"spark.master is {master!r}" in error.message


def test_the_dialect_of_scripts(tmp_path: Path) -> None:
    assert load(tmp_path).dialect == "spark"
    assert load(tmp_path, f'[project]\ndialect = "duckdb"\n{MINIMAL}').dialect == "duckdb"
    error = failure(tmp_path, f'[project]\ndialect = "postgres"\n{MINIMAL}')
    assert error.message == "project.dialect must be spark or duckdb, not 'postgres'"
    assert error.location is not None
    assert error.location.line == 2


def test_how_many_failing_rows_are_shown(tmp_path: Path) -> None:
    assert load(tmp_path).test_samples == 20
    assert load(tmp_path, f"[project]\ntest_samples = 0\n{MINIMAL}").test_samples == 0
    error = failure(tmp_path, f"[project]\ntest_samples = -1\n{MINIMAL}")
    assert error.message == "project.test_samples must be 0 or more, not -1"
    error = failure(tmp_path, f'[project]\ntest_samples = "all"\n{MINIMAL}')
    assert error.message == "test_samples must be a whole number, not 'all'"


DELTA = f'{MINIMAL}[delta.sales]\nroot = "tables"\n'


def test_a_delta_root_has_an_index_beside_the_lake(tmp_path: Path) -> None:
    settings = load(tmp_path, DELTA)
    root = settings.lakes["sales"]
    assert (root.kind, root.data_path) == ("delta", f"{tmp_path}/tables")
    assert root.catalog == f"ducklake:sqlite:{tmp_path}/lake/meta.delta-sales.sqlite"
    assert (settings.default_lake, settings.delta_roots) == ("main", frozenset({"sales"}))
    assert not root.deletion_vectors
    assert load(tmp_path, f"{DELTA}deletion_vectors = true\n").lakes["sales"].deletion_vectors
    environ = {"PENSTOCK_DELTA_SALES_DELETION_VECTORS": "true"}
    assert load(tmp_path, DELTA, environ).lakes["sales"].deletion_vectors
    text = DELTA.replace("sqlite:lake/meta.sqlite", "postgres:dbname=lake")
    root = load(tmp_path, text, {"PENSTOCK_DELTA_SALES_ROOT": "s3://bucket/delta"}).lakes["sales"]
    assert root.data_path == "s3://bucket/delta"
    assert root.catalog == "ducklake:postgres:dbname=lake"
    assert root.metadata_schema == "penstock_delta_sales"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ('[delta.main]\nroot = "x"\n', 5, "name of a lake and of a Delta root"),
        ('[delta.sales]\npartition_column = "x"\n', 5, "has no root"),
        ('[delta.sales]\nroot = ""\n', 5, "root of Delta root 'sales' is empty"),
        ('[delta.sales]\nrooot = "x"\n', 5, "unknown key in [delta.sales]"),
    ],
)
def test_mistakes_of_delta_roots(tmp_path: Path, text: str, line: int, said: str) -> None:
    error = failure(tmp_path, MINIMAL + text)
    assert said in error.message
    assert error.hint
    assert error.location is not None
    assert error.location.line == line


def test_an_environment_with_another_catalog_has_its_own_delta_root(tmp_path: Path) -> None:
    other = '[environments.dev.lakes.main]\ncatalog = "sqlite:dev"\ndata_path = "dev"\n'
    (tmp_path / "penstock.toml").write_text(DELTA + other)
    with pytest.raises(ConfigError, match="and the Delta root sales of the first"):
        load_settings(tmp_path, environment="dev", environ={})
    own = '[environments.dev.delta.sales]\nroot = "dev/tables"\n'
    (tmp_path / "penstock.toml").write_text(DELTA + other + own)
    settings = load_settings(tmp_path, environment="dev", environ={})
    assert settings.lakes["sales"].data_path == f"{tmp_path}/dev/tables"


def test_a_program_without_a_file_has_the_defaults_of_the_keys(tmp_path: Path) -> None:
    """As the adapter of dbt makes its settings."""
    (tmp_path / "penstock.toml").write_text('[lakes.main]\ncatalog = "sqlite:meta.sqlite"\n')
    own = Settings(tmp_path, "dbt", tmp_path, {}, SparkSettings())
    of_file = load_settings(tmp_path, environ={})
    assert (own.jobs, own.dialect, own.infer_names) == (None, of_file.dialect, False)
    assert (own.test_samples, own.python_timeout) == (of_file.test_samples, of_file.python_timeout)
    assert (own.retention.logs, own.retention.records) == (
        of_file.retention.logs,
        of_file.retention.records,
    )
