# Components: libraries of their own beside txinbox, each in a folder of components/. A component stands on the public
# headers of txinbox::core and on one client library. So a program without SOCI can use it, too; a program that uses SOCI
# also links txinbox::txinbox. CONTRIBUTING.md says how to add one.

set(TXINBOX_EXTRA_COMPONENTS "" CACHE STRING "Folders of components outside this tree, which are built and installed, too")
mark_as_advanced(TXINBOX_EXTRA_COMPONENTS)

set_property(GLOBAL PROPERTY TXINBOX_COMPONENTS "")

# Adds the component NAME of the current folder, if its libraries are there:
#
#   txinbox_add_component(NAME
#     SOURCES <file>...
#     [MODULES <pkg-config module>...]  the client libraries, as "rdkafka>=1.9"
#     [PROGRAMS <program>...]           what generates sources, as protoc
#     [PACKAGES <Debian package>...])   what the message about a missing module names
#
# It gets the target txinbox::NAME, the option TXINBOX_WITH_<NAME>, the headers of include/, its install rules, its part
# of find_package(txinbox COMPONENTS NAME), a pkg-config file txinbox-NAME.pc, and the tests of tests/.
function(txinbox_add_component name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;MODULES;PROGRAMS;PACKAGES")
  string(TOUPPER ${name} upper)
  set(option TXINBOX_WITH_${upper})
  set(${option} AUTO CACHE STRING "Build the component ${name}: AUTO (if its libraries are found), ON or OFF")
  set_property(CACHE ${option} PROPERTY STRINGS AUTO ON OFF)
  set(wanted "${${option}}")
  if(NOT wanted STREQUAL "AUTO" AND NOT wanted)
    return()
  endif()

  set(client "")
  set(missing "")
  if(arg_MODULES)
    find_package(PkgConfig QUIET)
    if(PKG_CONFIG_FOUND)
      pkg_check_modules(TXINBOX_${upper}_CLIENT QUIET IMPORTED_TARGET GLOBAL ${arg_MODULES})
    endif()
    set(client PkgConfig::TXINBOX_${upper}_CLIENT)
    if(NOT TARGET ${client})
      set(missing "pkg-config does not find ${arg_MODULES}")
    endif()
  endif()
  foreach(program IN LISTS arg_PROGRAMS)
    find_program(TXINBOX_${program}_PROGRAM ${program})
    mark_as_advanced(TXINBOX_${program}_PROGRAM)
    if(NOT TXINBOX_${program}_PROGRAM)
      set(missing "there is no program ${program}")
    endif()
  endforeach()
  if(missing)
    list(JOIN arg_PACKAGES " " packages)
    if(NOT wanted STREQUAL "AUTO")
      message(FATAL_ERROR "${option} is ${wanted}, but ${missing}. "
                          "On Debian: apt-get install pkg-config ${packages}")
    endif()
    message(STATUS "txinbox component: ${name} is not built, because ${missing} (Debian: pkg-config ${packages})")
    return()
  endif()
  message(STATUS "txinbox component: ${name}")

  set(target txinbox_${name})
  add_library(${target} ${arg_SOURCES})
  add_library(txinbox::${name} ALIAS ${target})
  target_link_libraries(${target} PUBLIC txinbox_core PRIVATE ${client})
  target_include_directories(
    ${target}
    PUBLIC "$<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>" "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>"
    PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/components")
  set_target_properties(
    ${target}
    PROPERTIES CXX_EXTENSIONS OFF
               EXPORT_NAME ${name}
               VERSION ${PROJECT_VERSION}
               SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  txinbox_limit_exports(${target})
  set_property(GLOBAL APPEND PROPERTY TXINBOX_COMPONENTS ${name})
  set_property(GLOBAL PROPERTY TXINBOX_COMPONENT_FOLDER_${name} "${CMAKE_CURRENT_SOURCE_DIR}")
  if(TXINBOX_INSTALL)
    txinbox_install_component(${name} "${arg_MODULES}")
  endif()
endfunction()

function(txinbox_install_component name modules)
  string(TOUPPER ${name} upper)
  set(target txinbox_${name})
  set_target_properties(${target} PROPERTIES INSTALL_RPATH "\$ORIGIN") # beside libtxinbox_core
  install(TARGETS ${target} EXPORT txinbox-${name}-targets)
  install(EXPORT txinbox-${name}-targets NAMESPACE txinbox:: DESTINATION "${TXINBOX_CMAKE_DIR}/components")
  install(DIRECTORY include/ DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.hpp")

  # The packages that txinbox-config.cmake finds before it reads the targets. A static library needs its client library
  # at each link.
  get_target_property(type ${target} TYPE)
  set(file "${CMAKE_CURRENT_BINARY_DIR}/txinbox-${name}.cmake")
  set(find_client "")
  set(requires txinbox-core)
  if(type STREQUAL "STATIC_LIBRARY" AND modules)
    string(APPEND find_client "find_dependency(PkgConfig)\n"
                  "pkg_check_modules(TXINBOX_${upper}_CLIENT REQUIRED QUIET IMPORTED_TARGET GLOBAL ${modules})\n")
    list(APPEND requires ${modules})
  endif()
  file(WRITE "${file}" "${find_client}include(\"\${CMAKE_CURRENT_LIST_DIR}/txinbox-${name}-targets.cmake\")\n")
  install(FILES "${file}" DESTINATION "${TXINBOX_CMAKE_DIR}/components")

  list(JOIN requires ", " pc_requires)
  string(REGEX REPLACE "(>=|<=|=)" " \\1 " pc_requires "${pc_requires}")
  set(pc_component ${name})
  configure_file("${PROJECT_SOURCE_DIR}/cmake/txinbox-component.pc.in" txinbox-${name}.pc @ONLY)
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/txinbox-${name}.pc" DESTINATION "${TXINBOX_PKG_CONFIG_DIR}")
endfunction()

# Adds the tests of all components. Call it after txinbox_test_program is defined.
function(txinbox_add_component_tests)
  get_property(names GLOBAL PROPERTY TXINBOX_COMPONENTS)
  foreach(name IN LISTS names)
    get_property(folder GLOBAL PROPERTY TXINBOX_COMPONENT_FOLDER_${name})
    if(EXISTS "${folder}/tests/CMakeLists.txt")
      add_subdirectory("${folder}/tests" "${CMAKE_CURRENT_BINARY_DIR}/component_${name}")
    endif()
  endforeach()
endfunction()

file(GLOB component_folders "${PROJECT_SOURCE_DIR}/components/*/CMakeLists.txt")
foreach(file IN LISTS component_folders)
  cmake_path(GET file PARENT_PATH folder)
  add_subdirectory("${folder}")
endforeach()
foreach(folder IN LISTS TXINBOX_EXTRA_COMPONENTS)
  cmake_path(GET folder FILENAME name)
  add_subdirectory("${folder}" "${PROJECT_BINARY_DIR}/components/${name}")
endforeach()
