#include "backend/postgresql/error_meaning.hpp"

#include "backend/error_meaning.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

using namespace std::string_view_literals;

std::string_view postgresql_meaning(std::string_view sqlstate) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 33> meanings{{
      {"22001"sv, "a value too long for its column"sv},
      {"22003"sv, "a number out of range"sv},
      {"22007"sv, "a date or time of the wrong form"sv},
      {"22P02"sv, "a value of the wrong form"sv},
      {"23502"sv, "NULL in a NOT NULL column"sv},
      {"23503"sv, "a foreign key"sv},
      {"23505"sv, "duplicate key"sv},
      {"23514"sv, "a CHECK constraint"sv},
      {"25006"sv, "the server is read-only"sv},
      {"28000"sv, "access denied"sv},
      {"28P01"sv, "wrong password"sv},
      {"3D000"sv, "no such database"sv},
      {"40001"sv, "serialization failure"sv},
      {"40P01"sv, "deadlock"sv},
      {"42501"sv, "no privilege"sv},
      {"42601"sv, "wrong SQL"sv},
      {"42703"sv, "no such column"sv},
      {"42804"sv, "a value of the wrong type"sv},
      {"42883"sv, "no such function or operator"sv},
      {"42P01"sv, "no such table"sv},
      {"53000"sv, "no resources"sv},
      {"53100"sv, "the disk is full"sv},
      {"53200"sv, "no memory"sv},
      {"53300"sv, "too many connections"sv},
      {"53400"sv, "a limit of the configuration"sv},
      {"55P03"sv, "lock wait timeout"sv},
      {"57014"sv, "canceled or timed out"sv},
      {"57P01"sv, "the server shut the connection down"sv},
      {"57P04"sv, "the database was dropped"sv},
      {"58030"sv, "disk I/O"sv},
      {"58P01"sv, "a file is missing"sv},
      {"XX001"sv, "the data is corrupt"sv},
      {"XX002"sv, "an index is corrupt"sv},
  }};
  if (sqlstate.starts_with("08")) return "no connection";
  const auto meaning = meaning_in(meanings, sqlstate);
  if (!meaning.empty()) return meaning;
  if (sqlstate.starts_with("58")) return "the server's system";
  if (sqlstate.starts_with("XX")) return "an internal error of the server";
  return {};
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
