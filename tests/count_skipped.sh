# Sourced. Defines count_skipped PROGRAM [ARGUMENT]..., which prints how many of a program's test cases, chosen by these
# arguments, are skipped by name: because they do nothing on this database or with these settings.

chosen() { "$@" --count | sed -n 's/.*passing the current filters: //p'; }

count_skipped() {
  skipped=$(($(chosen "$@" --no-skip) - $(chosen "$@")))
  if [ $skipped -gt 0 ]; then echo "count: $skipped cases skipped"; fi
}
