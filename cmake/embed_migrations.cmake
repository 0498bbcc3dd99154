# Writes OUTPUT, a C++ source that holds the migration FILES (…/<database>/V<version>__<name>.sql).

set(entries "")
foreach(file IN LISTS FILES)
  if(NOT file MATCHES "/([a-z0-9]+)/V([0-9]+)__([a-z0-9_]+)\\.sql$")
    message(FATAL_ERROR "Not a migration's name: ${file}")
  endif()
  set(database "${CMAKE_MATCH_1}")
  set(version "${CMAKE_MATCH_2}")
  set(name "${CMAKE_MATCH_3}")
  file(READ "${file}" sql)
  if(sql MATCHES "\\)sql\"")
    message(FATAL_ERROR "${file} holds the text that ends the raw string")
  endif()
  string(APPEND entries "    {\"${database}\", ${version}, \"${name}\", R\"sql(${sql})sql\"},\n")
endforeach()

file(
  WRITE "${OUTPUT}"
  "// Generated from migrations/ by cmake/embed_migrations.cmake.

#include \"schema/embedded_migrations.hpp\"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

namespace {
constexpr EmbeddedMigration all[] = {
${entries}};
}  // namespace

std::span<const EmbeddedMigration> embedded_migrations() noexcept { return all; }

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
")
