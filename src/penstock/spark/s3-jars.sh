#!/usr/bin/env sh
# The jars of S3A for Spark, by Maven, into the directory given (20 MB): the few modules of the AWS
# SDK that it uses instead of the bundle of all, 690 MB, with the class that S3A's magic committer
# needs on Spark's side: alone, as what that jar depends on is another Hadoop. For Spark 4.3.0 there
# is none; 4.1.2 is the newest. Then, in penstock.toml:
#   [spark.conf]
#   "spark.jars" = "DIRECTORY/*.jar"
set -eu
to="${1:?where to: s3-jars.sh DIRECTORY}"
hadoop=3.5.0 sdk=2.35.4 cloud=2.13-4.1.2
command -v mvn >/dev/null || { echo "s3-jars.sh needs Maven: install mvn and put it on PATH" >&2; exit 2; }
mkdir -p "$to"
to="$(cd "$to" && pwd)"
pom="$(mktemp -d)"
trap 'rm -rf "$pom"' EXIT

sdk_module() {
    echo "<dependency><groupId>software.amazon.awssdk</groupId>"
    echo "<artifactId>$1</artifactId><version>$sdk</version></dependency>"
}
cat >"$pom/pom.xml" <<END
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>penstock</groupId><artifactId>s3a</artifactId><version>1</version><dependencies>
<dependency><groupId>org.apache.hadoop</groupId><artifactId>hadoop-aws</artifactId>
<version>$hadoop</version><exclusions><exclusion><groupId>software.amazon.awssdk</groupId>
<artifactId>bundle</artifactId></exclusion></exclusions></dependency>
$(for one in s3 s3-transfer-manager sts apache-client netty-nio-client; do sdk_module "$one"; done)
</dependencies></project>
END
mvn -q -B -f "$pom/pom.xml" dependency:copy-dependencies -DincludeScope=runtime \
    -DexcludeArtifactIds=slf4j-api,commons-logging,commons-codec -DoutputDirectory="$to"
mvn -q -B dependency:copy -DoutputDirectory="$to" \
    -Dartifact="org.apache.spark:spark-hadoop-cloud_${cloud%-*}:${cloud#*-}:jar"
