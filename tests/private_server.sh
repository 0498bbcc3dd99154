# For scripts that start private servers: a folder, a password, a user and free ports. To be sourced by bash.
# shellcheck shell=bash

# Programs in /usr/sbin are not on every user's path.
PATH=$PATH:/usr/sbin:/sbin

# prepare NAME: makes a folder to which the servers' user may write, and a password. It sets `folder`, `password` and
# `as_user`. `as_user` is the prefix of the command of a server, because servers refuse to run as root.
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

# take_ports: sets `port` to the first of ten consecutive free ports. The ports are reserved until this script and all
# of its child processes have ended. Without the reservation, two scripts could choose the same ports, because a server
# opens its port long after the choice.
take_ports() {
  local locks lock i
  locks=/tmp/txinbox-ports.$(id -u)
  mkdir -p "$locks"
  while port=$((20000 + RANDOM % 1200 * 10)); do
    exec {lock}>"$locks/$port"
    if flock --nonblock "$lock"; then
      for ((i = 0; i < 10; i++)); do
        if listens $((port + i)); then break; fi
      done
      if [ $i = 10 ]; then return; fi
    fi
    exec {lock}>&-
  done
}

# kill_servers_at_exit: sets `pids`, to which the script adds each server that it starts. All are killed, with their
# children, and `folder` is removed, because the data is no longer needed.
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

# mysql_places: sets `places` to the first options of MySQL's server, whose path is in `mysqld`: its files are not in the
# folders for which it was built (get_newer.sh).
mysql_places() {
  local root=${mysqld%/*}/root/usr
  # shellcheck disable=SC2034  # the script's
  places=(--no-defaults --basedir="$root" --secure-file-priv=NULL --lc-messages-dir="$root/share/mysql"
    --plugin-dir="$root/lib/mysql/plugin" --character-sets-dir="$root/share/mysql/charsets")
}
