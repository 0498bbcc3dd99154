# An overlay port: vcpkg install txinbox --overlay-ports=packaging/vcpkg. It builds the checkout that it is part of.
# vcpkg was not to be had where txinbox is tested, so this port has not been run.

set(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../..")

vcpkg_check_features(
  OUT_FEATURE_OPTIONS FEATURE_OPTIONS
  FEATURES
    soci TXINBOX_WITH_SOCI
    sqlite3 TXINBOX_WITH_SQLITE3
    mysql TXINBOX_WITH_MYSQL
    postgresql TXINBOX_WITH_POSTGRESQL
    http TXINBOX_WITH_HTTP
    kafka TXINBOX_WITH_KAFKA
    rabbitmq TXINBOX_WITH_RABBITMQ
    redis TXINBOX_WITH_REDIS
    rocketmq TXINBOX_WITH_ROCKETMQ)

vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    ${FEATURE_OPTIONS}
    -DTXINBOX_BUILD_CLI=OFF
    -DTXINBOX_BUILD_TESTS=OFF
    -DTXINBOX_BUILD_EXAMPLES=OFF
    -DTXINBOX_BUILD_BENCHMARKS=OFF
    -DTXINBOX_WITH_OPENTELEMETRY=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME txinbox CONFIG_PATH lib/cmake/txinbox)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
# The owner has not chosen a licence yet.
file(WRITE "${CURRENT_PACKAGES_DIR}/share/txinbox/copyright" "No licence was chosen yet. All rights are reserved.\n")
