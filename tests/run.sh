#!/usr/bin/env bash
# Runs the tests. `tests/run.sh --help` describes the options; tests/runner/ has the code.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
export TXINBOX_TESTS_BEGUN=$EPOCHREALTIME
command -v python3 >/dev/null || "$root/tests/install-packages.sh" test
PYTHONDONTWRITEBYTECODE=1 exec python3 "$root/tests/runner/main.py" "$@"
