#!/usr/bin/env bash
# Installs txinbox, or builds and runs a small program that uses it. For ctest.
#
# Usage: run.sh install|find_package|find_component|find_core|find_brokers|missing_component|build_core|no_clients|unity|
#               add_subdirectory|fetch_content|pkg_config
#        static|shared
#
# From the environment: TXINBOX_SOURCE, the checkout; TXINBOX_PACKAGE_FOLDER, where to build; CXX.
set -euo pipefail

method=$1 linkage=$2
package=$TXINBOX_SOURCE/tests/package
folder=$TXINBOX_PACKAGE_FOLDER/$linkage
prefix=$folder/moved

case $linkage in static) shared=OFF ;; shared) shared=ON ;; esac

# The code is position-independent in every variant, and ccache ignores the folder of the build. So the variants have the
# same objects, and ccache compiles each object once.
export CCACHE_BASEDIR=$TXINBOX_SOURCE CCACHE_NOHASHDIR=1
options=(-G Ninja -DCMAKE_CXX_COMPILER="$CXX" -DBUILD_SHARED_LIBS=$shared -DCMAKE_POSITION_INDEPENDENT_CODE=ON)
if command -v ccache >/dev/null; then options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi

configure_and_build() { # SOURCE BUILD OPTION...
  cmake -S "$1" -B "$2" "${options[@]}" "${@:3}"
  cmake --build "$2" -j2
}

case $method in
  install)
    rm -rf "$folder"
    configure_and_build "$TXINBOX_SOURCE" "$folder/build" -DTXINBOX_BUILD_TESTS=OFF -DTXINBOX_BUILD_EXAMPLES=OFF \
      -DTXINBOX_BUILD_BENCHMARKS=OFF -DTXINBOX_BUILD_CLI=OFF -DTXINBOX_EXTRA_COMPONENTS="$package/component" \
      -DTXINBOX_WITH_SAMPLE=ON -DCMAKE_INSTALL_PREFIX="$folder/installed"
    cmake --install "$folder/build"
    # The installed files are moved. So a program that uses a path of the build or of the first prefix does not build.
    mv "$folder/installed" "$prefix"
    if grep -rIlF -e "$TXINBOX_SOURCE" -e "$folder" "$prefix"; then
      echo "these installed files name a folder of the build" >&2
      exit 1
    fi
    test -e "$prefix/include/txinbox/txinbox.hpp"
    test -e "$prefix/share/txinbox/migrations/postgresql/V1__inbox.sql"
    test -e "$prefix/share/txinbox/migrations/postgresql/upgrade_to_0.1.0.sql"
    test -e "$prefix/share/txinbox/ops/alerts.yml"
    test -e "$prefix/share/txinbox/ops/grafana.json"
    exit
    ;;
  find_package)
    # With the static library, the client libraries of databases that were not requested may be missing.
    absent=()
    if [ $linkage = static ]; then
      absent=(-DCMAKE_DISABLE_FIND_PACKAGE_MySQL=ON -DCMAKE_DISABLE_FIND_PACKAGE_PostgreSQL=ON)
    fi
    configure_and_build "$package/find_package" "$folder/find_package" -DCMAKE_PREFIX_PATH="$prefix" "${absent[@]}"
    ;;
  find_component)
    configure_and_build "$package/find_component" "$folder/find_component" -DCMAKE_PREFIX_PATH="$prefix"
    ;;
  missing_component)
    # The error says what the installation has, and how to get what it does not have.
    configure() {
      rm -rf "$folder/missing_component"
      cmake -S "$package/missing_component" -B "$folder/missing_component" "${options[@]}" -DCMAKE_PREFIX_PATH="$prefix" \
        -Wno-dev -Wno-deprecated "$@" >"$folder/missing_component.log" 2>&1
    }
    configure -DWANTED=Sample || { cat "$folder/missing_component.log" >&2; exit 1; }
    if configure '-DWANTED=Pigeon;Sample'; then
      echo "a component that does not exist was found" >&2
      exit 1
    fi
    # CMake breaks the text into lines.
    text=$(tr -s ' \n' ' ' <"$folder/missing_component.log")
    for part in 'This txinbox has no component Pigeon.' 'the databases SQLite3' 'sample' 'libtxinbox-pigeon-dev' \
      '-DTXINBOX_WITH_PIGEON=ON'; do
      [[ $text = *"$part"* ]] || { echo "the error does not have \"$part\": $text" >&2; exit 1; }
    done
    # A project that does not need txinbox goes on, whatever is missing.
    configure -DWANTED=Pigeon -DOPTIONAL=ON || { cat "$folder/missing_component.log" >&2; exit 1; }
    configure -DWANTED=Sample -DOPTIONAL=ON -DCMAKE_DISABLE_FIND_PACKAGE_SOCI=ON -DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON || { cat "$folder/missing_component.log" >&2; exit 1; }
    exit
    ;;
  find_core)
    # A service without SOCI, on a machine without SOCI.
    configure_and_build "$package/core" "$folder/find_core" -DCMAKE_PREFIX_PATH="$prefix" \
      -DCMAKE_DISABLE_FIND_PACKAGE_SOCI=ON
    ;;
  find_brokers)
    configure_and_build "$package/find_brokers" "$folder/find_brokers" -DCMAKE_PREFIX_PATH="$prefix" \
      -DCMAKE_DISABLE_FIND_PACKAGE_SOCI=ON
    ;;
  no_clients)
    # Without the brokers' client libraries, AUTO builds none of the components, and ON fails and names the package.
    configure() {
      # pkg-config finds nothing.
      PKG_CONFIG_LIBDIR=/nonexistent cmake -S "$package/subdirectory" -B "$folder/no_clients" "${options[@]}" \
        -DTXINBOX_SOURCE="$TXINBOX_SOURCE" "$@" >"$folder/no_clients.log" 2>&1
    }
    rm -rf "$folder/no_clients"
    configure || { cat "$folder/no_clients.log" >&2; exit 1; }
    if grep 'txinbox component: [a-z]*$' "$folder/no_clients.log"; then exit 1; fi
    grep 'txinbox component: kafka is not built, because .*rdkafka.*librdkafka-dev' "$folder/no_clients.log"
    for component in KAFKA:librdkafka-dev RABBITMQ:librabbitmq-dev REDIS:libhiredis-dev \
      ROCKETMQ:libgrpc++-dev; do
      if configure -DTXINBOX_WITH_"${component%:*}"=ON; then
        echo "TXINBOX_WITH_${component%:*}=ON has built without the library" >&2
        exit 1
      fi
      grep -w "${component#*:}" "$folder/no_clients.log"
      rm -r "$folder/no_clients"
    done
    exit
    ;;
  unity)
    # One file for each library and the command: names in an anonymous namespace are unique in each of them.
    configure_and_build "$TXINBOX_SOURCE" "$folder/unity" -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=0 \
      -DTXINBOX_BUILD_TESTS=OFF -DTXINBOX_BUILD_EXAMPLES=OFF -DTXINBOX_BUILD_BENCHMARKS=OFF
    exit
    ;;
  build_core)
    # Without SOCI, only txinbox::core is built.
    configure_and_build "$package/subdirectory" "$folder/build_core" -DTXINBOX_SOURCE="$TXINBOX_SOURCE" \
      -DTXINBOX_WITH_SOCI=OFF -DCMAKE_DISABLE_FIND_PACKAGE_SOCI=ON
    ;;
  add_subdirectory)
    configure_and_build "$package/subdirectory" "$folder/add_subdirectory" -DTXINBOX_SOURCE="$TXINBOX_SOURCE"
    ;;
  fetch_content)
    configure_and_build "$package/subdirectory" "$folder/fetch_content" -DTXINBOX_SOURCE="$TXINBOX_SOURCE" \
      -DUSE_FETCH_CONTENT=ON
    ;;
  pkg_config)
    file=$(find "$prefix" -name txinbox.pc)
    PKG_CONFIG_PATH=$(dirname "$file")
    export PKG_CONFIG_PATH
    mkdir -p "$folder/pkg_config"
    read -ra flags <<<"$(pkg-config --cflags --libs txinbox)"
    "$CXX" -std=c++20 "$package/consumer.cpp" -o "$folder/pkg_config/consumer" "${flags[@]}"
    read -ra flags <<<"$(pkg-config --cflags --libs txinbox-core sqlite3)"
    "$CXX" -std=c++20 "$package/core_consumer.cpp" -o "$folder/pkg_config/core_consumer" "${flags[@]}"
    read -ra flags <<<"$(pkg-config --cflags --libs txinbox-sample txinbox)"
    "$CXX" -std=c++20 "$package/component_consumer.cpp" -o "$folder/pkg_config/component_consumer" "${flags[@]}"
    read -ra flags <<<"$(pkg-config --cflags --libs txinbox-kafka txinbox-rabbitmq txinbox-redis txinbox-rocketmq)"
    "$CXX" -std=c++20 "$package/broker_consumer.cpp" -o "$folder/pkg_config/broker_consumer" "${flags[@]}"
    LD_LIBRARY_PATH=$(pkg-config --variable=libdir txinbox)${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export LD_LIBRARY_PATH
    ;;
esac

program=$folder/$method/consumer
"$program"
if [ $method = pkg_config ]; then
  "$folder/pkg_config/component_consumer"
  "$folder/pkg_config/core_consumer"
  "$folder/pkg_config/broker_consumer"
fi

# Checks that the program is linked to the static or the shared library, as requested.
if readelf -d "$program" | grep -q 'NEEDED.*libtxinbox[a-z_]*\.so\.0\.'; then linked=shared; else linked=static; fi
if [ $linked != "$linkage" ]; then
  echo "the program is linked to the $linked library, not the $linkage one" >&2
  exit 1
fi

if [[ $method = *_core || $method = find_brokers ]] && ldd "$program" | grep soci; then
  echo "the program, which uses txinbox::core, needs SOCI" >&2
  exit 1
fi

if [ $method$linkage = find_packagestatic ] && readelf -d "$program" | grep 'NEEDED.*\(mariadb\|mysql\|libpq\|postgresql\)'; then
  echo "the program, which asks for SQLite, needs the library of another database" >&2
  exit 1
fi
