"""``penstock s3-jars``: download what Spark needs for S3."""

from __future__ import annotations

from pathlib import Path

import click

from penstock.cli.options import debug_option
from penstock.cli.output import print_json, say
from penstock.rendering.text import count


@click.command(
    "s3-jars",
    short_help="Download the jars that Spark needs for S3.",
    epilog="""\b
Examples:
  penstock s3-jars jars
  penstock s3-jars /opt/spark/s3 --json""",
)
@click.argument("directory", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
@debug_option
def command(directory: Path, as_json: bool) -> None:
    """Download into DIR, by Maven (mvn), the jars by which Spark reads and writes S3 (20 MB).

    They fit the version of PySpark that Penstock is tested with. The last line is what
    penstock.toml has to say. With a cluster, DIR must be where the driver runs; Spark sends the
    jars to the executors.
    """
    # Late: the command line has no need of it.
    from penstock.spark.s3_jars import download_s3_jars

    jars = download_s3_jars(directory)
    setting = str(directory.absolute() / "*.jar")
    if as_json:
        print_json({"directory": directory.absolute(), "jars": jars, "spark.jars": setting})
        return
    say(f"{count(len(jars), 'jar')} in {directory}")
    say(f'[spark.conf]\n"spark.jars" = "{setting}"')
