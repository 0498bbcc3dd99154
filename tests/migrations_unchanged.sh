#!/usr/bin/env bash
# Verifies that no migration was changed, and that each is in the list tests/migrations.sha256.
#
# A migration never changes: databases exist to which it was applied. A change is a new migration. Add its files to the
# list with: sha256sum migrations/*/V3__* >>tests/migrations.sha256
#
# The scripts for the upgrade to 0.1.0 are in the list, too.
set -euo pipefail

cd "$(dirname "$0")/.."
sha256sum --check --quiet --strict tests/migrations.sha256
diff <(sed 's/^[0-9a-f]*  //' tests/migrations.sha256 | sort) <(printf '%s\n' migrations/*/*.sql | sort) || {
  echo "tests/migrations.sha256 lacks a migration, or has one that does not exist" >&2
  exit 1
}
echo "count: $(wc -l <tests/migrations.sha256) files"
