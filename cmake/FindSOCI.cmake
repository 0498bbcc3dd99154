# Finds SOCI with the components Core, SQLite3, MySQL and PostgreSQL: targets SOCI::<component>.
#
# SOCI 4.1 installs a CMake config with these targets. If it is there, this module uses it. SOCI 4.0 in Debian's package
# has no config, so this module looks for the libraries by name. txinbox installs this file with its own package config,
# so that both find SOCI in the same way.

if(NOT SOCI_FIND_COMPONENTS)
  set(SOCI_FIND_COMPONENTS Core)
endif()
set(soci_components Core ${SOCI_FIND_COMPONENTS})
list(REMOVE_DUPLICATES soci_components)

# One component at a time, because SOCI's config fails completely if an optional component is missing.
foreach(component IN LISTS soci_components)
  if(NOT TARGET SOCI::${component})
    find_package(SOCI CONFIG QUIET COMPONENTS ${component})
  endif()
endforeach()

if(TARGET SOCI::Core)
  get_target_property(SOCI_INCLUDE_DIR SOCI::Core INTERFACE_INCLUDE_DIRECTORIES)
endif()
if(NOT SOCI_INCLUDE_DIR OR SOCI_INCLUDE_DIR MATCHES "\\$<")
  unset(SOCI_INCLUDE_DIR)
  find_path(SOCI_INCLUDE_DIR soci/soci.h HINTS "${SOCI_DIR}/../../../include")
  mark_as_advanced(SOCI_INCLUDE_DIR)
endif()
foreach(directory IN LISTS SOCI_INCLUDE_DIR)
  if(NOT SOCI_VERSION AND EXISTS "${directory}/soci/version.h")
    file(STRINGS "${directory}/soci/version.h" soci_version_line REGEX "define SOCI_LIB_VERSION \"[0-9_]+\"")
    string(REGEX MATCH "[0-9]+_[0-9_]+" SOCI_VERSION "${soci_version_line}")
    string(REPLACE "_" "." SOCI_VERSION "${SOCI_VERSION}")
  endif()
endforeach()

if(NOT TARGET SOCI::Core AND SOCI_INCLUDE_DIR)
  find_library(SOCI_CORE_LIBRARY soci_core)
  mark_as_advanced(SOCI_CORE_LIBRARY)
  set(soci_core_includes "${SOCI_INCLUDE_DIR}")

  # SOCI's headers include Boost's headers if SOCI was built with Boost. Debian's package does not depend on these.
  set(soci_core_usable ${SOCI_CORE_LIBRARY})
  file(STRINGS "${SOCI_INCLUDE_DIR}/soci/soci-config.h" soci_wants_boost REGEX "^#define SOCI_HAVE_BOOST$")
  if(soci_wants_boost)
    find_path(SOCI_BOOST_INCLUDE_DIR boost/optional.hpp)
    mark_as_advanced(SOCI_BOOST_INCLUDE_DIR)
    if(SOCI_BOOST_INCLUDE_DIR)
      list(APPEND soci_core_includes "${SOCI_BOOST_INCLUDE_DIR}")
    else()
      set(soci_core_usable FALSE)
      set(soci_reason "SOCI ${SOCI_VERSION} was built with Boost, and boost/optional.hpp is not there")
    endif()
  endif()

  if(soci_core_usable)
    add_library(SOCI::Core UNKNOWN IMPORTED)
    set_target_properties(
      SOCI::Core PROPERTIES IMPORTED_LOCATION "${SOCI_CORE_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES
                                                                     "${soci_core_includes}"
                            INTERFACE_LINK_LIBRARIES "${CMAKE_DL_LIBS}")
  endif()
endif()

# component: the name of SOCI 4.1; package and target: its client library.
function(find_soci_backend component package target)
  if(TARGET SOCI::${component} OR NOT TARGET SOCI::Core OR NOT component IN_LIST soci_components)
    return()
  endif()
  string(TOLOWER ${component} name)
  find_library(SOCI_${component}_LIBRARY soci_${name})
  mark_as_advanced(SOCI_${component}_LIBRARY)
  find_package(${package} QUIET)
  if(SOCI_${component}_LIBRARY AND TARGET ${target})
    add_library(SOCI::${component} UNKNOWN IMPORTED)
    set_target_properties(
      SOCI::${component} PROPERTIES IMPORTED_LOCATION "${SOCI_${component}_LIBRARY}" INTERFACE_LINK_LIBRARIES
                                                                                     "SOCI::Core;${target}")
  endif()
endfunction()
find_soci_backend(SQLite3 SQLite3 SQLite::SQLite3)
find_soci_backend(MySQL MySQL MySQL::MySQL)
find_soci_backend(PostgreSQL PostgreSQL PostgreSQL::PostgreSQL)

foreach(component IN LISTS soci_components)
  if(TARGET SOCI::${component})
    set(SOCI_${component}_FOUND TRUE)
  else()
    set(SOCI_${component}_FOUND FALSE)
  endif()
endforeach()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  SOCI
  REQUIRED_VARS SOCI_INCLUDE_DIR SOCI_Core_FOUND
  VERSION_VAR SOCI_VERSION
  HANDLE_COMPONENTS REASON_FAILURE_MESSAGE "${soci_reason}")
unset(soci_components)
unset(soci_reason)
