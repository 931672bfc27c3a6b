#!/usr/bin/env bash
# Downloads the jars of Apache Cassandra from Maven Central: scripts/cassandra.sh VERSION FOLDER
#
# They are in FOLDER/cassandra afterwards. Needs Maven.
set -euo pipefail
version=$1 folder=$2

[ ! -f "$folder/cassandra/cassandra-all-$version.jar" ] || exit 0
command -v mvn >/dev/null || {
  echo "Cassandra needs Maven: run \`apt-get install maven openjdk-17-jre-headless\`" >&2
  exit 1
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/pom.xml" <<EOF
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>kvdyno</groupId>
  <artifactId>cassandra</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.cassandra</groupId>
      <artifactId>cassandra-all</artifactId>
      <version>$version</version>
    </dependency>
  </dependencies>
</project>
EOF
mvn -q -B -f "$work/pom.xml" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$work/cassandra"
mkdir -p "$folder"
rm -rf "$folder/cassandra"
mv "$work/cassandra" "$folder/"
