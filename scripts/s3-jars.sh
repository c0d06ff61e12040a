#!/usr/bin/env sh
# What the tests of S3 need, by Maven, into the directory given: a server program that speaks S3
# (S3Proxy, 55 MB), and the jars of S3A for Spark, which the package has a script for.
# Then: PENSTOCK_TEST_S3=DIRECTORY pytest tests/lakes/test_s3*.py
set -eu
to="${1:?where to: scripts/s3-jars.sh DIRECTORY}"
s3proxy=4.1.0
mkdir -p "$to"
mvn -q -B dependency:copy -DoutputDirectory="$(cd "$to" && pwd)/server" \
    -Dartifact="org.gaul:s3proxy:$s3proxy:jar:jar-with-dependencies"
sh "$(dirname "$0")/../src/penstock/spark/s3-jars.sh" "$to/spark"
