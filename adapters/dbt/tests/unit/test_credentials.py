from __future__ import annotations

from typing import Any

import pytest
from dbt_common.exceptions import DbtConfigError

from dbt.adapters.penstock.credentials import PenstockCredentials

CATALOG = "ducklake:sqlite:lake.sqlite"


def credentials(**given: Any) -> PenstockCredentials:
    return PenstockCredentials(**{"catalog": CATALOG, **given})


def test_the_lake_is_called_lake_and_has_the_schema_main() -> None:
    assert (credentials().database, credentials().schema) == ("lake", "main")


def test_each_lake_has_the_arguments_of_attach() -> None:
    other = {"catalog": "ducklake:other.ducklake", "data_path": "s3://b/o", "s3_region": "eu"}
    profile = credentials(data_path="data/", s3_endpoint="http://x:9000", lakes={"other": other})
    assert profile.attachments() == {
        "lake": {
            "uri": CATALOG,
            "data_path": "data/",
            "metadata_schema": None,
            "name": "lake",
            "storage": {"endpoint": "http://x:9000"},
        },
        "other": {
            "uri": "ducklake:other.ducklake",
            "data_path": "s3://b/o",
            "metadata_schema": None,
            "name": "other",
            "storage": {"region": "eu"},
        },
    }


def test_an_index_of_a_delta_root_is_beside_the_catalog() -> None:
    marked = {"root": "marked", "deletion_vectors": True}
    far = {"root": "s3://b/d", "s3_region": "eu"}
    given = {"sales": "delta", "far": far, "marked": marked}
    roots = credentials(delta=given, s3_region="us").roots()
    assert roots["sales"] == {
        "root": "delta",
        "index": "ducklake:sqlite:lake.delta-sales.sqlite",
        "metadata_schema": None,
        "name": "sales",
        "storage": {"region": "us"},
        "deletion_vectors": False,
    }
    assert roots["marked"] == {
        **roots["sales"],
        "root": "marked",
        "index": "ducklake:sqlite:lake.delta-marked.sqlite",
        "name": "marked",
        "deletion_vectors": True,
    }
    assert roots["far"]["storage"] == {"region": "eu"}
    assert dict(credentials(delta=given).connection_info())["delta"] == "sales, far, marked"


def test_settings_of_spark_are_texts_as_spark_has_them() -> None:
    profile = credentials(spark={"master": "local[2]", "conf": {"a": True, "b": 2}}, warm="5m")
    settings = profile.spark_settings()
    assert (settings.master, settings.conf, settings.warm) == (
        "local[2]",
        {"a": "true", "b": "2"},
        300,
    )


def test_a_session_is_not_warm_unless_the_profile_says_so() -> None:
    assert credentials().spark_settings().warm is None
    assert credentials(warm=True).spark_settings().warm is not None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"catalog": ""}, "names no catalog"),
        ({"spark": {"mastr": "local"}}, "spark has no setting 'mastr'"),
        ({"lakes": {"x": {}}}, "lakes.x names no catalog"),
        ({"lakes": {"lake": {"catalog": CATALOG}}}, "two of lake, lake have one name"),
        ({"delta": {"Lake": "delta"}}, "two of lake, Lake have one name"),
        ({"delta": {"sales": {}}}, "delta.sales has no root"),
        ({"delta": {"s": {"root": "d", "deletion_vectors": "yes"}}}, "vectors is 'yes'"),
        ({"warm": "soon"}, "warm is 'soon'"),
    ],
)
def test_a_wrong_profile_is_refused_with_what_to_write(given: dict[str, Any], message: str) -> None:
    with pytest.raises(DbtConfigError, match=message):
        credentials(**given).spark_settings()


def test_what_is_shown_has_no_secrets() -> None:
    profile = credentials(s3_secret_key="hidden", s3_access_key="key")
    assert "hidden" not in str(dict(profile.connection_info()))


def test_a_password_in_the_catalog_is_not_shown() -> None:
    profile = credentials(catalog="ducklake:postgres:host=h password=hidden dbname=l")
    assert "hidden" not in str(dict(profile.connection_info()))
