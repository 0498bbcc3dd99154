#include "backend/sqlite3/error_meaning.hpp"

#include "backend/error_meaning.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

using namespace std::string_view_literals;

std::string_view sqlite3_meaning(int code) {
  constexpr std::array<std::pair<int, std::string_view>, 19> meanings{{
      {1555, "duplicate primary key"sv},
      {2067, "duplicate key"sv},
      {1299, "NULL in a NOT NULL column"sv},
      {275, "a CHECK constraint"sv},
      {787, "a foreign key"sv},
      {1, "wrong SQL, or a table or column that is not there"sv},
      {4, "aborted"sv},
      {5, "the database is locked"sv},
      {6, "a table is locked"sv},
      {7, "no memory"sv},
      {8, "read-only"sv},
      {10, "disk I/O"sv},
      {11, "the file is corrupt"sv},
      {13, "the disk is full"sv},
      {14, "the file cannot be opened"sv},
      {18, "too big"sv},
      {19, "a constraint"sv},
      {20, "a value of the wrong type"sv},
      {26, "not a database file"sv},
  }};
  const auto meaning = meaning_in(meanings, code);
  return meaning.empty() ? meaning_in(meanings, code & 0xFF) : meaning;
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
