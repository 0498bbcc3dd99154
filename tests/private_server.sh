# For scripts that start private servers: a folder, a password, a user and free ports. To be sourced by bash.
# shellcheck shell=bash

# Programs in /usr/sbin are not on every user's path.
PATH=$PATH:/usr/sbin:/sbin

# prepare NAME: sets `folder`, a new one that the servers' user may write to; `password`, a new one; and
# `as_user`, a command in front of what must not run as root, as the servers refuse to.
prepare() {
  local account=nobody group
  folder=$(mktemp -d "${TMPDIR:-/tmp}/txinbox-$1.XXXXXX")
  # shellcheck disable=SC2034  # the script's
  password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  as_user=()
  if [ "$(id -u)" = 0 ]; then
    group=$(id -gn "$account")
    as_user=(setpriv --reuid="$account" --regid="$group" --clear-groups)
    chown "$account:$group" "$folder"
  fi
}

listens() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# free_ports COUNT: prints the first of so many ports in a row that nobody has. Two such rows of one length are
# the same or have no port in common.
free_ports() {
  local port i
  while port=$((20000 + RANDOM % (12000 / $1) * $1)); do
    for ((i = 0; i < $1; i++)); do
      if listens $((port + i)); then continue 2; fi
    done
    echo "$port"
    return
  done
}

# kill_servers_at_exit: sets `pids`, to which the script adds each server that it starts. All are killed, with their
# children, and `folder` is removed: nobody wants their data any more.
kill_servers_at_exit() {
  pids=()
  trap kill_servers EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
}

kill_servers() {
  local status=$? pid children
  trap - EXIT
  for pid in "${pids[@]}"; do
    children=()
    read -ra children 2>/dev/null <"/proc/$pid/task/$pid/children" || true
    kill -KILL "$pid" "${children[@]}" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
  rm -rf "$folder"
  exit "$status"
}
