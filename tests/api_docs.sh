#!/usr/bin/env bash
# Makes the pages of the API and of docs/ with Doxygen, in BUILD_FOLDER/api/html. Fails if a public member has no
# description, if a label is unknown, if a link between pages or to a heading leads nowhere, if docs/reference/api.md
# lacks a header, or if tests/api.txt is not what the headers declare.
#
# Usage: api_docs.sh BUILD_FOLDER
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1/api"
folder=$(cd "$1/api" && pwd)

rm -rf "$folder/xml"  # a header that was removed must not stay in the list
cd "$root"
headers=(include/txinbox/*.hpp include/txinbox/soci/*.hpp components/*/include/txinbox/*.hpp
  components/*/include/txinbox/*/*.hpp)
for header in "${headers[@]}"; do
  grep -qF "$header" docs/reference/api.md || { echo "docs/reference/api.md does not name $header" >&2; exit 1; }
done
# The internal headers write a label so. Doxygen would make it part of the paragraph before.
if grep -nE '/// +(Transaction|Blocking|Limits|Errors|Threads|Processes): ' "${headers[@]}"; then
  echo "write @errors instead of Errors: in a public header, and so on" >&2
  exit 1
fi

version=$(sed -n 's/^#define TXINBOX_VERSION_[A-Z]* \([0-9]*\)$/\1/p' include/txinbox/version.hpp | paste -sd.)
{
  cat docs/api/Doxyfile
  echo "PROJECT_NUMBER = $version"
  echo "OUTPUT_DIRECTORY = \"$folder\""
  echo "GENERATE_XML = YES"
  echo "XML_PROGRAMLISTING = NO"
} | doxygen -
tests/api.py "$folder/xml" --compare tests/api.txt
echo "api docs: $folder/html/index.html"
