# Decides which databases are part of the build: sets txinbox_databases to the list of SOCI components, and finds SOCI
# and the client libraries.

option(TXINBOX_WITH_SOCI "Build txinbox::txinbox for SOCI's sessions; OFF builds txinbox::core alone" ON)
if(TXINBOX_WITH_SOCI)
  find_package(SOCI 4.0.3 COMPONENTS Core)
  if(NOT SOCI_FOUND)
    message(FATAL_ERROR "txinbox::txinbox needs SOCI 4.0.3 or later. On Debian: apt-get install libsoci-dev "
                        "libboost-dev. -DTXINBOX_WITH_SOCI=OFF builds txinbox::core without SOCI")
  endif()
endif()

set(txinbox_databases "")
set(txinbox_database_clients "") # their targets, in the same order

# component: SOCI's name for the database; client: the CMake package of the client library.
function(txinbox_find_database component client client_target debian_package)
  string(TOUPPER ${component} upper)
  set(TXINBOX_WITH_${upper} AUTO CACHE STRING "Support ${component}: AUTO (if its libraries are found), ON or OFF")
  set_property(CACHE TXINBOX_WITH_${upper} PROPERTY STRINGS AUTO ON OFF)
  set(wanted "${TXINBOX_WITH_${upper}}")
  if(NOT wanted STREQUAL "AUTO" AND NOT wanted)
    return()
  endif()

  if(TXINBOX_WITH_SOCI)
    find_package(SOCI 4.0.3 QUIET COMPONENTS Core OPTIONAL_COMPONENTS ${component})
  endif()
  find_package(${client} QUIET)
  if((TARGET SOCI::${component} OR NOT TXINBOX_WITH_SOCI) AND TARGET ${client_target})
    list(APPEND txinbox_databases ${component})
    set(txinbox_databases "${txinbox_databases}" PARENT_SCOPE)
    set(txinbox_database_clients ${txinbox_database_clients} ${client_target} PARENT_SCOPE)
  elseif(NOT wanted STREQUAL "AUTO")
    message(FATAL_ERROR "TXINBOX_WITH_${upper} is ${wanted}, but SOCI's ${component} backend or its client library "
                        "is missing. On Debian: apt-get install libsoci-dev ${debian_package}")
  else()
    message(STATUS "txinbox database: ${component} is not built, because SOCI's backend or the client library is missing "
                   "(Debian: libsoci-dev ${debian_package})")
  endif()
endfunction()

txinbox_find_database(SQLite3 SQLite3 SQLite::SQLite3 libsqlite3-dev)
txinbox_find_database(MySQL MySQL MySQL::MySQL libmariadb-dev)
txinbox_find_database(PostgreSQL PostgreSQL PostgreSQL::PostgreSQL libpq-dev)

if(NOT txinbox_databases)
  message(FATAL_ERROR "txinbox needs at least one database: install libsqlite3-dev, libmariadb-dev or libpq-dev")
endif()
list(JOIN txinbox_databases ", " txinbox_databases_text)
if(NOT TXINBOX_WITH_SOCI)
  set(SOCI_VERSION "none")
endif()
message(STATUS "txinbox ${PROJECT_VERSION}: SOCI ${SOCI_VERSION}, databases: ${txinbox_databases_text}")
