# Compiles migrations/<database>/V*.sql into the library, for `migrate`.

# The migrations in order. Each exists for every database, with the same number.
set(txinbox_migrations V1__inbox V2__outbox V3__operations V4__leases)

set(migration_files "")
foreach(database IN LISTS txinbox_databases)
  string(TOLOWER ${database} folder)
  foreach(migration IN LISTS txinbox_migrations)
    list(APPEND migration_files "${PROJECT_SOURCE_DIR}/migrations/${folder}/${migration}.sql")
  endforeach()
endforeach()

set(embedded_migrations "${CMAKE_CURRENT_BINARY_DIR}/generated/embedded_migrations.cpp")
add_custom_command(
  OUTPUT "${embedded_migrations}"
  COMMAND "${CMAKE_COMMAND}" "-DOUTPUT=${embedded_migrations}" "-DFILES=${migration_files}" -P
          "${PROJECT_SOURCE_DIR}/cmake/embed_migrations.cmake"
  DEPENDS ${migration_files} "${PROJECT_SOURCE_DIR}/cmake/embed_migrations.cmake"
  COMMENT "Embedding the migrations"
  VERBATIM)
target_sources(txinbox_core PRIVATE "${embedded_migrations}")
