# Sourced by the scripts of brokers that run on Java. Fetches their jars with Maven, and verifies their checksums.
#
# The caller sets `jars`, the folder of the cache, `artifacts`, a list of GROUP:ARTIFACT:VERSION, and `checksums`, a file
# of sha256sum that has a line for each jar.

# Only one process at a time fetches, because several tests may begin at the same time.
install() {
  [ ! -e "$jars/complete" ] || return 0
  mkdir -p "$jars"
  flock "$jars/lock" "$0" fetch
}

fetch() {
  [ ! -e "$jars/complete" ] || return 0
  local artifact group name version
  {
    echo '<project xmlns="http://maven.apache.org/POM/4.0.0">'
    echo '<modelVersion>4.0.0</modelVersion> <groupId>txinbox</groupId> <artifactId>broker</artifactId> <version>1</version>'
    echo '<dependencies>'
    for artifact in "${artifacts[@]}"; do
      IFS=: read -r group name version <<<"$artifact"
      echo "<dependency> <groupId>$group</groupId> <artifactId>$name</artifactId> <version>$version</version> </dependency>"
    done
    echo '</dependencies> </project>'
  } >"$jars/pom.xml"
  # If an address cannot be reached, Maven names it.
  mvn --batch-mode --quiet --file "$jars/pom.xml" \
    org.apache.maven.plugins:maven-dependency-plugin:2.8:copy-dependencies -DincludeScope=runtime \
    -DoutputDirectory="$jars" >&2
  if [ "${1:-}" = --update ]; then (cd "$jars" && sha256sum -- *.jar) >"$checksums"; fi
  (cd "$jars" && sha256sum --check --strict --quiet "$checksums") >&2
  if [ "$(find "$jars" -name '*.jar' | wc -l)" != "$(wc -l <"$checksums")" ]; then
    echo "${0##*/}: $jars does not have the files of $checksums; '${0##*/} fetch --update' writes it anew" >&2
    return 1
  fi
  touch "$jars/complete"
}
