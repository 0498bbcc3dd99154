# Settings that a user's build must not have. Only the presets include this file, by CMAKE_PROJECT_TOP_LEVEL_INCLUDES.

find_program(CCACHE_PROGRAM ccache)
mark_as_advanced(CCACHE_PROGRAM)
if(CCACHE_PROGRAM)
  # So ccache also finds the objects of another checkout of the same sources, and those of files with a precompiled
  # header. CCACHE_DEPEND: without it, ccache finds the precompiled header of a source that differs in comments only.
  # GCC then includes the changed header a second time, because `#pragma once` compares the content of the files.
  # CCACHE_NAMESPACE: caches of before hold such results, and ccache would find them.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}" CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1
      CCACHE_NAMESPACE=depend CCACHE_SLOPPINESS=pch_defines,time_macros
      "${CCACHE_PROGRAM}")
endif()

# The names of files in messages and in debug information begin at the top folder of the checkout.
add_compile_options("-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=")
