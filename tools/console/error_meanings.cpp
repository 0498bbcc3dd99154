#include "console/error_meanings.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace txinbox::cli {
namespace {

using namespace std::string_view_literals;

template <class Code, std::size_t N>
std::string_view find(const std::array<std::pair<Code, std::string_view>, N>& meanings, Code code) {
  for (const auto& [known, meaning] : meanings) {
    if (known == code) return meaning;
  }
  return {};
}

}  // namespace

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
  const auto meaning = find(meanings, code);
  return meaning.empty() ? find(meanings, code & 0xFF) : meaning;
}

bool sqlite3_meaning_says_all(int code) {
  constexpr std::array wanting{1, 19, 20};
  const int primary = code & 0xFF;
  return !sqlite3_meaning(code).empty() && std::ranges::find(wanting, primary) == wanting.end();
}

std::string_view mysql_meaning(int code) {
  constexpr std::array<std::pair<int, std::string_view>, 53> meanings{{
      {1021, "the disk is full"sv},
      {1028, "a sort was ended"sv},
      {1030, "the storage engine got an error from the system"sv},
      {1037, "no memory"sv},
      {1038, "no memory to sort"sv},
      {1040, "too many connections"sv},
      {1041, "no memory"sv},
      {1044, "access to the database denied"sv},
      {1045, "access denied"sv},
      {1046, "the session's database is gone"sv},
      {1047, "a Galera node that is parted from its cluster"sv},
      {1048, "NULL in a NOT NULL column"sv},
      {1049, "no such database"sv},
      {1054, "no such column"sv},
      {1062, "duplicate key"sv},
      {1064, "wrong SQL"sv},
      {1114, "the table is full"sv},
      {1135, "the server cannot start a thread"sv},
      {1142, "no privilege on the table"sv},
      {1146, "no such table"sv},
      {1158, "the connection is lost"sv},
      {1159, "the connection is lost"sv},
      {1160, "the connection is lost"sv},
      {1161, "the connection is lost"sv},
      {1180, "it failed while it committed"sv},
      {1203, "too many connections of this user"sv},
      {1205, "lock wait timeout"sv},
      {1206, "no memory for more locks"sv},
      {1213, "deadlock"sv},
      {1226, "a limit of this user"sv},
      {1264, "a number out of range"sv},
      {1290, "the server is read-only"sv},
      {1292, "a value of the wrong form"sv},
      {1364, "a column without a value"sv},
      {1366, "a value of the wrong form"sv},
      {1406, "a value too long for its column"sv},
      {1451, "a foreign key"sv},
      {1452, "a foreign key"sv},
      {1615, "a prepared statement is out of date"sv},
      {1689, "the wait for a lock was ended"sv},
      {1690, "a number out of range"sv},
      {1792, "read-only transaction"sv},
      {1836, "the server is read-only"sv},
      {1932, "the table's data is gone"sv},
      {2002, "cannot connect"sv},
      {2003, "cannot connect"sv},
      {2005, "unknown host"sv},
      {2006, "the connection is lost"sv},
      {2008, "no memory"sv},
      {2013, "the connection is lost"sv},
      {3572, "a lock is held by another"sv},
      {3819, "a CHECK constraint"sv},
      {4025, "a CHECK constraint"sv},
  }};
  return find(meanings, code);
}

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
  const auto meaning = find(meanings, sqlstate);
  if (!meaning.empty()) return meaning;
  if (sqlstate.starts_with("58")) return "the server's system";
  if (sqlstate.starts_with("XX")) return "an internal error of the server";
  return {};
}

}  // namespace txinbox::cli
