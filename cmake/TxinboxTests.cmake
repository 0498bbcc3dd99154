# The functions with which tests/ and components/*/tests/ declare their programs and their ctest tests.
#
# Every test has labels: its kind (unit, conformance, faults, ...), the database that it needs, "gate" if tests/run.sh
# runs it without options, and "quick" if tests/run.sh --quick runs it. CONTRIBUTING.md lists them. For each label there
# is a target tests_<label>, which builds what the tests with this label need. A program that the gate does not need is
# built only by such a target; the target "all" builds those of the gate.

# Test programs include doctest, SOCI and the public headers. A precompiled header saves a third of their build time.
# Clang refuses it where the options differ from file to file, as under the sanitizers.
option(TXINBOX_TEST_PCH "Compile the test programs with a precompiled header" ON)
if(CMAKE_UNITY_BUILD OR CMAKE_CXX_FLAGS MATCHES "-fsanitize" OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(TXINBOX_TEST_PCH OFF)
endif()

string(TOLOWER "${txinbox_databases}" txinbox_test_folders)

# The databases of the tests. SQLite needs no server. MariaDB, MySQL and Galera share one folder of src/backend/.
set(txinbox_test_databases sqlite3 mariadb mysql galera postgresql)
set(txinbox_test_folder_sqlite3 sqlite3)
set(txinbox_test_folder_mariadb mysql)
set(txinbox_test_folder_mysql mysql)
set(txinbox_test_folder_galera mysql)
set(txinbox_test_folder_postgresql postgresql)

# Sets RESULT to the command of a test on a database of txinbox_test_databases, without the program.
function(txinbox_on_database result database)
  set(url_variable -)
  if(NOT database STREQUAL "sqlite3")
    string(TOUPPER "TXINBOX_TEST_${database}_URL" url_variable)
  endif()
  set(${result} "${PROJECT_SOURCE_DIR}/tests/on_database.sh" ${txinbox_test_folder_${database}} ${url_variable}
      PARENT_SCOPE)
endfunction()

# If the build has the target of a program, adds the target to the caller's list `needed`, and VARIABLE=<its path> to the
# caller's list `environment`.
function(txinbox_need_program target variable)
  if(TARGET ${target})
    set(needed ${needed} ${target} PARENT_SCOPE)
    set(environment ${environment} "${variable}=$<TARGET_FILE:${target}>" PARENT_SCOPE)
  endif()
endfunction()

# PROPERTIES of a test that takes a minute, and much longer with a sanitizer. ctest starts these first, so that at the end
# no processor waits for them.
set(starts_first COST 100 TIMEOUT 1800)

# Adds a test program that does not use doctest, or a service that a test starts.
function(txinbox_test_helper name)
  add_executable(${name} EXCLUDE_FROM_ALL ${ARGN})
  set_target_properties(${name} PROPERTIES CXX_EXTENSIONS OFF)
endfunction()

# Adds a program of doctest's test cases. A program whose libraries define macros that change the meaning of system
# headers sets DISABLE_PRECOMPILE_HEADERS.
function(txinbox_test_program name)
  txinbox_test_helper(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE txinbox_test_main txinbox_test_support)
  if(TXINBOX_TEST_PCH)
    target_precompile_headers(${name} REUSE_FROM txinbox_test_support)
  endif()
  # The tests' own code need not be fast under a sanitizer. Without optimization, its build takes half the time.
  if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    target_compile_options(${name} PRIVATE -O0)
  endif()
endfunction()

# Adds a ctest test.
#
#   txinbox_add_test(NAME
#     COMMAND <program> [<argument>...]
#     LABELS <label>...
#     [BUILDS <target>...]              what its command needs
#     [ENVIRONMENT <name>=<value>...]
#     [PROPERTIES <name> <value>...])   of ctest; without TIMEOUT, the test may take ten minutes
function(txinbox_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "COMMAND;LABELS;BUILDS;ENVIRONMENT;PROPERTIES")
  add_test(NAME ${name} COMMAND ${arg_COMMAND})
  # A test whose server or tool is missing ends with 77: it is skipped, and tests/run.sh fails.
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" ENVIRONMENT "${arg_ENVIRONMENT}" SKIP_RETURN_CODE 77
                                          TIMEOUT 600 ${arg_PROPERTIES})
  foreach(label IN LISTS arg_LABELS)
    if(NOT TARGET tests_${label})
      if(label STREQUAL "gate")
        add_custom_target(tests_${label} ALL)
      else()
        add_custom_target(tests_${label})
      endif()
    endif()
    if(arg_BUILDS)
      add_dependencies(tests_${label} ${arg_BUILDS})
    endif()
  endforeach()
endfunction()

# Adds a ctest test NAME_<database> for each database that the build supports, with the labels KIND and <database>. A
# test on a server gets the server's URL when it runs, from the variable TXINBOX_TEST_<DATABASE>_URL. Without the
# variable, it is skipped.
#
#   txinbox_database_tests(NAME
#     KIND <label>
#     PROGRAM <target>
#     [ARGUMENTS <argument>...]
#     [DATABASES <database>...]         only these databases
#     [GATE <database>...]              on these databases, the test belongs to the gate
#     [QUICK]                           on SQLite, the test belongs to --quick
#     [LABELS <label>...]               further labels
#     [BUILDS ...] [ENVIRONMENT ...] [PROPERTIES ...])   as for txinbox_add_test
function(txinbox_database_tests name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "QUICK" "KIND;PROGRAM"
                        "ARGUMENTS;DATABASES;GATE;LABELS;BUILDS;ENVIRONMENT;PROPERTIES")
  if(NOT arg_DATABASES)
    set(arg_DATABASES ${txinbox_test_databases})
  endif()
  foreach(database IN LISTS arg_DATABASES)
    if(NOT txinbox_test_folder_${database} IN_LIST txinbox_test_folders)
      continue()
    endif()
    txinbox_on_database(run ${database})
    set(labels ${arg_KIND} ${database} ${arg_LABELS})
    if(database IN_LIST arg_GATE)
      list(APPEND labels gate)
    endif()
    if(arg_QUICK AND database STREQUAL "sqlite3")
      list(APPEND labels quick)
    endif()
    txinbox_add_test(
      ${name}_${database}
      COMMAND ${run} $<TARGET_FILE:${arg_PROGRAM}> ${arg_ARGUMENTS}
      LABELS ${labels}
      BUILDS ${arg_PROGRAM} ${arg_BUILDS}
      ENVIRONMENT ${arg_ENVIRONMENT}
      PROPERTIES TIMEOUT 1800 ${arg_PROPERTIES})
  endforeach()
endfunction()

# Adds the unit tests of a program to the gate.
#
#   txinbox_unit_tests(NAME PROGRAM
#     [TIMED]                           adds NAME_timed, for the cases that need real time
#     [LABELS <label>...]               further labels
#     [BUILDS ...] [ENVIRONMENT ...])   as for txinbox_add_test
function(txinbox_unit_tests name program)
  cmake_parse_arguments(PARSE_ARGV 2 arg "TIMED" "" "LABELS;BUILDS;ENVIRONMENT")
  txinbox_on_database(run sqlite3)
  list(APPEND run $<TARGET_FILE:${program}>)
  set(common BUILDS ${program} ${arg_BUILDS} ENVIRONMENT ${arg_ENVIRONMENT} PROPERTIES ${starts_first})
  txinbox_add_test(${name} COMMAND ${run} --test-suite-exclude=timed LABELS unit gate quick ${arg_LABELS} ${common})
  if(arg_TIMED)
    txinbox_add_test(${name}_timed COMMAND ${run} --test-suite=timed LABELS unit timed sqlite3 ${arg_LABELS} ${common})
  endif()
endfunction()

# Adds a component's tests without a broker, with the label unit_NAME: a program txinbox_NAME_unit_tests of these files.
# Arguments as for txinbox_unit_tests.
function(txinbox_component_unit_tests name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TIMED" "" "SOURCES;BUILDS;ENVIRONMENT")
  set(timed "")
  if(arg_TIMED)
    set(timed TIMED)
  endif()
  txinbox_test_program(txinbox_${name}_unit_tests ${arg_SOURCES})
  target_include_directories(txinbox_${name}_unit_tests PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/../src")
  target_link_libraries(txinbox_${name}_unit_tests PRIVATE txinbox::${name})
  txinbox_unit_tests(unit_${name} txinbox_${name}_unit_tests ${timed} LABELS unit_${name} BUILDS ${arg_BUILDS}
                     ENVIRONMENT ${arg_ENVIRONMENT})
endfunction()

# Adds the tests of a component's program on a real broker, which a script of tests/brokers/ starts: broker_NAME on
# SQLite, and broker_NAME_<database>, which are the cases that kill, rebalance or order messages, on servers.
#
#   txinbox_broker_test(NAME PROGRAM
#     [SLOW <filter>]                   cases that take long: they are a test of their own, broker_NAME_slow
#     [BUILDS ...] [ENVIRONMENT ...])   as for txinbox_add_test
function(txinbox_broker_test broker program)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "SLOW" "BUILDS;ENVIRONMENT")
  if(NOT TARGET txinbox-cli OR NOT SQLite3 IN_LIST txinbox_databases)
    return()
  endif()
  set(run "${PROJECT_SOURCE_DIR}/tests/brokers.sh" ${broker} $<TARGET_FILE:${program}>)
  txinbox_on_database(on_sqlite3 sqlite3)
  set(needed ${program} ${arg_BUILDS})
  set(environment "")
  txinbox_need_program(txinbox-cli TXINBOX_COMMAND)
  list(APPEND environment ${arg_ENVIRONMENT})
  txinbox_need_program(txinbox_${broker}_consumer TXINBOX_EXAMPLE)
  txinbox_need_program(txinbox_${broker}_lease_consumer TXINBOX_EXAMPLE)
  set(common BUILDS ${needed} ENVIRONMENT ${environment} PROPERTIES TIMEOUT 3600)
  if(arg_SLOW)
    txinbox_add_test(broker_${broker} COMMAND ${on_sqlite3} ${run} "--test-case-exclude=${arg_SLOW}"
                     LABELS brokers ${broker} sqlite3 ${common})
    txinbox_add_test(broker_${broker}_slow COMMAND ${on_sqlite3} ${run} "--test-case=${arg_SLOW}"
                     LABELS brokers ${broker} slow ${common})
  else()
    txinbox_add_test(broker_${broker} COMMAND ${on_sqlite3} ${run} LABELS brokers ${broker} sqlite3 ${common})
  endif()
  if(broker STREQUAL "redis")
    return()
  endif()
  set(on_servers "*killed*,*dies*,*die together*,*join and leave*,*before a smaller one*,*keep their order*")
  string(APPEND on_servers ",*cannot be consumed*")
  foreach(database IN ITEMS mariadb postgresql)
    if(txinbox_test_folder_${database} IN_LIST txinbox_test_folders)
      txinbox_on_database(on_database ${database})
      txinbox_add_test(broker_${broker}_${database} COMMAND ${on_database} ${run} "--test-case=${on_servers}"
                       LABELS brokers ${broker} ${database} ${common})
    endif()
  endforeach()
endfunction()
