#include "backend/mysql/error_meaning.hpp"

#include "backend/error_meaning.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

using namespace std::string_view_literals;

std::string_view mysql_meaning(unsigned code) {
  constexpr std::array<std::pair<unsigned, std::string_view>, 53> meanings{{
      {1021U, "the disk is full"sv},
      {1028U, "a sort was ended"sv},
      {1030U, "the storage engine got an error from the system"sv},
      {1037U, "no memory"sv},
      {1038U, "no memory to sort"sv},
      {1040U, "too many connections"sv},
      {1041U, "no memory"sv},
      {1044U, "access to the database denied"sv},
      {1045U, "access denied"sv},
      {1046U, "the session's database is gone"sv},
      {1047U, "a Galera node that is parted from its cluster"sv},
      {1048U, "NULL in a NOT NULL column"sv},
      {1049U, "no such database"sv},
      {1054U, "no such column"sv},
      {1062U, "duplicate key"sv},
      {1064U, "wrong SQL"sv},
      {1114U, "the table is full"sv},
      {1135U, "the server cannot start a thread"sv},
      {1142U, "no privilege on the table"sv},
      {1146U, "no such table"sv},
      {1158U, "the connection is lost"sv},
      {1159U, "the connection is lost"sv},
      {1160U, "the connection is lost"sv},
      {1161U, "the connection is lost"sv},
      {1180U, "it failed while it committed"sv},
      {1203U, "too many connections of this user"sv},
      {1205U, "lock wait timeout"sv},
      {1206U, "no memory for more locks"sv},
      {1213U, "deadlock"sv},
      {1226U, "a limit of this user"sv},
      {1264U, "a number out of range"sv},
      {1290U, "the server is read-only"sv},
      {1292U, "a value of the wrong form"sv},
      {1364U, "a column without a value"sv},
      {1366U, "a value of the wrong form"sv},
      {1406U, "a value too long for its column"sv},
      {1451U, "a foreign key"sv},
      {1452U, "a foreign key"sv},
      {1615U, "a prepared statement is out of date"sv},
      {1689U, "the wait for a lock was ended"sv},
      {1690U, "a number out of range"sv},
      {1792U, "read-only transaction"sv},
      {1836U, "the server is read-only"sv},
      {1932U, "the table's data is gone"sv},
      {2002U, "cannot connect"sv},
      {2003U, "cannot connect"sv},
      {2005U, "unknown host"sv},
      {2006U, "the connection is lost"sv},
      {2008U, "no memory"sv},
      {2013U, "the connection is lost"sv},
      {3572U, "a lock is held by another"sv},
      {3819U, "a CHECK constraint"sv},
      {4025U, "a CHECK constraint"sv},
  }};
  return meaning_in(meanings, code);
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
