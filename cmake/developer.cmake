# Only for the presets, as CMAKE_PROJECT_TOP_LEVEL_INCLUDES: what a user's build must not have.

find_program(CCACHE_PROGRAM ccache)
mark_as_advanced(CCACHE_PROGRAM)
if(CCACHE_PROGRAM)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CCACHE_PROGRAM}")
endif()
