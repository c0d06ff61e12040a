#!/usr/bin/env sh
# A Kafka broker that needs no other service (KRaft) for the tests of Kafka, by Maven, into the
# directory given (43 MB).
# Then: PENSTOCK_TEST_EXTENDED=1 PENSTOCK_TEST_KAFKA=DIRECTORY pytest tests/server/test_kafka_source.py
set -eu
to="${1:?where to: scripts/kafka-jars.sh DIRECTORY}"
kafka=4.1.1
command -v mvn >/dev/null || { echo "kafka-jars.sh needs Maven: install mvn and put it on PATH" >&2; exit 2; }
mkdir -p "$to"
to="$(cd "$to" && pwd)"
pom="$(mktemp -d)"
trap 'rm -rf "$pom"' EXIT
cat >"$pom/pom.xml" <<END
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>penstock</groupId><artifactId>kafka</artifactId><version>1</version><dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId>
<version>$kafka</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId>
<version>1.7.36</version></dependency>
</dependencies></project>
END
mvn -q -B -f "$pom/pom.xml" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$to"
