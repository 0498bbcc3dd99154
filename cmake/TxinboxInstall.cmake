# Installs the library, its headers, the package config, the pkg-config file, the migrations, the commands, and the man
# page and the completions of txinbox.

include(CMakePackageConfigHelpers)

set(TXINBOX_CMAKE_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/txinbox" CACHE STRING "Where the CMake package goes")
mark_as_advanced(TXINBOX_CMAKE_DIR)

get_target_property(library_type txinbox TYPE)
if(library_type STREQUAL "STATIC_LIBRARY")
  set(txinbox_is_static TRUE)
else()
  set(txinbox_is_static FALSE)
endif()

install(TARGETS txinbox EXPORT txinbox-targets)
install(DIRECTORY include/txinbox DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.hpp")
install(DIRECTORY migrations DESTINATION "${CMAKE_INSTALL_DATADIR}/txinbox" FILES_MATCHING PATTERN "V*.sql")
if(TARGET txinbox-cli)
  install(TARGETS txinbox-cli txinbox-torture)
endif()
if(TARGET txinbox_reference_files)
  set(reference "${CMAKE_CURRENT_BINARY_DIR}/tools/cli/reference")
  install(FILES "${reference}/txinbox.1" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
  install(FILES "${reference}/txinbox" DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions")
  install(FILES "${reference}/txinbox.fish" DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
endif()

# The CMake package. 0.x: a new MINOR breaks.
install(EXPORT txinbox-targets NAMESPACE txinbox:: DESTINATION "${TXINBOX_CMAKE_DIR}")
configure_package_config_file(cmake/txinbox-config.cmake.in txinbox-config.cmake INSTALL_DESTINATION
                              "${TXINBOX_CMAKE_DIR}")
write_basic_package_version_file(txinbox-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/txinbox-config.cmake"
              "${CMAKE_CURRENT_BINARY_DIR}/txinbox-config-version.cmake" DESTINATION "${TXINBOX_CMAKE_DIR}")
install(FILES cmake/FindSOCI.cmake cmake/FindMySQL.cmake DESTINATION "${TXINBOX_CMAKE_DIR}/modules")

# The pkg-config file. SOCI has none of its own, so its libraries are named here.
set(pc_libs "")
set(pc_requires fmt libcrypto)
foreach(component IN LISTS txinbox_databases)
  string(TOLOWER ${component} name)
  string(APPEND pc_libs " -lsoci_${name}")
endforeach()
string(APPEND pc_libs " -lsoci_core")
if(SQLite3 IN_LIST txinbox_databases)
  list(APPEND pc_requires sqlite3)
endif()
if(MySQL IN_LIST txinbox_databases)
  if(MySQL_LIBRARY MATCHES "mysqlclient")
    list(APPEND pc_requires mysqlclient)
  else()
    list(APPEND pc_requires libmariadb)
  endif()
endif()
if(PostgreSQL IN_LIST txinbox_databases)
  list(APPEND pc_requires libpq)
endif()
list(JOIN pc_requires ", " pc_requires)

# A static library needs its own dependencies at each link; pkg-config leaves private ones out unless
# it is told --static.
if(txinbox_is_static)
  set(pc_requires_field "Requires: ${pc_requires}")
else()
  set(pc_requires_field "Requires.private: ${pc_requires}")
endif()

# A SOCI outside the compiler's own folders must be named too.
set(pc_soci_cflags "")
foreach(directory IN LISTS SOCI_INCLUDE_DIR)
  if(NOT directory IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
    string(APPEND pc_soci_cflags " -I${directory}")
  endif()
endforeach()
find_library(TXINBOX_SOCI_LIBRARY NAMES soci_core HINTS "${SOCI_DIR}/../.." "${SOCI_DIR}/../../..")
mark_as_advanced(TXINBOX_SOCI_LIBRARY)
cmake_path(GET TXINBOX_SOCI_LIBRARY PARENT_PATH soci_library_directory)
if(soci_library_directory AND NOT soci_library_directory IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
  string(PREPEND pc_libs " -L${soci_library_directory}")
endif()

# The prefix is found from the file's own place, so that the tree can be moved.
set(pc_folder "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
cmake_path(IS_ABSOLUTE CMAKE_INSTALL_LIBDIR libdir_is_absolute)
if(libdir_is_absolute)
  set(pc_prefix "${CMAKE_INSTALL_PREFIX}")
else()
  cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}/${pc_folder}" OUTPUT_VARIABLE
             pc_up)
  set(pc_prefix "\${pcfiledir}/${pc_up}")
endif()
set(pc_libdir "\${prefix}")
set(pc_includedir "\${prefix}")
cmake_path(APPEND pc_libdir "${CMAKE_INSTALL_LIBDIR}")
cmake_path(APPEND pc_includedir "${CMAKE_INSTALL_INCLUDEDIR}")
configure_file(cmake/txinbox.pc.in txinbox.pc @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/txinbox.pc" DESTINATION "${pc_folder}")
