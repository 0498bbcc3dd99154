#include "backend/mysql/error_meaning.hpp"

#include <array>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

using enum ErrorClass;

/// By number: each of the two client libraries lacks some of the names.
constexpr auto meanings = std::to_array<ErrorCodeMeaning<unsigned>>({
    {1020U, {serialization_failure}},  // ER_CHECKREAD; MariaDB with innodb_snapshot_isolation
    {1021U, {environment, "the disk is full"}},
    {1028U, {environment, "a sort was ended"}},
    {1030U, {environment, "the storage engine got an error from the system"}},
    {1037U, {environment, "no memory"}},
    {1038U, {environment, "no memory to sort"}},
    {1040U, {connection_lost, "too many connections"}},
    {1041U, {environment, "no memory"}},
    {1044U, {other, "access to the database denied"}},
    {1045U, {other, "access denied"}},
    {1046U, {environment, "the session's database is gone"}},
    {1047U, {connection_lost, "a Galera node that is parted from its cluster"}},
    {1048U, {other, "NULL in a NOT NULL column"}},
    {1049U, {environment, "no such database"}},
    {1053U, {connection_lost}},  // ER_SERVER_SHUTDOWN
    {1054U, {other, "no such column"}},
    {1062U, {duplicate_key, "duplicate key"}},
    {1064U, {other, "wrong SQL"}},
    {1114U, {environment, "the table is full"}},
    {1135U, {connection_lost, "the server cannot start a thread"}},  // for a new connection
    {1142U, {other, "no privilege on the table"}},
    {1146U, {environment, "no such table"}},
    {1158U, {connection_lost, "the connection is lost"}},
    {1159U, {connection_lost, "the connection is lost"}},
    {1160U, {connection_lost, "the connection is lost"}},
    {1161U, {connection_lost, "the connection is lost"}},
    {1180U, {connection_lost, "it failed while it committed"}},  // Galera: the node was cut off while it committed
    {1203U, {connection_lost, "too many connections of this user"}},
    {1205U, {lock_timeout, "lock wait timeout"}},
    {1206U, {environment, "no memory for more locks"}},
    {1213U, {deadlock, "deadlock"}},
    {1226U, {environment, "a limit of this user"}},
    {1264U, {other, "a number out of range"}},
    {1290U, {read_only, "the server is read-only"}},
    {1292U, {other, "a value of the wrong form"}},
    {1317U, {statement_timeout}},  // ER_QUERY_INTERRUPTED
    {1364U, {other, "a column without a value"}},
    {1366U, {other, "a value of the wrong form"}},
    {1406U, {other, "a value too long for its column"}},
    {1451U, {other, "a foreign key"}},
    {1452U, {other, "a foreign key"}},
    {1615U, {serialization_failure, "a prepared statement is out of date"}},  // a new run prepares it again
    {1689U, {lock_timeout, "the wait for a lock was ended"}},                 // another session wants to lock the table
    {1690U, {other, "a number out of range"}},
    {1792U, {read_only, "read-only transaction"}},
    {1836U, {read_only, "the server is read-only"}},
    {1927U, {connection_lost}},  // ER_CONNECTION_KILLED of MariaDB
    {1932U, {environment, "the table's data is gone"}},
    {1969U, {statement_timeout}},  // ER_STATEMENT_TIMEOUT of MariaDB
    {2002U, {connection_lost, "cannot connect"}},
    {2003U, {connection_lost, "cannot connect"}},
    {2005U, {connection_lost, "unknown host"}},
    {2006U, {connection_lost, "the connection is lost"}},
    {2008U, {environment, "no memory"}},
    {2013U, {connection_lost, "the connection is lost"}},
    {3024U, {statement_timeout}},                          // ER_QUERY_TIMEOUT of MySQL
    {3101U, {serialization_failure}},                      // MySQL: certification failed at COMMIT
    {3572U, {lock_timeout, "a lock is held by another"}},  // MySQL; MariaDB says 1205
    {3819U, {other, "a CHECK constraint"}},
    {4025U, {other, "a CHECK constraint"}},
    {4031U, {connection_lost}},  // MySQL: closed after wait_timeout
});

}  // namespace

ErrorMeaning mysql_meaning(unsigned code) {
  const auto* const found = find_meaning(meanings, [code](unsigned each) { return each == code; });
  return found == nullptr ? ErrorMeaning() : *found;
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
