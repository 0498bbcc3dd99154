#!/usr/bin/env bash
# Compares txinbox with alternatives on the same servers: the effects of a message after each fault, and the time of a
# message.
#
# Usage: bench/peers/run.sh [OPTION]...
#   --faults         only the faults
#   --speed          only the speed
#   --only PEER      consume, batch, set, by-hand, eventuate, spring, spring-plain, camel, camel-plain,
#                    pg-transactional-outbox, river or watermill; may be repeated. The speed is a ratio to consume
#   --database NAME  postgresql or mariadb only
#   --rounds N       rounds for the speed, 9 by default
#   --output FOLDER  where peers.md and the figures as JSON go; build/peers/results by default
#   --help
#
# Installs missing packages of Debian 12 (as root), gets the peers from Maven Central, the Go module proxy and the npm
# registry, and builds in build/peers and build/release. If a peer is not available, it prints a message and omits the
# peer. It starts its own durable servers and ends them. The servers use the first CPU, and the clients the second.
# docs/compared.md has the results and explains them. CI does not run this.
#
# Exit status: 0 if everything was measured; 1 if something failed; 2 for wrong arguments.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
output=$root/build/peers/results
arguments=() only=() databases=()

usage() { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; }
wrong() { echo "bench/peers/run.sh: $* (try --help)" >&2; exit 2; }
while [ $# -gt 0 ]; do
  case $1 in
    --faults | --speed) arguments+=("$1") ;;
    --only | --database | --rounds | --output)
      [ -n "${2:-}" ] || wrong "$1 needs a value"
      case $1 in
        --only) only+=("$2") ;;
        --database) databases+=("--$2") ;;
        --output) output=$2 ;;
      esac
      [ "$1" = --output ] || arguments+=("$1" "$2")
      shift
      ;;
    --help | -h) usage; exit 0 ;;
    *) wrong "unknown option $1" ;;
  esac
  shift
done

languages=
for each in "${only[@]:-all}"; do
  case $each in
    consume | batch | set | by-hand) languages+=" c++" ;;
    eventuate | spring | spring-plain | camel | camel-plain) languages+=" java" ;;
    pg-transactional-outbox) languages+=" node" ;;
    river | watermill) languages+=" go" ;;
    all) languages="c++ java go node" ;;
    *) wrong "unknown peer '$each'" ;;
  esac
done
for each in "${databases[@]}"; do
  case $each in --postgresql | --mariadb) ;; *) wrong "unknown database '${each#--}'" ;; esac
done
[ ${#databases[@]} -gt 0 ] || databases=(--postgresql --mariadb)

"$root/tests/install-packages.sh" bench
mapfile -t languages < <(tr ' ' '\n' <<<"$languages" | sort -u | sed '/^$/d')
"$here/build.sh" "${languages[@]}"

read -r servers_cpu clients_cpu < <(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0))[:2])')
[ -n "$clients_cpu" ] || { echo "bench/peers/run.sh: two CPUs are needed" >&2; exit 1; }
"$root/tests/servers.sh" "${databases[@]}" --cpus "$servers_cpu" -- \
  python3 -B "$here" --output "$output" --cpu "$clients_cpu" "${arguments[@]}"
