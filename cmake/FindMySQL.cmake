# Finds the client library of MariaDB or MySQL. The target MySQL::MySQL makes `#include <mysql.h>` work. SOCI 4.1 brings
# a module with the same name and target.

if(NOT TARGET MySQL::MySQL)
  find_package(PkgConfig QUIET)
  if(PKG_CONFIG_FOUND)
    pkg_search_module(PC_MySQL QUIET libmariadb mysqlclient)
  endif()
endif()

find_path(MySQL_INCLUDE_DIR mysql.h HINTS ${PC_MySQL_INCLUDE_DIRS} PATH_SUFFIXES mariadb mysql)
find_library(MySQL_LIBRARY NAMES mariadb mysqlclient HINTS ${PC_MySQL_LIBRARY_DIRS} PATH_SUFFIXES mariadb mysql)
mark_as_advanced(MySQL_INCLUDE_DIR MySQL_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(MySQL REQUIRED_VARS MySQL_LIBRARY MySQL_INCLUDE_DIR)

if(MySQL_FOUND AND NOT TARGET MySQL::MySQL)
  add_library(MySQL::MySQL UNKNOWN IMPORTED)
  set_target_properties(MySQL::MySQL PROPERTIES IMPORTED_LOCATION "${MySQL_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES
                                                                                     "${MySQL_INCLUDE_DIR}")
endif()
