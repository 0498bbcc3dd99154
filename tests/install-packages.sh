#!/bin/sh
# Installs missing packages of Debian 12. If none is missing, it does nothing and needs no root.
#
# Usage: install-packages.sh build|components|test|cluster|page|site|watching|bench|brokers|abi|conan|debian
#   build      the packages for the library, the command and examples/run.sh
#   components the packages of build, and the client libraries of Kafka, RabbitMQ, RocketMQ and Redis
#   test       the packages of build, and those for tests/run.sh
#   cluster    the packages of test, and those for the steps galera, failover, vitess and oceanbase of tests/run.sh
#   page       the packages of test, and those for the step page of tests/run.sh: a browser
#   site       the packages for tests/site.sh: Doxygen, mkdocs and a browser
#   watching   the packages of test, and those for the step watching of tests/run.sh: Prometheus
#   bench      the packages of build, and those for bench/run.sh
#   brokers    the packages of build, and those for examples/brokers/demo.sh
#   abi        the packages of test, and those for the step abi of tests/run.sh
#   conan      the packages of build, and those for the step conan of tests/run.sh
#   debian     the packages of test, and those for the step debian of tests/run.sh
set -eu

# Each component's client library, so that the command can consume from each broker.
components="librdkafka-dev librabbitmq-dev libhiredis-dev
  libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc zlib1g-dev"
build="g++ cmake ninja-build sqlite3 libsoci-dev libboost-dev libsqlite3-dev libmariadb-dev libpq-dev libfmt-dev
  libssl-dev libcli11-dev nlohmann-json3-dev pkg-config libcpp-httplib-dev"
test="git ccache doctest-dev clang-14 libclang-rt-14-dev clang-format-14 clang-tidy-14 doxygen valgrind openssl
  python3 python3-yaml mariadb-server-core mariadb-client-core postgresql-15 postgresql-client-15 libeatmydata1 spin
  libpqxx-dev libsqlitecpp-dev redis-server qtbase5-dev libqt5sql5-psql libqt5sql5-mysql libqt5sql5-sqlite"
cluster="galera-4 rsync iproute2 pgbouncer etcd-server python3-pip"
page="chromium chromium-driver python3-selenium"
site="doxygen python3 mkdocs mkdocs-material $page"
watching="prometheus gnuplot-nox fonts-dejavu-core"
bench="ccache mariadb-server-core mariadb-client-core postgresql-15 postgresql-client-15 util-linux python3 libcjson-dev
  gnuplot-nox fonts-dejavu-core valgrind redis-server redis-tools"
brokers="default-jre-headless maven kcat rabbitmq-server amqp-tools openssl socat iproute2 util-linux"
abi="abigail-tools"
conan="python3-venv git ccache"
debian="mmdebstrap dpkg-dev"

case ${1:-} in
  abi) wanted="$build $test $components $brokers $abi" ;;
  conan) wanted="$build $components $conan" ;;
  debian) wanted="$build $test $components $brokers $debian" ;;
  brokers) wanted="$build $components $brokers" ;;
  build) wanted=$build ;;
  components) wanted="$build $components" ;;
  test) wanted="$build $test $components $brokers" ;;
  cluster) wanted="$build $test $components $brokers $cluster" ;;
  page) wanted="$build $test $components $brokers $page" ;;
  site) wanted=$site ;;
  watching) wanted="$build $test $components $brokers $watching" ;;
  bench) wanted="$build $bench $components $brokers" ;;
  *) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 2 ;;
esac

missing=
for package in $wanted; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  if [ "$status" != installed ]; then missing="$missing $package"; fi
done
if [ -z "$missing" ]; then exit 0; fi

if [ "$(id -u)" != 0 ]; then
  echo "These packages are missing, and only root can install them:" >&2
  echo "  apt-get install --no-install-recommends$missing" >&2
  exit 1
fi

echo "Installing:$missing"
export DEBIAN_FRONTEND=noninteractive

# The tests start their own servers. PostgreSQL's package would also create and start a system-wide server. This setting
# prevents it, if it exists before the first installation.
case $missing in
  *postgresql-15*)
    if [ ! -e /etc/postgresql-common/createcluster.conf ]; then
      mkdir -p /etc/postgresql-common
      echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf
      echo "PostgreSQL comes without a system-wide server; pg_createcluster 15 main makes one."
    fi
    ;;
esac

# The packages of RabbitMQ, Redis, Prometheus and etcd start a server, unless the machine's policy says that no service
# starts.
policy=/usr/sbin/policy-rc.d
case $missing in
  *rabbitmq-server* | *redis-server* | *prometheus* | *etcd-server*)
    if [ ! -e $policy ]; then
      printf '#!/bin/sh\nexit 101\n' >$policy
      chmod +x $policy
      remove_policy=$policy
    fi
    ;;
esac

log=$(mktemp)
trap 'rm -f "$log" ${remove_policy:-}' EXIT
quietly() { "$@" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }; }
echo "Asking Debian for the sizes ..."
quietly apt-get -q update
# shellcheck disable=SC2086
LC_ALL=C apt-get --assume-no --no-install-recommends install $missing 2>/dev/null |
  sed -n 's/^Need to get \(.*\) of archives\.$/To download: \1./p; s/^After this operation, \(.*\) of additional .*/On disk: \1./p' || true
echo "This takes the time of the download, and a minute or two. It prints nothing during this time."
# shellcheck disable=SC2086  # a list of packages
quietly apt-get -q -y --no-install-recommends -o Dpkg::Options::=--force-confold \
  -o Dpkg::Use-Pty=0 install $missing
