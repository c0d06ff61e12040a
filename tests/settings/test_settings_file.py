"""What penstock.toml says: environments and what they override, variables in texts, places."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import ConfigError
from penstock.settings.config import Settings, load_settings

BASE = """\
[project]
name = "shop"

[project.defaults]
owner = "data"
start = "2024-01-01"

[lakes.main]
catalog = "sqlite:lake/meta.sqlite"
data_path = "lake/data"

[spark.conf]
"spark.sql.shuffle.partitions" = 4
"spark.x" = "base"
"""
PROD = """\
[environments.prod.lakes.main]
catalog = "postgres:dbname=lake host=db password='${PGPASSWORD}'"
data_path = "s3://shop/lake"

[environments.prod.spark]
master = "spark://${SPARK_HOST:-cluster}:7077"
"""


def load(root: Path, text: str, environment: str | None = None, **environ: str) -> Settings:
    (root / "penstock.toml").write_text(text)
    return load_settings(root, environment=environment, environ=environ)


def failure(root: Path, text: str, environment: str | None = None, **environ: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load(root, text, environment, **environ)
    return caught.value


def test_without_an_environment_none_of_their_settings_count(tmp_path: Path) -> None:
    settings = load(tmp_path, BASE + PROD)
    assert settings.environment is None
    assert settings.spark.master is None
    assert settings.lakes["main"].data_path == f"{tmp_path}/lake/data"


def test_an_environment_overrides_settings_and_leaves_the_others(tmp_path: Path) -> None:
    settings = load(tmp_path, BASE + PROD, "prod", PGPASSWORD="hush")
    assert settings.environment == "prod"
    assert settings.name == "shop"
    assert settings.lakes["main"].data_path == "s3://shop/lake"
    assert settings.lakes["main"].catalog.endswith("host=db password='hush'")
    assert settings.spark.master == "spark://cluster:7077"


def test_a_variable_of_the_process_names_the_environment(tmp_path: Path) -> None:
    settings = load(tmp_path, BASE + PROD, PENSTOCK_ENV="prod", PGPASSWORD="x")
    assert settings.environment == "prod"


def test_what_is_named_goes_over_the_variable(tmp_path: Path) -> None:
    text = BASE + PROD + "[environments.dev.run]\njobs = 1\n"
    settings = load(tmp_path, text, "dev", PENSTOCK_ENV="prod")
    assert (settings.environment, settings.jobs) == ("dev", 1)


def test_default_is_none_whatever_the_variable_names(tmp_path: Path) -> None:
    assert load(tmp_path, BASE + PROD, "default", PENSTOCK_ENV="prod").environment is None


def test_an_empty_variable_names_no_environment(tmp_path: Path) -> None:
    assert load(tmp_path, BASE + PROD, PENSTOCK_ENV="").environment is None


def test_variables_of_settings_go_over_the_environment(tmp_path: Path) -> None:
    environ = {"PGPASSWORD": "x", "PENSTOCK_LAKES_MAIN_DATA_PATH": "s3://other/lake"}
    settings = load(tmp_path, BASE + PROD, "prod", **environ)
    assert settings.lakes["main"].data_path == "s3://other/lake"


def test_conf_of_spark_is_overridden_name_by_name(tmp_path: Path) -> None:
    text = BASE + '[environments.dev.spark.conf]\n"spark.x" = "own"\n"spark.y" = true\n'
    conf = load(tmp_path, text, "dev").spark.conf
    assert conf == {"spark.sql.shuffle.partitions": "4", "spark.x": "own", "spark.y": "true"}


def test_defaults_are_overridden_key_by_key_and_folder_by_folder(tmp_path: Path) -> None:
    text = BASE + (
        '[environments.dev.project.defaults]\nstart = "2026-01-01"\n'
        '[environments.dev.project.defaults.marts]\nowner = "me"\n'
    )
    everywhere, marts = load(tmp_path, text, "dev").defaults
    assert everywhere.values == {"owner": "data", "start": "2026-01-01"}
    assert everywhere.places["start"].line == 16
    assert (marts.folder, marts.values) == ("marts", {"owner": "me"})


def test_a_lake_of_an_environment_only(tmp_path: Path) -> None:
    text = BASE + '[environments.dev]\nlakes.other.catalog = "sqlite:o"\n'
    assert list(load(tmp_path, text).lakes) == ["main"]
    assert list(load(tmp_path, text, "dev").lakes) == ["main", "other"]


@pytest.mark.parametrize(
    ("name", "hint"),
    [("prd", "did you mean 'prod'? penstock.toml has dev, prod"), ("x", "penstock.toml has dev")],
)
def test_unknown_environments_are_listed(tmp_path: Path, name: str, hint: str) -> None:
    error = failure(tmp_path, BASE + PROD + "[environments.dev.run]\njobs = 1\n", name)
    assert f"the environment {name!r} does not exist" in str(error)
    assert "--env" in str(error)
    assert hint in (error.hint or "")


def test_who_named_an_unknown_environment(tmp_path: Path) -> None:
    error = failure(tmp_path, BASE, PENSTOCK_ENV="prod")
    assert "environment variable PENSTOCK_ENV" in str(error)
    assert "start one with a section [environments.prod]" in (error.hint or "")


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("[environments.prod.spak]\nmaster = 1\n", 15, "unknown section: 'spak'"),
        ("[environments.prod.spark]\nmastr = 'x'\n", 16, "key in [environments.prod.spark]"),
        ("[environments.prod.run]\njobs = 'two'\n", 16, "whole number"),
        ("[environments.prod]\nrun.jobs = 'two'\n", 16, "whole number"),
        ("[environments.default.run]\njobs = 1\n", 15, "cannot be called 'default'"),
        ("[environments]\nprod = 1\n", 16, "environments.prod must be a table"),
        ("[environments.prod.lakes]\nmain = 1\n", 16, "lakes.main must be a table"),
        ("[environments.prod.project.defaults]\nownr = 'x'\n", 16, "'ownr'"),
    ],
)
def test_mistakes_are_named_with_their_line_in_any_environment(
    tmp_path: Path, text: str, line: int, said: str
) -> None:
    error = failure(tmp_path, BASE + text)
    assert said in str(error)
    assert error.location is not None
    assert (error.location.path, error.location.line) == (tmp_path / "penstock.toml", line)


@pytest.mark.parametrize("key", ["catalog = 'postgres:dbname=x'", "metadata_schema = 'mine'"])
def test_another_catalog_has_files_of_its_own(tmp_path: Path, key: str) -> None:
    text = BASE.replace('data_path = "', 'metadata_schema = "base"\ndata_path = "')
    error = failure(tmp_path, f"{text}[environments.dev.lakes.main]\n{key}\n", "dev")
    assert "lakes.main has another catalog in environment 'dev'" in str(error)
    assert "data_path" in (error.hint or "")
    both = f"{text}[environments.dev.lakes.main]\n{key}\ndata_path = 'lake/data'\n"
    assert load(tmp_path, both, "dev").environment == "dev"  # said, so it is meant


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("${HOST}", "db"),
        ("a-${HOST}-${HOST}", "a-db-db"),
        ("${NONE:-local}", "local"),
        ("${NONE:-}", ""),
        ("${EMPTY:-local}", "local"),
        ("${EMPTY}", ""),
        ("${HOST:-local}", "db"),
        ("$${HOST}", "${HOST}"),
        ("$HOST ${spark.x} ${env:HOST} ${}", "$HOST ${spark.x} ${env:HOST} ${}"),
    ],
)
def test_variables_in_texts(tmp_path: Path, written: str, read: str) -> None:
    text = BASE.replace('"base"', f'"{written}"')
    assert load(tmp_path, text, HOST="db", EMPTY="").spark.conf["spark.x"] == read


def test_a_variable_that_is_not_set_is_named_with_its_line(tmp_path: Path) -> None:
    error = failure(tmp_path, BASE + PROD, "prod")
    assert "lakes.main.catalog names the environment variable PGPASSWORD" in str(error)
    assert error.hint == "set PGPASSWORD, or write a default: ${PGPASSWORD:-...}"
    assert error.location is not None
    assert error.location.line == 16


def test_a_variable_is_put_in_once(tmp_path: Path) -> None:
    text = BASE.replace('"base"', '"${A}"')
    assert load(tmp_path, text, A="${B}", B="x").spark.conf["spark.x"] == "${B}"


def test_variables_of_numbers_and_truths(tmp_path: Path) -> None:
    text = BASE + '[run]\njobs = "${JOBS}"\n[environments.dev.lakes.main]\ns3_path_style = "${P}"\n'
    settings = load(tmp_path, text, "dev", JOBS="3", P="True")
    assert (settings.jobs, settings.lakes["main"].storage) == (3, {"path_style": True})
    assert "whole number" in str(failure(tmp_path, text, JOBS="many"))


def test_variables_in_defaults_of_models(tmp_path: Path) -> None:
    text = BASE.replace('"data"', '"${USER}"') + '[project.defaults.x]\ntags = ["${USER}", "b"]\n'
    everywhere, folder = load(tmp_path, text, USER="ann").defaults
    assert everywhere.values["owner"] == "ann"
    assert folder.values["tags"] == ("ann", "b")


def test_secrets_of_variables_are_not_shown(tmp_path: Path) -> None:
    assert "hush" not in repr(load(tmp_path, BASE + PROD, "prod", PGPASSWORD="hush"))
