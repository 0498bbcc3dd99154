#!/usr/bin/env bash
# Builds the documentation as a site in BUILD_FOLDER/site, with the pages of the API in BUILD_FOLDER/site/api. Fails if a
# page has no place in docs/README.md, if a link or an anchor leads nowhere, or if a page loads something from another host.
# Then reads the site in Chromium. The pictures of some pages are in BUILD_FOLDER/site-pictures.
#
# Usage: tests/site.sh [BUILD_FOLDER]
#   BUILD_FOLDER  build/dev by default; it may be empty, because the site needs no compiled code
#
# TXINBOX_SITE_URL is the address of the site, and TXINBOX_SITE_SOURCES the path of the sources behind repo_url. mkdocs.yml
# has the defaults. `tests/install-packages.sh site` installs what this script needs.
set -euo pipefail

case ${1:-} in -h | --help) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit ;; esac
for command in mkdocs doxygen chromium chromedriver; do
  command -v $command >/dev/null || {
    echo "$command is missing: run tests/install-packages.sh site" >&2
    exit 1
  }
done

root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "${1:-$root/build/dev}"
folder=$(cd "${1:-$root/build/dev}" && pwd)
cd "$root"
export PYTHONDONTWRITEBYTECODE=1 TXINBOX_SITE_API=$folder/api/html

rm -rf "$folder/api/html"  # a page that was removed must not stay in the site
tests/api_docs.sh "$folder"
mkdocs build --strict --site-dir "$folder/site" >"$folder/site.log" 2>&1 || {
  cat "$folder/site.log" >&2
  exit 1
}
tests/site/links.py "$folder/site"
mkdir -p "$folder/site-pictures"
TXINBOX_TEST_SITE=$folder/site TXINBOX_TEST_SCREENSHOTS=$folder/site-pictures tests/site/site_test.py
echo "site: $folder/site/index.html"
