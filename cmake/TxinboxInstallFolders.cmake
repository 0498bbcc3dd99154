# The folders for the CMake package and the pkg-config files of the library and of each component, and for the plugins of
# the command.

set(TXINBOX_PLUGIN_DIR "${CMAKE_INSTALL_LIBDIR}/txinbox")

set(TXINBOX_CMAKE_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/txinbox" CACHE STRING "Where the CMake package goes")
mark_as_advanced(TXINBOX_CMAKE_DIR)

# The file computes the prefix from its own path, so that an installed tree can be moved.
set(TXINBOX_PKG_CONFIG_DIR "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
cmake_path(IS_ABSOLUTE CMAKE_INSTALL_LIBDIR libdir_is_absolute)
if(libdir_is_absolute)
  set(pc_prefix "${CMAKE_INSTALL_PREFIX}")
else()
  cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY
             "${CMAKE_INSTALL_PREFIX}/${TXINBOX_PKG_CONFIG_DIR}" OUTPUT_VARIABLE pc_up)
  set(pc_prefix "\${pcfiledir}/${pc_up}")
endif()
set(pc_libdir "\${prefix}")
set(pc_includedir "\${prefix}")
cmake_path(APPEND pc_libdir "${CMAKE_INSTALL_LIBDIR}")
cmake_path(APPEND pc_includedir "${CMAKE_INSTALL_INCLUDEDIR}")
